"""Blend: how far to trust the debiased half, and one sum of trees out of all models.

    score = trust * debiased + (1 - trust) * undebiased

with the standardised scores of both halves, each the mean over its models. Held-out clicks cannot
choose the trust: their likelihood always asks for the whole examination, and any estimate of ranking
quality that is corrected by that examination leans towards it. It follows from how far models agree
that saw no query in common. Two models of one half share their signal and not their noise; two of
different halves share only the signal that both halves have. The weights are those of the sum that
comes closest to the relevance, which is the signal of the debiased half but for a mistake of its own:

    [debiased, undebiased] = inverse(covariance of both halves) * [their covariance with the relevance]

The own mistake is what all its models have in common and no other half has, because few queries cannot
teach what many features could say, and lists show but some documents: o / (o + queries for each feature)
of the signal. An undebiased half that says the same with less noise gets most, one that says something
else gets little, however sure it is. Two things take the trust down further, because the debiased half
may then not be the one without bias. The ranker that was logged may have known more about relevance than
the features tell (`unskew.choose.hidden_order`): the examination took up relevance. And trees of few
queries miss much of what many features tell, with the same effect.

At last the doubly robust DCG of held-out queries is asked. It leans towards the debiased half. So where
even it sees next to no gain in that half, there is none, and half of the trust is left, as two halves
that are equally good are best added up; where the gain is beyond doubt, half of the trust that is
missing is added.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from unskew.choose.candidates import BLIND, DEBIASED, FINISH, LARGER, RAW
from unskew.choose.found import Found, Member
from unskew.choose.hidden_order import hidden_share
from unskew.choose.judge import Agreement, Judge

# The part of the noise of a model of two fifths of the queries that is left in a half, the mean of five
# models of four fifths; of ten with the larger trees.
NOISE_LEFT, NOISE_LEFT_BY_TEN = 0.3, 0.15
# With so many queries for each feature, half of the signal of the debiased half is its own mistake.
OWN_MISTAKE = 0.5
# If so much of the logged order is hidden from the features nothing is trusted, up to so much all of it.
ALL_HIDDEN, LITTLE_HIDDEN = 0.85, 0.6
# What the debiased half must raise the DCG of held-out queries by: there is no gain if it is less even
# with so many standard errors more than measured, and it is sure if it is more with as many less.
LEAST_GAIN, DOUBTFUL_ERRORS = 0.003, 2.0
# The part of the missing trust that a sure gain adds, and that of the trust that is left without one.
ADDED, LEFT_WITHOUT_GAIN = 0.5, 0.5
# With fewer queries for each feature than this the trust is less, by the square root of their share.
QUERIES_A_FEATURE = 2
# The trust is rounded to multiples of this.
STEP = 0.05
# What LambdaMART counts in each half: on posterior relevance, and on raw clicks.
FINISHING, UNDEBIASED_LAMBDAMART = 1 / 3, 1 / 2
# What larger trees count among the models of the debiased likelihood.
LARGER_TREES = 1 / 2
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


class Gain(NamedTuple):
    """By how much the debiased half raises the DCG of held-out queries over the other, and its error.

    Doubly robust, as shares of the DCG of the undebiased half.
    """

    value: float
    error: float

    @property
    def possible(self) -> float:
        """1 where there may be a gain worth having, 0 where there is none for sure."""
        return _not_refuted(self._errors_above_least())

    @property
    def left(self) -> float:
        """How much of the trust is left: all of it where there may be a gain."""
        return LEFT_WITHOUT_GAIN + (1.0 - LEFT_WITHOUT_GAIN) * self.possible

    @property
    def sure(self) -> float:
        """1 where there is a gain worth having for sure, 0 where there may be none."""
        return 1.0 - _not_refuted(-self._errors_above_least())

    def _errors_above_least(self) -> float:
        above = self.value - LEAST_GAIN
        return above / self.error if self.error > 0 else float(np.copysign(np.inf, above))


def _not_refuted(errors: float) -> float:
    """1 unless a measurement lies below what is claimed; half at some standard errors below it."""
    return float(min(1.0, ndtr(DOUBTFUL_ERRORS + errors) / ndtr(DOUBTFUL_ERRORS)))


@dataclass(frozen=True)
class Trust:
    """How far the debiased half is trusted, and what it follows from.

    ``alike`` is the correlation of both halves without their noise, ``noise`` the share of noise in a
    model of the debiased half, ``own`` the share of its signal that is taken for its own mistake,
    ``hidden`` the share of the logged order that features do not tell, ``gain`` what held-out clicks
    say for the debiased half, ``enough`` how far the queries suffice.
    """

    value: float
    alike: float
    noise: float
    own: float
    hidden: float
    gain: Gain
    enough: float


def trust_in_debiasing(
    agreement: Agreement,
    hidden: float,
    gain: Gain,
    queries_a_feature: float,
    noise_left: float = NOISE_LEFT,
) -> Trust:
    """The trust by how far models agree, what takes it down, and what held-out clicks say of it."""
    first, second = max(agreement.debiased, 0.0), max(agreement.undebiased, 0.0)
    both, noise = agreement.both, 1.0 - np.array([first, second])
    variance = np.array([first, second]) + noise_left * noise
    shared = both + noise_left * (agreement.same - both)
    covariance = np.array([[variance[0], shared], [shared, variance[1]]])
    own = OWN_MISTAKE / (OWN_MISTAKE + queries_a_feature)
    with_relevance = [(1.0 - own) * first, both]
    # Standardised scores are what is added up.
    weights = np.linalg.lstsq(covariance, with_relevance)[0].clip(0.0) * np.sqrt(variance)
    share = weights[0] / weights.sum() if weights.sum() > 0 else 0.5
    enough = float(np.sqrt(min(queries_a_feature / QUERIES_A_FEATURE, 1.0)))
    known = known_order(hidden)
    share *= enough * known * gain.left
    share += (1.0 - share) * ADDED * known * gain.sure
    signals = float(np.sqrt(first * second))
    alike = float(np.clip(both / signals, 0.0, 1.0)) if signals > 0 else 0.0
    value = round(STEP * round(share / STEP), 2)
    return Trust(value, alike, float(noise[0]), own, hidden, gain, enough)


def known_order(hidden: float) -> float:
    """How much of the trust is left if so much of the logged order is hidden."""
    return float(np.clip((ALL_HIDDEN - hidden) / (ALL_HIDDEN - LITTLE_HIDDEN), 0.0, 1.0))


def blend_weights(trust: float, more: Collection[str] = ()) -> dict[str, float]:
    """The weights of the parts for a share of the debiased half.

    ``more`` says which parts there are beside one for each half.
    """
    finish = FINISHING if FINISH in more else 0.0
    pairs = UNDEBIASED_LAMBDAMART if RAW in more else 0.0
    larger = LARGER_TREES if LARGER in more else 0.0
    likelihood = trust * (1.0 - finish)
    weights = {
        BLIND: (1.0 - trust) * (1.0 - pairs), RAW: (1.0 - trust) * pairs,
        DEBIASED: likelihood * (1.0 - larger), LARGER: likelihood * larger, FINISH: trust * finish,
    }  # fmt: skip
    return {name: weight for name, weight in weights.items() if weight > 0}


def choose_blend(judge: Judge, found: Found) -> tuple[Blend, list[Blend], Trust | None]:
    """The blend to take, those that were compared with it, and where its trust comes from."""
    common = set(found.of(BLIND))
    if not found.of(DEBIASED):
        alone = Blend(blend_weights(0.0, _complete(found, common)))
        return alone, [alone], None
    both = sorted(common & set(found.of(DEBIASED)))
    more = _complete(found, both)
    undebiased = blend_weights(0.0, [RAW])
    agreement = judge.agreement(undebiased)
    if agreement is None or RAW not in more:
        # Nothing tells how far two models of one half agree.
        middle = Blend(blend_weights(0.5, more))
        return middle, [middle], None
    data, folds = judge.data, judge.folds
    queries_a_feature = folds.n_clicked / max(data.features.n_features, 1)
    hidden = hidden_share(data, folds.of_query, judge.blended(undebiased))
    gain = _gain(*measured(judge, both, [blend_weights(share, more) for share in (1.0, 0.0)]))
    left = NOISE_LEFT_BY_TEN if LARGER in more else NOISE_LEFT
    trust = trust_in_debiasing(agreement, hidden, gain, queries_a_feature, left)
    shares = [trust.value, *(share for share in (0.0, 1.0) if share != trust.value)]
    weights = [blend_weights(share, more) for share in shares]
    blends = measured(judge, both, weights)
    return blends[0], blends, trust


def _gain(debiased: Blend, undebiased: Blend) -> Gain:
    """What the one raises the DCG by, nothing known where there is no DCG to raise."""
    if not undebiased.value > 0:
        return Gain(0.0, np.inf)
    return Gain(
        (debiased.value - undebiased.value) / undebiased.value, undebiased.error / undebiased.value
    )


def _complete(found: Found, folds: Collection[int]) -> list[str]:
    """Which further parts have models of all these folds."""
    return [part for part in (RAW, LARGER, FINISH) if folds and set(found.of(part)) >= set(folds)]


def finish_helps(judge: Judge, found: Found) -> bool:
    """Whether LambdaMART on posterior relevance clearly raises the DCG, on the folds that have it."""
    folds = sorted(found.of(FINISH))
    larger = [part for part in _complete(found, folds) if part == LARGER]
    weights = [blend_weights(1.0, more) for more in ([FINISH, *larger], larger)]
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
