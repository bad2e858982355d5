"""The chain family: the user walks down the page, and at some point stops.

An examined result is clicked with its relevance r. After a click the user is satisfied and stops with
``satisfaction``, else walks on with ``after_click``; after no click she walks on with ``after_skip``.
What is hidden is where she stopped below the last click. With B[k], the chance of no click from slot k
on if k is examined,

    B[k] = (1 - r[k]) * (after_skip[k] * B[k + 1] + 1 - after_skip[k]),        B = 1 below the page

everything above the last click was examined, and below it the chance that a slot was examined, given
that nothing was clicked there, is a product of such terms. The M-steps are shares of expected counts:

    r            = clicks / examined
    satisfaction = satisfied / clicks
    after_click  = walked on / clicks that did not satisfy
    after_skip   = walked on / examined without a click

All sessions of a page whose last click is in the same slot say the same about the slots below it: the
E-step takes time by the slots of the distinct pages, however many sessions and patterns there are.
Which parameters are free, and what shares a value, makes the models: see `ChainForm`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray
from unskew.clicks.fitting.curve import examination_bias
from unskew.clicks.fitting.likelihood import Evidence, Prediction
from unskew.clicks.fitting.log_clicks import LogClicks
from unskew.clicks.fitting.strength import estimate_strength, informed_trials
from unskew.clicks.fitting.walks import (
    ChainCounts,
    ChainSums,
    ChainValues,
    below_last_click,
    below_profiles,
    chain_counts,
    chain_predictions,
    log_of,
    reached_places,
    seen_part,
)
from unskew.errors import UsageError
from unskew.log.impressions import Impressions
from unskew.position_bias import PositionBias

_TINY = 1e-12
START = 0.5
# How many clicks the mean satisfaction is worth to that of a document, before it is estimated.
FIRST_STRENGTH = 5.0
# How many clicks the mean of all positions is worth to the chance to walk on at one of them.
POOLING = 10.0


@dataclass(frozen=True)
class ChainForm:
    """Which parameters a chain model has.

    Attributes
    ----------
    satisfaction
        ``"none"``; ``"document"``: one for each document; ``"share"``: a share of its relevance, the
        same for all documents.
    walk
        ``"one"``: one chance to walk on, clicked or not; ``"after click"``: one for each position of a
        click, and always on without a click.

    """

    satisfaction: str
    walk: str


@dataclass(frozen=True, eq=False)
class ChainParameters:
    """The present values: by document, by position of the click, and by position of the skip.

    ``typical`` is the satisfaction of a document without clicks, and ``strength`` how many clicks it is
    worth to a document that has some.
    """

    satisfaction: FloatArray
    share: float
    after_click: FloatArray
    after_skip: FloatArray
    typical: float = START
    strength: float = FIRST_STRENGTH


class ChainLikelihood:
    """A chain click model on one log."""

    def __init__(
        self,
        clicks: LogClicks,
        form: ChainForm,
        *,
        n_positions: int,
        parameters: ChainParameters | None = None,
    ) -> None:
        self.clicks, self.form, self._n_positions = clicks, form, n_positions
        always = form.walk == "after click"
        self.present = parameters or ChainParameters(
            satisfaction=np.full(self.n_documents, 0.0 if form.satisfaction == "none" else START),
            share=START,
            after_click=np.full(n_positions, START),
            after_skip=np.full(n_positions, 1.0 if always else START),
        )

    @cached_property
    def counts(self) -> ChainCounts:
        """What the model sees of the log."""
        return chain_counts(self.clicks.arrays, self.n_documents, self._n_positions)

    @property
    def n_documents(self) -> int:
        """How many documents have a relevance."""
        return self.clicks.n_documents

    def values(self, relevance: FloatArray) -> ChainValues:
        """The present parameters as the kernels take them."""
        now = self.present
        shared = self.form.satisfaction == "share"
        satisfaction = now.share * relevance if shared else now.satisfaction
        return ChainValues(relevance, satisfaction, now.after_click, now.after_skip)

    def evidence(self, relevance: FloatArray, *, whole: bool = True) -> Evidence:
        """What the clicks say about these relevances, by the present parameters."""
        counts, values, r = self.counts, self.values(relevance), relevance
        sums = ChainSums(
            counts.examined.copy(), np.zeros(self.n_documents), counts.walked.copy(),
            counts.walked.copy(), counts.skipped.copy(), counts.skipped.copy(),
        )  # fmt: skip
        longest = int(np.diff(counts.page_offsets).max(initial=0))
        total = below_last_click(counts, values, sums, longest, whole)
        total = total + seen_part(counts, values) if whole else np.nan
        self._expected, self._relevance = sums, relevance
        gradient = counts.clicks - sums.examined * r
        information = sums.examined * r * (1.0 - r)
        if self.form.satisfaction == "share":
            # The relevance also decides how often a click satisfies.
            share = self.present.share
            odds = (1.0 - r) / np.maximum(1.0 - share * r, _TINY)
            gradient += (
                sums.satisfied * (1.0 - r) - (counts.told - sums.satisfied) * share * r * odds
            )
            information += counts.told * share * r * (1.0 - r) * odds
        return Evidence(float(total), sums.examined, counts.clicks, gradient, information)

    def maximise(self, evidence: Evidence, prior: FloatArray, strength: float) -> FloatArray:
        """The M-step of a free relevance under a beta prior of that mean and so many trials."""
        tiny = np.finfo(np.float64).tiny
        hits = evidence.successes + strength * prior
        misses = np.maximum(evidence.trials + strength - hits, 0.0)
        if self.form.satisfaction != "share":
            found: FloatArray = hits / np.maximum(hits + misses, tiny)
            return found
        # (hits + s) log r + misses log(1 - r) + u log(1 - phi r), where s clicks satisfied and u did
        # not: its derivative is 0 at the smaller root of a quadratic.
        phi, s = self.present.share, self._expected.satisfied
        u = self.counts.told - s
        top = hits + s
        a = phi * (top + misses + u)
        b = top * (1.0 + phi) + misses + phi * u
        root = 2.0 * top / np.maximum(b + np.sqrt(np.maximum(b * b - 4.0 * a * top, 0.0)), tiny)
        return np.minimum(root, 1.0)

    def settle(self) -> bool:
        """Where users stopped depends on the relevance of what they saw: not possible."""
        return False

    def step(self) -> None:
        """The M-step of the walk and the satisfaction, by the E-step of the latest `evidence`."""
        self.take(next_parameters(self.form, self.present, self.expected, self.share_terms))

    @property
    def expected(self) -> FloatArray:
        """The E-step of the latest `evidence`: what `next_parameters` needs, to be added up over logs.

        By position: walked on after a click, clicks that did not satisfy, walked on after a skip,
        skips; then, in one number each, clicks that satisfied and clicks that could have.
        """
        sums = self._expected
        satisfied = [sums.satisfied.sum(), self.counts.told.sum()]
        walks = sums.on_after_click, sums.unsatisfied, sums.on_after_skip, sums.skipped
        return np.concatenate((*walks, satisfied))

    def share_terms(self, share: float) -> FloatArray:
        """What `_next_share` adds up over documents, at some share."""
        rest, relevance = self.counts.told - self._expected.satisfied, self._relevance
        free = np.maximum(1.0 - share * relevance, _TINY)
        return np.array([(rest * relevance / free).sum(), (rest * (relevance / free) ** 2).sum()])

    def take(self, found: ChainParameters) -> None:
        """Take over what holds for all documents; the satisfaction of each is drawn towards its mean."""
        satisfaction = self.present.satisfaction
        if self.form.satisfaction == "document":
            told, strength = self.counts.told, found.strength
            satisfaction = (self._expected.satisfied + strength * found.typical) / (told + strength)
        self.present = replace(found, satisfaction=satisfaction)

    def estimate_strengths(self) -> None:
        """Estimate how much the satisfaction of a document resembles that of all."""
        if self.form.satisfaction == "document":
            s = self.present.satisfaction
            counted = informed_trials(
                s, self.satisfaction_information(), self.satisfaction_gradient()
            )
            strength = estimate_strength(*counted, np.full(len(s), self.present.typical))
            self.present = replace(self.present, strength=strength)

    def satisfaction_gradient(self) -> FloatArray:
        """The derivative of the log-likelihood in the logit of each document's satisfaction."""
        gradient: FloatArray = (
            self._expected.satisfied - self.counts.told * self.present.satisfaction
        )
        return gradient

    def satisfaction_information(self) -> FloatArray:
        """Fisher's information about that logit, by the E-step of the latest `evidence`.

        With s the satisfaction, q the chance of no further click without it and e = s + (1 - s) q, a
        click is the last with e, and its information is ``(1 - q) s / e`` times that of a trial of s.
        Of the sessions that ended with a click ``s / e`` were satisfied.
        """
        told = self.counts.told
        s = np.clip(self.present.satisfaction, 1e-6, 1.0 - 1e-6)
        ended = np.maximum(told - self.counts.passed, _TINY)
        by_satisfaction = np.clip(self._expected.satisfied / ended, s, 1.0)
        q = np.clip((s / by_satisfaction - s) / (1.0 - s), 0.0, 1.0)
        information: FloatArray = told * (1.0 - q) * by_satisfaction * s * (1.0 - s)
        return information

    def add_profiles(
        self, relevance: FloatArray, first: int, values: FloatArray, log: FloatArray
    ) -> None:
        """Add the log-likelihood at and above the last clicks, then below them."""
        counts, part = self.counts, slice(first, first + len(values))
        shared = self.form.satisfaction == "share"
        share = self.present.share if shared else -1.0
        clicks, skips = counts.clicks[part, None], (counts.examined - counts.clicks)[part, None]
        log += clicks * log_of(values) + skips * log_of(1.0 - values)
        if shared:
            log += counts.passed[part, None] * log_of(1.0 - share * values)
        longest = int(np.diff(counts.page_offsets).max(initial=0))
        below_profiles(counts, self.values(relevance), share, first, values, log, longest)

    def own(self) -> FloatArray:
        """The free parameters in one array: the walk, then the satisfaction."""
        now = self.present
        walk = now.after_click[:1] if self.form.walk == "one" else now.after_click
        satisfied = {
            "none": np.empty(0), "share": np.array([now.share]), "document": now.satisfaction,
        }  # fmt: skip
        return np.concatenate((walk, satisfied[self.form.satisfaction]))

    def set_own(self, values: FloatArray) -> None:
        """Take over parameters in the order of `own`."""
        now, n = self.present, self._n_positions
        if self.form.walk == "one":
            rest, one = values[1:], np.full(n, values[0])
            now = replace(now, after_click=one, after_skip=one)
        else:
            rest, now = values[n:], replace(now, after_click=values[:n])
        if self.form.satisfaction == "document":
            now = replace(now, satisfaction=rest)
        elif self.form.satisfaction == "share":
            now = replace(now, share=float(rest[0]))
        self.present = now

    def on(
        self,
        data: Impressions,
        mass: FloatArray | None = None,
        *,
        known: npt.NDArray[np.int64] | None = None,
    ) -> ChainLikelihood:
        """The same parameters on other clicks.

        ``known`` says which document of this log each document of ``data`` is, -1 for new ones. Without
        it a log of as many documents has the same, and another one has new ones. New documents satisfy
        like one without clicks.
        """
        clicks, present = LogClicks(data, mass, self.clicks.by_version), self.present
        if known is None and clicks.n_documents != self.n_documents:
            known = np.full(clicks.n_documents, -1)
        if known is not None and self.form.satisfaction == "document":
            satisfaction = np.append(present.satisfaction, present.typical)[known]
            present = replace(present, satisfaction=satisfaction)
        elif known is not None:
            present = replace(present, satisfaction=np.zeros(clicks.n_documents))
        return ChainLikelihood(clicks, self.form, n_positions=self._n_positions, parameters=present)

    def predict(self, relevance: FloatArray) -> Prediction:
        """P(click) of every result of every pattern."""
        rows = self.clicks.rows()
        place = np.minimum(rows.position, self._n_positions) - 1
        conditional, marginal = np.empty((2, len(rows.document)))
        chain_predictions(rows, place, self.values(relevance), conditional, marginal)
        return Prediction(rows.position, rows.clicked, rows.mass, conditional, marginal)

    def parameters(self) -> dict[str, Any]:
        """The chances to walk on, and the satisfaction."""
        now = self.present
        found: dict[str, Any] = {}
        if self.form.walk == "one":
            found["continuation"] = float(now.after_click[0])
        else:
            found["position"] = np.arange(1, self._n_positions + 1)
            found["continuation"] = now.after_click
        if self.form.satisfaction == "document":
            found["satisfaction"] = now.satisfaction
        elif self.form.satisfaction == "share":
            found["satisfaction_share"] = now.share
        return found

    def reached(self, relevance: FloatArray) -> FloatArray:
        """The impressions of each position, and how many of them were examined: two rows."""
        shown, reached = both = np.zeros((2, self._n_positions))
        reached_places(self.counts, self.values(relevance), shown, reached)
        return both

    def examination(self, relevance: FloatArray) -> dict[str, Any]:
        """Each position with its impressions and its mean chance of being examined over them."""
        shown, reached = self.reached(relevance)
        return {
            "position": np.arange(1, self._n_positions + 1),
            "examination": np.divide(reached, shown, out=np.zeros(len(shown)), where=shown > 0),
            "impressions": shown,
        }

    def unlinked_positions(self) -> list[int]:
        """None: what was clicked above tells how far users came, whether documents moved or not."""
        return []

    def position_bias(self, context: Any = None) -> PositionBias:
        """The mean chance of each position to be examined over the log, relative to position 1.

        The relevance is that of the latest `evidence`.
        """
        if context is not None:
            raise UsageError(f"context {context!r} is not known: this model has no contexts")
        found = self.examination(self._relevance)
        return examination_bias(found["examination"], impressions=found["impressions"])


