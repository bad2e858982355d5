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
from unskew.clicks.fitting.cells import States, pattern_rows
from unskew.clicks.fitting.chain import ChainForm, ChainLikelihood, ChainParameters
from unskew.clicks.fitting.likelihood import ClickLikelihood
from unskew.clicks.fitting.measures import measure
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
    rows = pattern_rows(data)
    if isinstance(model, UserBrowsingModel):
        states = States.by_last_click(N)
        table = model.examine(N)
        distance = np.where(states.last_click > 0, states.position - states.last_click, 0)
        slope = table[states.position - 1, distance]
        return AffineLikelihood(rows, states, n_documents=N, curves=(slope, np.zeros(len(slope))))
    if isinstance(model, PositionBasedModel | TrustBiasModel):
        slope, base = model.affine(N)
        curves = slope[0] + base[0], base[0]
        return AffineLikelihood(rows, States.by_position(N), n_documents=N, curves=curves)
    after_click, after_skip = model.continuation(N)  # type: ignore[attr-defined]
    share = getattr(model, "phi", 0.0)
    present = ChainParameters(model.satisfaction(GRADES), share, after_click, after_skip)  # type: ignore[attr-defined]
    walk = "after click" if isinstance(model, DependentClickModel) else "one"
    form = ChainForm("share" if isinstance(model, CascadeModel) else "document", walk)
    return ChainLikelihood(rows, form, n_documents=N, n_positions=N, parameters=present)


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
    # A document's satisfaction is drawn towards the mean, which may cost a little likelihood.
    slack = 0.5 if isinstance(model, DynamicBayesianModel) else 1e-9
    assert np.diff(totals).min() > -slack
