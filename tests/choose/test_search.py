"""The search: what decides between click models."""

from __future__ import annotations

import numpy as np
import pytest

from unskew.choose.candidates import LARGEST_RATE, LIKELIHOOD, MANY_ROUNDS, debiased, quickened
from unskew.choose.found import Trial
from unskew.choose.search import CLEARLY_BETTER, _clearly_better, _explained


def trial(log_likelihood: float | None, gain: float | None, click_model: str = "pbm") -> Trial:
    """A training that fared like this."""
    settings = {"click_model": click_model}
    return Trial("", "debiased", 0, settings, 1, 0.0, log_likelihood, gain)


def test_what_features_add_counts_twice() -> None:
    """The log-likelihood is a mean over so many impressions, the gain a sum."""
    assert _explained(trial(-0.25, 30.0), 1000.0) == pytest.approx(-220.0)
    # Parameters that take up in what queries differ raise the one by 40 and lower the other by 100.
    assert _explained(trial(-0.25, 130.0), 1000.0) > _explained(trial(-0.21, 30.0), 1000.0)


@pytest.mark.parametrize("missing", [(None, None), (-0.25, None), (None, 30.0)])
def test_nothing_is_explained(missing: tuple[float | None, float | None]) -> None:
    """A training that no round of was judged loses against every other."""
    assert _explained(trial(*missing), 1000.0) == -np.inf


@pytest.mark.parametrize(
    ("click_model", "more_likely", "gain", "taken"),
    [
        ("cascade", 0.1, 30.0, True),
        ("cascade", 0.1, 0.0, True),
        ("cascade", 0.001, 30.0, False),
        ("ubm", 0.1, 30.0, False),
        ("ubm", 0.1, 30.0 + CLEARLY_BETTER, False),
        ("ubm", 0.1, 31.0 + CLEARLY_BETTER, True),
        ("ubm", -0.1, 31.0 + CLEARLY_BETTER, False),
    ],
)
def test_a_later_click_model(
    click_model: str, more_likely: float, gain: float, taken: bool
) -> None:
    """It must explain clearly more; by the features too, if it knows the clicks above a result."""
    first, later = trial(-0.25, 30.0), trial(-0.25 + more_likely, gain, click_model)
    assert _clearly_better(later, first, 1000.0) == taken


def test_larger_steps_after_many_rounds() -> None:
    """About so many rounds are enough: twice as many ask for steps of twice the size, up to a limit."""
    chosen, rate = debiased("pbm", 7, "click-model"), LIKELIHOOD["learning_rate"]
    assert quickened(chosen, MANY_ROUNDS) is chosen
    assert quickened(chosen, 1) is chosen
    more = quickened(chosen, int(1.2 * MANY_ROUNDS))
    assert more.settings == {**chosen.settings, "learning_rate": pytest.approx(1.2 * rate)}
    assert (more.part, more.ranker) == (chosen.part, chosen.ranker)
    assert quickened(chosen, 100 * MANY_ROUNDS).settings["learning_rate"] == LARGEST_RATE
