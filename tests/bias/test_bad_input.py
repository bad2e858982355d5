"""Logs that say nothing: every estimator gives a clear answer, never a curve made of noise."""

from __future__ import annotations

import numpy as np
import pytest

from shown import Shown, log_of
from unskew.bias import (
    Harvesting,
    PairwiseDebiasing,
    Randomization,
    RegressionEM,
    RelativeCTR,
    compare_estimators,
    fit_by_context,
)
from unskew.errors import DataError
from unskew.log.impressions import Impressions

ORDERS = ("abc", "acb", "bac", "bca", "cab", "cba")
ESTIMATORS = [
    RelativeCTR(), Randomization(check=False), Harvesting(), RegressionEM(relevance="table"),
    RegressionEM(n_jobs=1), PairwiseDebiasing(scores=np.zeros(3)),
]  # fmt: skip
NAMES = [repr(one)[:30] for one in ESTIMATORS]
FEATURES = {"a": 1.0, "b": 2.0, "c": 3.0}


def everywhere(*clicked: int, times: int = 20, **fields: object) -> list[Shown]:
    """Three documents in every order, always the same positions clicked."""
    return [Shown(order, clicked, times, **fields) for order in ORDERS]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=NAMES)
def test_no_click_at_all(estimator):
    """Refused: there is nothing to learn from."""
    with pytest.raises(DataError, match=r"nothing to learn from|nothing can be measured"):
        estimator.fit(log_of(*everywhere(), features=FEATURES))


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=NAMES)
def test_all_clicked(estimator):
    """Refused: nothing tells examination from relevance, and nothing was left unclicked."""
    with pytest.raises(DataError, match=r"every result of the log was clicked|nothing to learn"):
        estimator.fit(log_of(*everywhere(1, 2, 3), features=FEATURES))


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=NAMES)
def test_one_query(estimator):
    """Enough where its documents moved; trees refuse, because no other query judges them."""
    data = log_of(
        *everywhere(1, times=60), *everywhere(2, times=30), *everywhere(3, times=15),
        features=FEATURES,
    )  # fmt: skip
    if isinstance(estimator, RegressionEM) and estimator.relevance == "trees":
        with pytest.raises(DataError, match="the log has one query"):
            estimator.fit(data)
    else:
        assert (np.diff(estimator.fit(data).t_plus) < 0).all()


def test_features_all_constant():
    """Refused by the estimator that reads them."""
    same = dict.fromkeys("abc", 1.0)
    data = log_of(*everywhere(1), *everywhere(2, query="r"), features=same)
    with pytest.raises(DataError, match="all features are constant"):
        RegressionEM().fit(data)


def test_no_features():
    """Refused by the estimator that reads them, with what to do."""
    with pytest.raises(DataError, match="the log has no features to tell relevance by"):
        RegressionEM().fit(log_of(*everywhere(1)))


@pytest.mark.parametrize("estimator", ESTIMATORS[:4], ids=NAMES[:4])
def test_a_context_seen_once(estimator):
    """The error names it; one session makes no curve."""
    desktop = [one for k in (1, 2, 3) for one in everywhere(k, context="desktop")]
    data = log_of(*desktop, Shown("abc", (2,), context="watch"))
    with pytest.raises(DataError, match="context 'watch' was seen in 1 session"):
        fit_by_context(estimator, data)


def test_documents_that_never_move():
    """Refused by those that compare documents with themselves."""
    data = log_of(Shown("abc", (1,), 50), Shown("abc", (2,), 30), Shown("abc", (3,), 20))
    for estimator in (Harvesting(), RegressionEM(relevance="table")):
        with pytest.raises(DataError, match="no document links"):
            estimator.fit(data)


def test_an_estimate_that_repeats_the_ctr_is_told():
    """Features that say the same of every query: the curve is the CTR, and a warning says why."""
    rng = np.random.default_rng(1)
    n_queries, n = 60, 6
    rows = np.repeat(np.arange(n_queries * 40), n)
    position = np.tile(np.arange(1, n + 1), n_queries * 40)
    query = rows // 40
    click = rng.random(len(rows)) < 0.5 / position
    noise = rng.normal(size=(n_queries, n))[query, position - 1]
    data = Impressions.from_arrays(
        noise[:, None], click, session=rows, query=query, doc=position, position=position
    )
    with (
        pytest.warns(UserWarning, match="no more than chance"),
        pytest.warns(UserWarning, match="the curve merely repeats the CTR of each position"),
    ):
        bias = RegressionEM(n_jobs=1).fit(data)
    ctr = RelativeCTR().fit(data).t_plus
    assert np.abs(bias.t_plus - ctr).max() < 0.05
    (found,) = compare_estimators(data, methods=["regression-em"], n_jobs=1)
    assert any("merely repeats the CTR" in note for note in found.notes)
