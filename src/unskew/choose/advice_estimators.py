"""Which estimators of position bias can be trusted on a log, and the bias by the best of them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unskew.bias.by_context import contexts_of
from unskew.bias.ctr_check import FEWEST_MOVED_CLICKS
from unskew.bias.estimator import BiasEstimator
from unskew.bias.identify import (
    FRAGILE_SHARE,
    HIGHEST_SHARE,
    LogFacts,
    facts_of,
)
from unskew.bias.shuffling import shuffling_of
from unskew.errors import DataError, UnskewError
from unskew.log.features import Features
from unskew.log.impressions import Impressions
from unskew.position_bias import PositionBias
from unskew.registry import make_estimator

# How far an estimator can be trusted on a log.
SOUND, FRAGILE, UNFIT = "sound", "fragile", "unfit"
# Fewer shuffled sessions, or queries, than these leave a curve to chance.
FEWEST_SHUFFLED, FEWEST_QUERIES = 1_000, 100


@dataclass(frozen=True)
class Verdict:
    """How far one estimator can be trusted on a log, and why.

    ``options`` are the settings with which it is to be used.
    """

    method: str
    trust: str
    reason: str
    options: tuple[tuple[str, Any], ...] = ()

    def estimator(self, n_jobs: int | None = None) -> BiasEstimator:
        """The estimator with its settings."""
        return make_estimator(self.method, n_jobs=n_jobs, **dict(self.options))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "method": self.method, "trust": self.trust, "reason": self.reason,
            "options": dict(self.options),
        }  # fmt: skip


@dataclass(frozen=True, eq=False)
class TrustedBias:
    """The bias of a log by the estimator that can be trusted most there."""

    bias: PositionBias
    verdict: Verdict
    notes: tuple[str, ...] = ()


def shuffled_contexts(data: Impressions) -> tuple[Any, ...]:
    """The contexts whose lists were shuffled, as far as documents that occur twice can tell."""
    if not len(data.contexts):
        return ()
    return tuple(value for value, part in contexts_of(data).items() if _looks_shuffled(part))


def _looks_shuffled(data: Impressions) -> bool:
    found = shuffling_of(data)
    return found.can_tell and found.shuffled


def verdicts_of(data: Impressions, facts: LogFacts, shuffled: Any = None) -> tuple[Verdict, ...]:
    """Every estimator that measures examination, the most trustworthy first.

    ``shuffled`` is the context that the user says was shuffled.
    """
    found = [
        _randomization(data, facts, shuffled),
        _by_movement(data, facts, "harvesting"),
        _by_movement(data, facts, "table-em"),
        _by_features(facts),
        _relative_ctr(facts),
    ]
    order = (SOUND, FRAGILE, UNFIT)
    return tuple(sorted(found, key=lambda one: order.index(one.trust)))


def _randomization(data: Impressions, facts: LogFacts, shuffled: Any) -> Verdict:
    name = "randomization"
    if facts.shuffling.can_tell and facts.shuffling.shuffled:
        return _shuffled_verdict(data, "the lists of the whole log look shuffled", ())
    marked = (shuffled,) if shuffled is not None else shuffled_contexts(data)
    if not marked:
        return Verdict(
            name, UNFIT, "no sessions are known to be shuffled: mark them in a context column"
        )
    part, context = data.in_context(marked[0]), (("context", marked[0]),)
    if shuffled is not None and shuffling_of(part).can_tell and not _looks_shuffled(part):
        return Verdict(name, UNFIT, f"the lists of context {shuffled!r} do not look shuffled")
    by_whom = "look shuffled" if shuffled is None else "were shuffled, as you say"
    return _shuffled_verdict(part, f"the lists of context {marked[0]!r} {by_whom}", context)


def _shuffled_verdict(part: Impressions, why: str, options: tuple[tuple[str, Any], ...]) -> Verdict:
    few = part.n_sessions < FEWEST_SHUFFLED
    reason = f"{why}: {part.n_sessions:,} sessions with {part.n_clicks:,} clicks"
    if few:
        reason += f", fewer than the {FEWEST_SHUFFLED:,} that a curve takes"
    return Verdict("randomization", FRAGILE if few else SOUND, reason, options)


def _by_movement(data: Impressions, facts: LogFacts, method: str) -> Verdict:
    if facts.unlinked_positions:
        apart = ", ".join(map(str, facts.unlinked_positions[:5]))
        return Verdict(
            method, UNFIT,
            f"no document was seen both at position(s) {apart} and further up: documents hardly move",
        )  # fmt: skip
    if not facts.moved_share > 0:
        return Verdict(method, UNFIT, "no document was seen at several positions")
    seen = (
        f"{facts.moved_share:.0%} of the results shown were documents seen at several positions, "
        f"with {facts.moved_clicks:,.0f} clicks"
    )
    if facts.moved_clicks < FEWEST_MOVED_CLICKS * data.max_position:
        return Verdict(method, FRAGILE, f"{seen}: too few for {data.max_position} positions")
    return Verdict(method, SOUND, seen)


def _by_features(facts: LogFacts) -> Verdict:
    name, share = "regression-em", facts.position_share
    if not facts.n_varying_features:
        return Verdict(name, UNFIT, "the log has no features that differ between documents")
    if share is None:
        return Verdict(name, UNFIT, "one query: features are judged on queries that were held out")
    why = f"the features explain {share:.0%} of where documents stood"
    if share > HIGHEST_SHARE:
        return Verdict(name, UNFIT, f"{why}: no two alike stood at different positions")
    if share > FRAGILE_SHARE:
        return Verdict(name, FRAGILE, f"{why}: hardly any two alike stood at different positions")
    if facts.n_queries < FEWEST_QUERIES:
        why = f"{facts.n_queries:,} queries are few to learn relevance from features by; {why}"
    # Nothing in a log shows what else its ranker knew, so that features alone are never sound.
    return Verdict(
        name,
        FRAGILE,
        f"{why}, so that documents alike can be compared: right only if the live ranker knew no more "
        "than the features say",
    )


def _relative_ctr(facts: LogFacts) -> Verdict:
    name = "relative-ctr"
    if facts.shuffling.can_tell and facts.shuffling.shuffled:
        return Verdict(name, SOUND, "shuffled lists show equally relevant results everywhere")
    return Verdict(
        name, UNFIT, "it takes all positions to be equally relevant, which no ranker leaves them"
    )


def trusted_bias(data: Impressions, *, n_jobs: int | None = None) -> TrustedBias:
    """The position bias of a log by the estimator that can be trusted most on it.

    An estimator that fails on the log after all gives way to the next. Where none can be trusted at
    all it is an error that says what each lacks.
    """
    verdicts = _verdicts(data, n_jobs)
    lacking = [f"{one.method}: {one.reason}" for one in verdicts if one.trust == UNFIT]
    fragile: list[TrustedBias] = []
    for verdict in verdicts:
        if verdict.trust == UNFIT:
            continue
        try:
            found = tried(data, verdict, n_jobs=n_jobs)
        except UnskewError as error:
            lacking.append(f"{verdict.method}: {error}")
            continue
        if found.verdict.trust == SOUND:
            return found
        fragile.append(found)
    if fragile:
        return fragile[0]
    raise DataError(
        "nothing in this log tells position bias from relevance, so that clicks cannot be corrected ("
        + "; ".join(lacking)
        + "). Give a bias that was measured elsewhere, or mark shuffled sessions in a context column"
    )


def _verdicts(data: Impressions, n_jobs: int | None) -> tuple[Verdict, ...]:
    """The verdicts; features are only looked at, by trees, where nothing else is sound."""
    plain = Features(np.empty((len(data.documents), 0)), ())
    without = replace(data, documents=replace(data.documents, features=plain))
    facts = facts_of(without)
    if not 0 < facts.n_clicks < facts.n_rows:
        raise DataError(facts.sentences[0])
    found = verdicts_of(without, facts)
    if found[0].trust == SOUND or not data.features.n_features:
        return found
    return verdicts_of(data, facts_of(data, n_jobs=n_jobs))


def tried(data: Impressions, verdict: Verdict, *, n_jobs: int | None = None) -> TrustedBias:
    """The bias by one estimator; if it warns of the log, it is fragile after all."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        bias = verdict.estimator(n_jobs).fit(data)
    # A warning about marked positions is there as a note of the bias already.
    warned = [str(one.message) for one in caught if "was clipped" not in str(one.message)]
    if warned:
        verdict = replace(verdict, trust=FRAGILE, reason=warned[0])
    return TrustedBias(bias, verdict, bias.notes)
