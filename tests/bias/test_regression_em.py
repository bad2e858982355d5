"""Regression-EM: the table against its twin, the trees against the table, bad logs refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from shown import Shown, labelled, log_of, simulated
from unskew.bias import RegressionEM, RelativeCTR
from unskew.bias.cells import Cells
from unskew.bias.reference import free_relevance
from unskew.errors import DataError, UsageError
from unskew.log.features import Features
from unskew.log.impressions import Impressions

MOVING = (
    Shown("abc", (1,), 30), Shown("bca", (2,), 20), Shown("cab", (1, 2), 25), Shown("acb", (), 40),
    Shown("ab", (2,), 15, query="r", weight=0.5), Shown("ba", (1,), 25, query="r"),
    Shown("cba", (3,), 10),
)  # fmt: skip


def test_the_table_equals_the_readable_twin():
    """The Newton steps end where solving for examination and relevance in turn does."""
    data = log_of(*MOVING)
    theta, _ = free_relevance(list(data.sessions()), n_iterations=3000)
    bias = RegressionEM(relevance="table", min_shown=0).fit(data)
    assert bias.t_plus == pytest.approx([theta[k] / theta[1] for k in (1, 2, 3)], rel=1e-6)


def test_the_table_finds_the_answer_that_can_be_computed():
    """Two documents at both positions with exact rates 0.8, 0.4 and 0.4, 0.2: half is position."""
    sessions = []
    for first, second, at_first, at_second in (("a", "b", 80, 20), ("b", "a", 40, 40)):
        page = first + second
        # Clicks at either position are drawn apart, so that the rates are exact.
        sessions += [Shown(page, (1,), at_first), Shown(page, (2,), at_second)]
        sessions += [Shown(page, (), 100 - at_first - at_second)]
    data = log_of(*(s for s in sessions if s.times))
    assert RegressionEM(relevance="table").fit(data).t_plus == pytest.approx([1.0, 0.5])


def test_documents_that_never_move_do_not_flatten_the_table():
    """Twenty documents glued to one position each leave the answer of the two that move alone."""
    glued = [Shown(chr(100 + k) + "x", (1,), 30, query=str(k)) for k in range(20)]
    moving = [
        Shown("ab", (1,), 40),
        Shown("ba", (1,), 20),
        Shown("ab", (2,), 10),
        Shown("ba", (2,), 20),
    ]
    alone = RegressionEM(relevance="table").fit(log_of(*moving))
    both = RegressionEM(relevance="table").fit(log_of(*moving, *glued))
    assert both.t_plus == pytest.approx(alone.t_plus, rel=1e-6)


def test_trees_agree_with_the_table_where_both_apply():
    """Documents that move on shuffled lists: both find the same curve."""
    data, _ = simulated(labelled(n_queries=40), sessions=20_000)
    table = RegressionEM(relevance="table").fit(data)
    trees = RegressionEM(n_jobs=1).fit(data)
    assert np.abs(trees.t_plus - table.t_plus).max() < 0.03


def test_trees_see_through_a_good_ranker():
    """Ranked by a feature that tells relevance, relative CTR falls much too fast; the trees do not."""
    labels = labelled(n_queries=300)
    data, truth = simulated(labels, sessions=60_000, score=labels.features.values[:, 0])
    naive = np.abs(RelativeCTR().fit(data).t_plus - truth).max()
    trees = np.abs(RegressionEM(n_jobs=1).fit(data).t_plus - truth).max()
    assert naive > 0.2
    assert trees < 0.4 * naive


def test_features_of_noise_give_the_ctr_and_a_warning():
    """Features that say nothing about clicks of other queries: no flat curve, and a plain word."""
    data, _ = simulated(labelled(n_queries=60), sessions=3000)
    noise = np.random.default_rng(99).normal(size=data.features.values.shape)
    blind = replace(data, documents=replace(data.documents, features=Features(noise, ("a", "b"))))
    with pytest.warns(UserWarning, match="no more than chance"):
        bias = RegressionEM(n_jobs=1).fit(blind)
    assert np.abs(bias.t_plus - RelativeCTR().fit(blind).t_plus).max() < 0.05


def test_the_cost_is_by_cells():
    """Forty times the sessions on the same pages give the same cells, and the same answer."""
    small, large = (log_of(*(s._replace(times=s.times * k) for s in MOVING)) for k in (1, 40))
    assert len(Cells.of(small)) == len(Cells.of(large))
    fits = [RegressionEM(relevance="table").fit(data) for data in (small, large)]
    assert fits[0].equals(fits[1], tolerance=1e-9)


def test_the_same_seed_gives_the_same_curve():
    """Whatever the number of threads; another seed deals the queries anew."""
    data, _ = simulated(labelled(n_queries=30), sessions=2000)
    first, second = (RegressionEM(n_iterations=20, n_jobs=jobs).fit(data) for jobs in (1, 2))
    assert first.equals(second)
    assert not first.equals(RegressionEM(n_iterations=20, n_jobs=1, seed=1).fit(data))


def test_constant_features_are_refused():
    """They tell no document from another."""
    data = log_of(*MOVING, features=dict.fromkeys("abc", 1.0))
    with pytest.raises(DataError, match="all features are constant"):
        RegressionEM(n_jobs=1).fit(data)


def test_one_query_is_refused_by_trees():
    """There is no query to judge them by; the table is offered."""
    one = [s for s in MOVING if s.query == "q"]
    with pytest.raises(DataError, match=r"one query.*relevance='table'"):
        RegressionEM(n_jobs=1).fit(log_of(*one, features={"a": 1.0, "b": 2.0, "c": 3.0}))


def test_features_that_give_the_position_away_are_refused():
    """A feature made from the position leaves no two documents alike at different places."""
    labels = labelled(n_queries=60)
    data, _ = simulated(labels, sessions=3000, score=labels.features.values[:, 0])
    place = np.zeros((len(data.documents), 1))
    place[data.pages.document, 0] = data.pages.position
    leaky = replace(data, documents=replace(data.documents, features=Features(place, ("place",))))
    with pytest.raises(DataError, match=r"features explain \d+\.\d% of where documents stood"):
        RegressionEM(n_jobs=1).fit(leaky)


def test_without_features():
    """Trees need features; the error offers the table."""
    with pytest.raises(DataError, match=r"no features .* relevance='table'"):
        RegressionEM().fit(log_of(*MOVING))


def test_a_table_needs_documents_that_move():
    """Positions that share no document cannot be compared; the error names them."""
    fixed = log_of(Shown("abc", (1,), 20), Shown("abc", (2, 3), 20))
    with pytest.raises(DataError, match=r"no document links position\(s\) \[2, 3\] to position 1"):
        RegressionEM(relevance="table").fit(fixed)
    partly = log_of(Shown("abc", (1,), 20), Shown("bac", (2, 3), 20))
    with pytest.raises(DataError, match=r"position\(s\) \[3\]"):
        RegressionEM(relevance="table").fit(partly)


@pytest.mark.filterwarnings("ignore:documents seen at several positions have")
@pytest.mark.filterwarnings("ignore:documents hardly move")
def test_positions_never_clicked_never_shown_or_shown_once():
    """Said to be never clicked, with a warning; borrowed; borrowed."""
    at = (1, 2, 3, 5)
    data = log_of(
        Shown("abcd", (1,), 40, positions=at), Shown("bacd", (1, 2), 40, positions=at),
        Shown("cbad", (1,), 40, positions=at), Shown("dbca", (5,), 40, positions=at),
        Shown("xabcd", (1,), 1, positions=(1, 2, 3, 5, 6)),
    )  # fmt: skip
    with pytest.warns(UserWarning, match=r"position\(s\) \[3\]"):
        bias = RegressionEM(relevance="table").fit(data)
    assert bias.never_clicked_positions == (3,)
    assert bias.clipped_positions == (3,)
    assert bias.borrowed_positions == (4, 6)
    assert bias.t_plus[2] == bias.t_plus[3] == 0.001
    assert bias.t_plus[5] == bias.t_plus[4]
    assert bias.notes[0].startswith("position 3: shown but never clicked")


def test_documents_that_hardly_move_are_said_to():
    """A curve of a handful of clicks comes with a warning."""
    data = log_of(
        Shown("ab", (1,), 40), Shown("cb", (1,), 40), Shown("ba", (1,), 11), Shown("ba", (2,), 1)
    )
    few = log_of(
        Shown("xb", (1,), 40), Shown("ab", (1,), 4), Shown("ba", (1,), 5), Shown("ba", (2,), 3)
    )
    assert RegressionEM(relevance="table").fit(data).t_plus[0] == 1.0
    with pytest.warns(UserWarning, match="documents hardly move"):
        RegressionEM(relevance="table", min_shown=5).fit(few)


def test_a_top_position_never_clicked():
    """There is no reference, however EM shares out the blame."""
    data = log_of(Shown("ab", (2,), 20), Shown("ba", (2,), 20))
    with pytest.raises(DataError, match="position 1 was never clicked"):
        RegressionEM(relevance="table").fit(data)


def test_a_log_without_clicks():
    """Nothing clicked, nothing learned."""
    with pytest.raises(DataError, match="the log has no click"):
        RegressionEM(relevance="table").fit(log_of(Shown("ab", (), 20), Shown("ba", (), 20)))


def test_a_log_of_clicks_only():
    """Everything clicked tells nothing either."""
    with pytest.raises(DataError, match="every result of the log was clicked"):
        RegressionEM(relevance="table").fit(
            log_of(Shown("ab", (1, 2), 20), Shown("ba", (1, 2), 20))
        )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"relevance": "forest"}, r"relevance must be one of \['trees', 'table'\]"),
        ({"n_iterations": 0}, "n_iterations must be 1 or higher"),
        ({"patience": 0}, "patience must be 1 or higher"),
        ({"n_folds": 1}, "n_folds must be 2 or higher"),
        ({"num_leaves": 1}, "num_leaves must be 2 or higher"),
        ({"learning_rate": 0.0}, "learning_rate must be above 0"),
    ],
)
def test_settings_are_checked(settings, message):
    """A setting that makes no sense is refused by its name."""
    with pytest.raises(UsageError, match=message):
        RegressionEM(**settings).fit(log_of(*MOVING))


def test_a_feature_that_knows_the_clicks_is_named():
    """Where each session is a query, a mark of what was clicked would explain all: a warning says so."""
    rng = np.random.default_rng(0)
    n, page = 1_000, 5
    click = rng.random((n, page)) < 0.4 / np.arange(1, page + 1)
    X = np.column_stack((rng.normal(size=n * page), click.ravel() & (rng.random(n * page) < 0.8)))
    session = np.repeat(np.arange(n), page)
    data = Impressions.from_arrays(
        X, click.ravel(), session=session, query=session, doc=np.arange(n * page),
        position=np.tile(np.arange(1, page + 1), n), feature_names=("price", "booked"),
    )  # fmt: skip
    with pytest.warns(UserWarning, match="the feature 'booked' is not zero.*leave the feature out"):
        RegressionEM(n_jobs=1, n_folds=2).fit(data)