def next_parameters(
    form: ChainForm,
    now: ChainParameters,
    expected: FloatArray,
    share_terms: Callable[[float], FloatArray],
) -> ChainParameters:
    """The M-step of all that documents share, by `ChainLikelihood.expected` of all clicks."""
    on, unsatisfied, on_after_skip, skipped = expected[:-2].reshape(4, -1)
    satisfied, told = expected[-2:].tolist()
    if form.walk == "one":
        walked, chances = on.sum() + on_after_skip.sum(), unsatisfied.sum() + skipped.sum()
        one = np.full(len(on), walked / chances if chances > 0 else START)
        now = replace(now, after_click=one, after_skip=one)
    else:
        mean = on.sum() / max(unsatisfied.sum(), _TINY)
        now = replace(now, after_click=(on + POOLING * mean) / (unsatisfied + POOLING))
    if form.satisfaction == "document":
        now = replace(now, typical=float(satisfied / max(told, _TINY)))
    elif form.satisfaction == "share":
        now = replace(now, share=_next_share(satisfied, share_terms, now.share))
    return now


def _next_share(
    satisfied: float, share_terms: Callable[[float], FloatArray], share: float
) -> float:
    """The share of relevance that satisfies, by Newton's method on its part of the likelihood."""
    for _ in range(20):
        falls, bends = share_terms(share).tolist()
        slope = satisfied / max(share, _TINY) - falls
        bend = satisfied / max(share, _TINY) ** 2 + bends
        if not bend > 0:
            break
        before, share = share, float(min(max(share + slope / bend, _TINY), 1.0))
        if abs(share - before) < 1e-10:
            break
    return share
