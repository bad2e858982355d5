"""Blend: how far to trust the debiased half, and one sum of trees out of all models.

    score = trust * debiased + (1 - trust) * undebiased

with the standardised scores of both halves, each the mean over its models. Held-out clicks cannot
choose the trust: their likelihood always asks for the whole examination, and so does any estimate of
ranking quality that is corrected by that examination. What can be seen is what debiasing does. Where
position bias has coloured a ranker that ignores positions, its scores follow the order in which the
results were shown, and debiasing takes much of that away:

    trust = 2 * (1 - order followed after debiasing / order followed before)    between 0 and 1

Where lists were sorted by a relevance that the features do not have, or where there is no bias, the
scores follow the lists as before: what the examination took up is then not bias, and the trust is
small. Lists that follow nothing cannot mislead, and clicks must be many: see `trust_in_debiasing`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from unskew.choose.candidates import BLIND, DEBIASED, FINISH, RAW
from unskew.choose.found import Found, Member
from unskew.choose.judge import Judge

# The trust for each share of the order that debiasing took out of the scores.
STEEPNESS = 2.0
# Lists that follow the scores less than this tell examination from relevance by themselves.
UNORDERED = 0.2
# With so many clicks the trust is half of what it would be with endlessly many.
HALF_TRUSTED = 1_000.0
# The trust is rounded to multiples of this.
STEP = 0.05
# What LambdaMART counts in each half: on posterior relevance, and on raw clicks.
FINISHING, UNDEBIASED_LAMBDAMART = 1 / 3, 1 / 3
# The finish must raise the DCG of held-out queries by so many standard errors.
CLEARLY = 3.0


@dataclass(frozen=True)
class Blend:
    """One way to add up the parts of a search, and what the held-out clicks say of it.

    Attributes
    ----------
    weights
        What each part counts; a part that is not named counts nothing.
    value, error
        Its doubly robust DCG on held-out queries, and the standard error of its distance to the first
        one; NaN where nothing was measured.

    """

    weights: Mapping[str, float]
    value: float = np.nan
    error: float = np.nan

    @property
    def trust(self) -> float:
        """The share of the debiased half."""
        return trust_of(self.weights)


def trust_of(weights: Mapping[str, float]) -> float:
    """The share of the debiased half in the weights of the parts."""
    return float(sum(w for part, w in weights.items() if part not in {BLIND, RAW}))


@dataclass(frozen=True)
class Trust:
    """How far the debiased half is trusted, and what it follows from.

    ``before`` and ``after`` say how far the order of the lists is followed by the scores of the half
    that ignores positions and by those of the debiased one.
    """

    value: float
    before: float
    after: float
    clicks: float


def trust_in_debiasing(before: float, after: float, clicks: float) -> Trust:
    """The trust that follows from how far both halves follow the order of the lists."""
    share = STEEPNESS * (1.0 - after / before) if before > 0 else 1.0
    share = float(np.clip(share, 0.0, 1.0))
    # Lists without an order to follow are as good as shuffled ones.
    free = float(np.clip(1.0 - before / UNORDERED, 0.0, 1.0))
    share += (1.0 - share) * free
    share *= clicks / (clicks + HALF_TRUSTED)
    return Trust(round(STEP * round(share / STEP), 2), before, after, clicks)


def blend_weights(trust: float, *, finished: bool, raw: bool) -> dict[str, float]:
    """The weights of the parts for a share of the debiased half."""
    finish = FINISHING if finished else 0.0
    pairs = UNDEBIASED_LAMBDAMART if raw else 0.0
    weights = {
        BLIND: (1.0 - trust) * (1.0 - pairs), RAW: (1.0 - trust) * pairs,
        DEBIASED: trust * (1.0 - finish), FINISH: trust * finish,
    }  # fmt: skip
    return {name: weight for name, weight in weights.items() if weight > 0}


def choose_blend(judge: Judge, found: Found) -> tuple[Blend, list[Blend], Trust | None]:
    """The blend to take, those that were compared with it, and where its trust comes from."""
    common = set(found.of(BLIND))
    raw = bool(common) and set(found.of(RAW)) >= common
    if not found.of(DEBIASED):
        alone = Blend(blend_weights(0.0, finished=False, raw=raw))
        return alone, [alone], None
    both = sorted(common & set(found.of(DEBIASED)))
    if not both:
        # The models of the two halves judge each other on no query in common.
        middle = Blend(blend_weights(0.5, finished=False, raw=False))
        return middle, [middle], None
    raw, finished = (set(found.of(part)) >= set(both) for part in (RAW, FINISH))
    trust = trust_in_debiasing(
        judge.order_followed(BLIND, both), judge.order_followed(DEBIASED, both),
        float(judge.data.n_clicks),
    )  # fmt: skip
    shares = [trust.value, *(share for share in (0.0, 1.0) if share != trust.value)]
    weights = [blend_weights(share, finished=finished, raw=raw) for share in shares]
    blends = measured(judge, both, weights)
    return blends[0], blends, trust


def finish_helps(judge: Judge, found: Found) -> bool:
    """Whether LambdaMART on posterior relevance clearly raises the DCG, on the folds that have it."""
    folds = sorted(found.of(FINISH))
    weights = [blend_weights(1.0, finished=finished, raw=False) for finished in (True, False)]
    with_it, without = measured(judge, folds, weights)
    return with_it.value - without.value > CLEARLY * without.error


def measured(
    judge: Judge, folds: Sequence[int], weights: Sequence[Mapping[str, float]]
) -> list[Blend]:
    """Each blend with its mean DCG and the standard error of its distance to the first."""
    queries = judge.queries_of(folds)
    values = np.array([judge.per_query(judge.blended(one))[queries] for one in weights])
    errors = (
        (values[0] - values).std(axis=1, ddof=1) / np.sqrt(len(queries))
        if len(queries) > 1
        else [np.inf] * len(values)
    )
    return [
        Blend(dict(one), float(value.mean()), float(error))
        for one, value, error in zip(weights, values, errors, strict=True)
    ]


def tree_weights(found: Found, weights: Mapping[str, float]) -> list[tuple[Member, float]]:
    """Every model of the blend with the factor of its trees.

    The sum is scaled to the spread of the first part's logits, so that the score stays one.
    """
    parts = [found.of(part) for part in weights]
    first = next(p for p, part in zip(parts, weights, strict=True) if part != FINISH)
    unit = float(np.mean([member.spread for member in first.values()]))
    return [
        (member, unit * weight / len(members) / member.spread if member.spread > 0 else 0.0)
        for members, weight in zip(parts, weights.values(), strict=True)
        for member in members.values()
    ]
