"""Blend: how far to trust the debiased half, and one sum of trees out of all models.

    score = trust * debiased + (1 - trust) * undebiased

with the standardised scores of both halves, each the mean over its models. Held-out clicks cannot
choose the trust: their likelihood always asks for the whole examination, and so does any estimate of
ranking quality that is corrected by that examination. It follows from how far models agree that saw no
query in common. Two models of one half share their signal and not their noise; two of different halves
share only the signal that both halves have. The weights are those of the sum that comes closest to the
signal of the debiased half, the one without bias:

    [debiased, undebiased] = inverse(covariance of both halves) * [their covariance with that signal]

An undebiased half that says the same with less noise gets most, one that says something else gets
nothing, however sure it is. Two things take the trust down, because the debiased half may then not be
the one without bias. The ranker that was logged may have known more about relevance than the features
tell (`unskew.choose.hidden_order`): the examination took up relevance. And trees of few queries miss
much of what many features tell, with the same effect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from unskew.choose.candidates import BLIND, DEBIASED, FINISH, RAW
from unskew.choose.found import Found, Member
from unskew.choose.hidden_order import hidden_share
from unskew.choose.judge import Agreement, Judge

# The part of the noise of a model of two fifths of the queries that is left in a half, the mean of five
# models of four fifths.
NOISE_LEFT = 0.3
# If so much of the logged order is hidden from the features nothing is trusted, up to so much all of it.
ALL_HIDDEN, LITTLE_HIDDEN = 0.85, 0.6
# With fewer queries for each feature than this the trust is less, by the square root of their share.
QUERIES_A_FEATURE = 2
# The trust is rounded to multiples of this.
STEP = 0.05
# What LambdaMART counts in each half: on posterior relevance, and on raw clicks.
FINISHING, UNDEBIASED_LAMBDAMART = 1 / 3, 1 / 2
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

    ``alike`` is the correlation of both halves without their noise, ``noise`` the share of noise in a
    model of the debiased half, ``hidden`` the share of the logged order that features do not tell,
    ``enough`` how far the queries suffice.
    """

    value: float
    alike: float
    noise: float
    hidden: float
    enough: float


def trust_in_debiasing(agreement: Agreement, hidden: float, queries_a_feature: float) -> Trust:
    """The trust by how far models agree, what features do not tell of the order, and the queries."""
    first, second = max(agreement.debiased, 0.0), max(agreement.undebiased, 0.0)
    both, noise = agreement.both, 1.0 - np.array([first, second])
    variance = np.array([first, second]) + NOISE_LEFT * noise
    shared = both + NOISE_LEFT * (agreement.same - both)
    covariance = np.array([[variance[0], shared], [shared, variance[1]]])
    # Standardised scores are what is added up.
    weights = np.linalg.lstsq(covariance, [first, both])[0].clip(0.0) * np.sqrt(variance)
    share = weights[0] / weights.sum() if weights.sum() > 0 else 0.5
    enough = float(np.sqrt(min(queries_a_feature / QUERIES_A_FEATURE, 1.0)))
    share *= enough * known_order(hidden)
    signals = float(np.sqrt(first * second))
    alike = float(np.clip(both / signals, 0.0, 1.0)) if signals > 0 else 0.0
    return Trust(round(STEP * round(share / STEP), 2), alike, float(noise[0]), hidden, enough)


def known_order(hidden: float) -> float:
    """How much of the trust is left if so much of the logged order is hidden."""
    return float(np.clip((ALL_HIDDEN - hidden) / (ALL_HIDDEN - LITTLE_HIDDEN), 0.0, 1.0))


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
    raw, finished = (set(found.of(part)) >= set(both) for part in (RAW, FINISH))
    undebiased = blend_weights(0.0, finished=False, raw=True)
    agreement = judge.agreement(undebiased)
    if agreement is None or not raw:
        # Nothing tells how far two models of one half agree.
        middle = Blend(blend_weights(0.5, finished=False, raw=raw))
        return middle, [middle], None
    data, folds = judge.data, judge.folds
    queries_a_feature = folds.n_clicked / max(data.features.n_features, 1)
    hidden = hidden_share(data, folds.of_query, judge.blended(undebiased))
    trust = trust_in_debiasing(agreement, hidden, queries_a_feature)
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
