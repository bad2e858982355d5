"""Click models compared on held-out sessions."""

from __future__ import annotations

import json

import numpy as np
import pytest

from fitting_logs import moving_pages, shuffled_log
from unskew.clicks import CLICK_MODELS, click_model, compare_click_models
from unskew.clicks.fitting.comparison import held_out_mass
from unskew.errors import DataError, UsageError


@pytest.mark.parametrize("truth", ["pbm", "ubm", "dcm"])
def test_the_model_that_clicked_predicts_best(truth: str) -> None:
    """Of the models that differ from it, none predicts held-out clicks better than the true one."""
    data, _ = shuffled_log(click_model(truth), sessions=20_000)
    outcomes = compare_click_models(data, models=["pbm", "ubm", "dcm"])
    best = outcomes[0].measures.log_likelihood
    own = next(one for one in outcomes if one.name == truth).measures.log_likelihood
    # The user browsing model contains the position-based one: they may come out alike.
    assert own == pytest.approx(best, abs=5e-4)


def test_a_model_that_does_not_fit_says_why_and_comes_last() -> None:
    """The others have results, best first, and all of it is plain JSON."""
    data, _ = shuffled_log(click_model("dbn"), sessions=3_000)
    outcomes = compare_click_models(data)
    assert {one.name for one in outcomes} == set(CLICK_MODELS)
    assert outcomes[-1].name == "contextual"
    assert "same context" in outcomes[-1].reason
    found = [one.measures.log_likelihood for one in outcomes[:-1]]
    assert found == sorted(found, reverse=True)
    content = json.loads(json.dumps([one.to_dict() for one in outcomes]))
    assert content[0]["conditional_perplexity"] < 2
    assert len(content[0]["perplexity_by_position"]) == 10
    assert content[-1]["reason"]


def test_held_out_sessions_and_the_rest_are_the_log() -> None:
    """Every session is on one side, with its weight."""
    data, _ = shuffled_log(click_model("pbm"), sessions=2_000)
    kept, held_out = held_out_mass(data, 0.25, np.random.default_rng(0))
    assert kept + held_out == pytest.approx(data.patterns.mass)
    assert held_out.sum() / 2_000 == pytest.approx(0.25, abs=0.05)


def test_what_cannot_be_compared_is_refused() -> None:
    """Shares, names and logs that make no sense are named."""
    data = moving_pages(np.array([[1, 0, 0], [0, 1, 0]]))
    with pytest.raises(UsageError, match="share must lie between 0 and 1"):
        compare_click_models(data, share=1.0)
    with pytest.raises(UsageError, match="click model 'nosuch' is not known"):
        compare_click_models(data, models=["nosuch"])
    with pytest.raises(DataError, match="too few to hold some out"):
        compare_click_models(data, share=1e-9)
