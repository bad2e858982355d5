"""Every click model of the registry on every kind of bad log: a reason, or a curve that is right."""

from __future__ import annotations

import numpy as np
import pytest

from uninformative import TABLES, THETA, read
from unskew.clicks import compare_click_models, fit_click_model
from unskew.errors import DataError
from unskew.registry import CLICK_MODELS

# What a refusal must say of each kind of log. A log without contexts is refused by `contextual` alone.
REASONS = {
    "no click at all": "the log has no click",
    "all clicked": "every result of the log was clicked",
    "one click a session": "no session of the log has two clicks.*fit 'pbm' or 'ubm'",
}
NO_CONTEXTS = "all sessions have the same context, or none"
HOPELESS = ("no click at all", "all clicked")


@pytest.mark.parametrize("name", CLICK_MODELS)
@pytest.mark.parametrize("kind", TABLES)
def test_a_reason_or_the_truth(kind, name):
    """Refused with a reason of this log; or the curve of the clicks, which are position-based."""
    data = read(kind)
    model = CLICK_MODELS[name].load()
    one_click = kind == "one click a session" and model.needs_several_clicks
    no_context = name == "contextual" and kind != "a context seen once"
    if kind in HOPELESS or one_click or no_context:
        reason = REASONS[kind] if kind in HOPELESS or one_click else NO_CONTEXTS
        with pytest.raises(DataError, match=reason):
            fit_click_model(data, name)
        return
    fitted = fit_click_model(data, name)
    curve = fitted.position_bias().t_plus
    assert np.isfinite(curve).all()
    assert np.isfinite(fitted.relevance).all()
    if model.needs_several_clicks:
        # A walk from the top: another examination than that of independent clicks.
        assert (np.diff(curve) <= 0).all()
    else:
        assert np.abs(curve - THETA).max() < 0.12


def test_a_context_seen_once_is_named():
    """A note names it, and one session has no curve of its own."""
    fitted = fit_click_model(read("a context seen once"), "contextual")
    assert any("context 'watch' has 1 sessions" in note for note in fitted.notes)
    with pytest.raises(
        DataError, match="no position was shown 10 times: there is no curve to tell"
    ):
        fitted.position_bias("watch")


@pytest.mark.parametrize("kind", TABLES)
def test_the_comparison_gives_every_model_an_answer(kind):
    """Side by side, each has measures or a reason; on logs of nothing all have reasons."""
    found = compare_click_models(read(kind))
    assert {one.name for one in found} == set(CLICK_MODELS)
    for one in found:
        assert (one.measures is None) == (one.reason is not None)
        assert one.measures is None or one.measures.perplexity >= 1
    assert all(one.reason for one in found) == (kind in HOPELESS)
