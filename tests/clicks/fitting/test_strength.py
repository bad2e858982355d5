"""How much documents resemble each other, estimated from their trials."""

from __future__ import annotations

import numpy as np
import pytest

from fitting_logs import shuffled_log
from unskew.clicks import click_model, fit_click_model
from unskew.clicks.fitting.strength import estimate_strength, informed_trials


@pytest.mark.parametrize("strength", [2.0, 8.0, 50.0])
def test_the_strength_of_a_beta_prior_comes_back(strength: float) -> None:
    """Within a fifth, from 2,000 documents of twenty trials and a mean that is known."""
    rng = np.random.default_rng(0)
    mean = np.full(2_000, 0.3)
    trials = rng.integers(10, 30, size=2_000).astype(float)
    chance = rng.beta(strength * mean, strength * (1 - mean))
    found = estimate_strength(trials, rng.binomial(trials.astype(int), chance).astype(float), mean)
    assert found == pytest.approx(strength, rel=0.3)


def test_plain_trials_are_worth_themselves() -> None:
    """A coin thrown n times has the information n r (1 - r): that is n trials and its heads."""
    trials, heads, r = np.array([10.0, 4.0]), np.array([3.0, 4.0]), np.array([0.4, 0.5])
    found = informed_trials(r, trials * r * (1 - r), heads - trials * r)
    assert found[0] == pytest.approx(trials)
    assert found[1] == pytest.approx(heads)


def test_satisfaction_that_is_the_same_everywhere_is_drawn_together() -> None:
    """Documents that all satisfy alike get a higher strength than documents that differ."""
    same, _ = shuffled_log(click_model("dcm", lambdas=(0.6,)), sessions=4_000)
    differ, _ = shuffled_log(click_model("dbn"), sessions=4_000)
    strengths = [
        fit_click_model(data, "dbn").likelihood.present.strength for data in (same, differ)
    ]
    assert strengths[0] > 3 * strengths[1]


def test_the_information_about_satisfaction_is_that_of_the_likelihood() -> None:
    """Known walks: the trials of the strength equal minus the second derivative, on average."""
    data, _ = shuffled_log(click_model("dbn"), sessions=4_000)
    fitted = fit_click_model(data, "dbn")
    likelihood, relevance = fitted.likelihood, fitted.relevance
    likelihood.evidence(relevance)
    information = likelihood.satisfaction_information()
    own, h = likelihood.own(), 1e-4

    def slope(change: float) -> np.ndarray:
        moved = own.copy()
        odds = np.log(own[1:] / (1 - own[1:])) + change
        moved[1:] = 1 / (1 + np.exp(-odds))
        likelihood.set_own(moved)
        likelihood.evidence(relevance)
        return likelihood.satisfaction_gradient()

    curvature = -(slope(h) - slope(-h)) / (2 * h)
    likelihood.set_own(own)
    assert information.sum() == pytest.approx(curvature.sum(), rel=0.1)
