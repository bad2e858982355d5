"""The likelihoods of click models against their definitions, pattern by pattern."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from unskew.clicks import (
    CascadeModel,
    ClickModel,
    DependentClickModel,
    DynamicBayesianModel,
    PositionBasedModel,
    TrustBiasModel,
    UserBrowsingModel,
)
from unskew.clicks.fitting.affine import AffineLikelihood
from unskew.clicks.fitting.cells import States, row_states
from unskew.clicks.fitting.chain import ChainParameters
from unskew.clicks.fitting.likelihood import ClickLikelihood
from unskew.clicks.fitting.log_clicks import LogClicks
from unskew.clicks.fitting.measures import measure
from unskew.clicks.fitting.posterior import posterior_of
from unskew.clicks.fitting.reference import expect_affine, expect_chain
from unskew.clicks.reference import story
from unskew.log.impressions import Impressions

GRADES = [2, 0, 3, 1]
N = len(GRADES)
DOCS = ["a", "b", "c", "d"]


def log_of_patterns(patterns: list[tuple[int, ...]], times: list[int]) -> Impressions:
    """One page of four documents, clicked in the given ways so many times each."""
    rows = [
        (session, doc, k + 1, pattern[k])
        for session, pattern in enumerate(
            pattern for pattern, count in zip(patterns, times, strict=True) for _ in range(count)
        )
        for k, doc in enumerate(DOCS)
    ]
    session, doc, position, click = zip(*rows, strict=True)
    return Impressions.from_arrays(
        None, click, session=session, query=["q"] * len(rows), doc=doc, position=position
    )


def likelihood_of(model: ClickModel, data: Impressions) -> ClickLikelihood:
    """The likelihood with the parameters that the simulating model has."""
    clicks = LogClicks(data)
    if isinstance(model, UserBrowsingModel):
        states = States.by_last_click(N)
        table = model.examine(N)
        distance = np.where(states.last_click > 0, states.position - states.last_click, 0)
        slope = table[states.position - 1, distance]
        return AffineLikelihood(clicks, states, curves=(slope, np.zeros(len(slope))))
    if isinstance(model, PositionBasedModel | TrustBiasModel):
        slope, base = model.affine(N)
        curves = slope[0] + base[0], base[0]
        with_base = isinstance(model, TrustBiasModel)
        states = States.by_position(N)
        return AffineLikelihood(clicks, states, curves=curves, with_base=with_base)
    found = type(model).likelihood(clicks, n_positions=N)
    after_click, after_skip = model.continuation(N)
    share = getattr(model, "phi", 0.0)
    found.present = ChainParameters(model.satisfaction(GRADES), share, after_click, after_skip)
    return found


MODELS = [
    PositionBasedModel(), TrustBiasModel(), UserBrowsingModel(), CascadeModel(beta=0.7, phi=0.4),
    DynamicBayesianModel(), DependentClickModel(),
]  # fmt: skip


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_every_pattern_has_the_probability_of_its_story(model: ClickModel) -> None:
    """The log-likelihood of one session is the logarithm of what the model's definition gives it."""
    relevance = model.attraction(GRADES)
    for pattern in product([0, 1], repeat=N):
        data = log_of_patterns([pattern], [1])
        found = likelihood_of(model, data).evidence(relevance).log_likelihood
        assert np.exp(found) == pytest.approx(story(model, GRADES, pattern), rel=1e-9, abs=1e-11)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_the_gradient_is_that_of_the_likelihood(model: ClickModel) -> None:
    """The gradient in the logit of relevance agrees with finite differences."""
    rng = np.random.default_rng(1)
    patterns = list(product([0, 1], repeat=N))
    data = log_of_patterns(patterns, rng.integers(1, 5, len(patterns)).tolist())
    likelihood = likelihood_of(model, data)
    logit = rng.normal(size=N)

    def total(z: np.ndarray) -> float:
        return likelihood.evidence(1 / (1 + np.exp(-z))).log_likelihood

    gradient = likelihood.evidence(1 / (1 + np.exp(-logit))).gradient
    for d in range(N):
        h = np.zeros(N)
        h[d] = 1e-5
        slope = (total(logit + h) - total(logit - h)) / 2e-5
        assert gradient[d] == pytest.approx(slope, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_predictions_multiply_to_the_likelihood(model: ClickModel) -> None:
    """The conditional chances of a session's clicks multiply to its probability, the marginal sum up."""
    rng = np.random.default_rng(2)
    patterns = list(product([0, 1], repeat=N))
    times = rng.integers(1, 5, len(patterns)).tolist()
    data = log_of_patterns(patterns, times)
    relevance = model.attraction(GRADES)
    likelihood = likelihood_of(model, data)
    found = likelihood.predict(relevance)
    measures = measure(found)
    total = likelihood.evidence(relevance).log_likelihood
    assert measures.log_likelihood * measures.n_results == pytest.approx(total, rel=1e-9)
    chances = np.array([story(model, GRADES, pattern) for pattern in patterns])
    expected = chances @ np.array(patterns)
    assert found.marginal[:N] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_em_never_lowers_the_likelihood(model: ClickModel) -> None:
    """Each EM step without a prior makes the clicks at least as likely as before."""
    rng = np.random.default_rng(3)
    patterns = list(product([0, 1], repeat=N))
    data = log_of_patterns(patterns, rng.integers(1, 9, len(patterns)).tolist())
    likelihood = likelihood_of(model, data)
    relevance = np.full(N, 0.4)
    totals = []
    for _ in range(30):
        evidence = likelihood.evidence(relevance)
        totals.append(evidence.log_likelihood)
        relevance = likelihood.maximise(evidence, np.full(N, 0.5), 0.0)
        likelihood.step()
    # Satisfaction and states are drawn towards their means, which may cost a little likelihood.
    pooled = isinstance(model, DynamicBayesianModel | DependentClickModel | UserBrowsingModel)
    slack = 0.5 if pooled else 1e-9
    assert np.diff(totals).min() > -slack


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_the_e_step_is_that_of_the_enumeration(model: ClickModel) -> None:
    """Expected counts are those that trying every hidden state gives, pattern by pattern."""
    relevance = model.attraction(GRADES)
    for pattern in product([0, 1], repeat=N):
        likelihood = likelihood_of(model, log_of_patterns([pattern], [3]))
        evidence = likelihood.evidence(relevance)
        if isinstance(likelihood, AffineLikelihood):
            state = row_states(likelihood.clicks, likelihood.clicks.rows(), likelihood.states)
            slope, base = likelihood.slope[state], likelihood.base[state]
            chance, relevant = expect_affine(relevance, slope, base, pattern)
            assert evidence.trials == pytest.approx([3.0] * N)
            assert evidence.successes == pytest.approx(3 * np.array(relevant), abs=1e-9)
        else:
            values = likelihood.values(relevance)
            expected = expect_chain(*values, [bool(click) for click in pattern])
            chance = expected.probability
            for name in ("satisfied", "unsatisfied", "on_after_click", "skipped", "on_after_skip"):
                found = getattr(likelihood._expected, name)
                assert found == pytest.approx(3 * np.array(getattr(expected, name)), abs=1e-9), name
            assert evidence.trials == pytest.approx(3 * np.array(expected.examined), abs=1e-9)
            assert evidence.successes == pytest.approx(3 * np.array(pattern))
        assert np.exp(evidence.log_likelihood / 3) == pytest.approx(chance, rel=1e-9)
        brief = likelihood.evidence(relevance, whole=False)
        for name in ("trials", "successes", "gradient", "information"):
            np.testing.assert_array_equal(
                getattr(brief, name), getattr(evidence, name), err_msg=name
            )
        assert np.isnan(brief.log_likelihood)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_the_posterior_is_the_integral(model: ClickModel) -> None:
    """Mean and spread agree with integrating prior times likelihood over one relevance at a time."""
    rng = np.random.default_rng(4)
    patterns = list(product([0, 1], repeat=N))
    # A few sessions, and so many that the posterior is narrow.
    for times in (rng.integers(0, 2, len(patterns)), rng.integers(0, 2000, len(patterns))):
        times[-1] = 1
        chosen = [patterns[k] for k in np.flatnonzero(times)]
        likelihood = likelihood_of(model, log_of_patterns(chosen, times[times > 0].tolist()))
        relevance, prior, strength = model.attraction(GRADES), np.array([0.2, 0.4, 0.5, 0.9]), 6.0
        found = posterior_of(likelihood, relevance, prior, strength)
        for d in range(N):
            wide = np.linspace(-14, 14, 2001)
            log = log_posterior(likelihood, relevance, d, wide, prior[d], strength)
            z = wide[log.argmax()] + np.linspace(-1, 1, 2001) * (14 if times.sum() < 100 else 6)
            log = log_posterior(likelihood, relevance, d, z, prior[d], strength)
            weight = np.exp(log - log.max())
            r = 1 / (1 + np.exp(-z))
            mean = (weight * r).sum() / weight.sum()
            spread = np.sqrt((weight * (r - mean) ** 2).sum() / weight.sum())
            assert found.mean[d] == pytest.approx(mean, abs=1e-4)
            assert found.spread[d] == pytest.approx(spread, rel=5e-3, abs=1e-5)


def log_posterior(
    likelihood: ClickLikelihood, relevance: np.ndarray, d: int, z: np.ndarray, m: float, s: float
) -> np.ndarray:
    """The logarithm of prior times likelihood over the logit of one relevance."""
    found = []
    for value in z:
        r = relevance.copy()
        r[d] = 1 / (1 + np.exp(-value))
        total = likelihood.evidence(r).log_likelihood
        found.append(total + s * (m * np.log(r[d]) - (1 - m) * np.log1p(np.exp(value))))
    return np.array(found)


def test_a_document_without_impressions_keeps_its_prior() -> None:
    """Its posterior is the prior: a beta distribution of that mean and strength."""
    data = log_of_patterns([(1, 0, 0, 0)], [5])
    unseen = np.zeros(len(data.patterns))
    likelihood = AffineLikelihood(LogClicks(data, unseen), States.by_position(N))
    found = posterior_of(likelihood, np.full(N, 0.5), np.full(N, 0.3), 8.0)
    assert found.mean == pytest.approx(np.full(N, 0.3), abs=1e-3)
    assert found.spread == pytest.approx(np.full(N, np.sqrt(0.3 * 0.7 / 9)), rel=1e-2)
