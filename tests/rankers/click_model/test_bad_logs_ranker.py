"""ClickModelRanker with every click model on every kind of bad log: a reason, or a right ranking."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from uninformative import TABLES, THETA, read
from unskew import ClickModelRanker
from unskew.errors import DataError
from unskew.registry import CLICK_MODELS

REASONS = {
    "no click at all": "no click",
    "all clicked": "every result of the log was clicked|everything",
    "one query": "one query|queries",
    "one click a session": "no session of the log has two clicks",
    "constant features": "every feature has the same value|constant",
    "no features": "features",
}
NO_CONTEXTS = "all sessions have the same context, or none"
REFUSED = ("no click at all", "all clicked", "one query", "constant features", "no features")


@pytest.mark.parametrize("name", CLICK_MODELS)
@pytest.mark.parametrize("kind", TABLES)
def test_a_reason_or_a_ranking(kind, name):
    """Refused with a reason of this log; or relevance in its true order and a curve from the clicks."""
    data, model = read(kind), CLICK_MODELS[name].load()
    ranker = ClickModelRanker(
        click_model=name, n_estimators=15, random_state=0, n_jobs=1, verbose=0
    )
    one_click = kind == "one click a session" and model.needs_several_clicks
    no_context = name == "contextual" and kind != "a context seen once"
    if kind in REFUSED or one_click or no_context:
        reason = REASONS[kind] if kind in REFUSED or one_click else NO_CONTEXTS
        with pytest.raises(DataError, match=reason):
            ranker.fit(data)
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ranker.fit(data)
    # Documents of a query are numbered by falling relevance.
    number = np.asarray(data.documents.doc) % 10
    score = ranker.predict(data)
    means = [score[number == k].mean() for k in range(3)]
    assert means[0] > means[1] > means[2]
    assert np.isfinite(ranker.t_plus_).all()
    if not model.needs_several_clicks and name != "trust":
        assert np.abs(ranker.t_plus_ - THETA).max() < 0.15
    said = " ".join(str(one.message) for one in caught)
    assert ("'watch'" in said) == (name == "contextual")
