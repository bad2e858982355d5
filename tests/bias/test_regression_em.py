"""Regression-EM: the table against the closed form, the trees against the table, bad logs refused."""

from __future__ import annotations

import numpy as np
import pytest

from shown import Shown, labelled, log_of, simulated
from unskew.bias import RegressionEM, RelativeCTR
from unskew.bias.cells import Cells
from unskew.bias.reference import position_based_em
from unskew.bias.regression_em import click_information, expected_counts
from unskew.errors import DataError, UsageError

MOVING = (
    Shown("abc", (1,), 30), Shown("bca", (2,), 20), Shown("cab", (1, 2), 25), Shown("acb", (), 40),
    Shown("ab", (2,), 15, query="r", weight=0.5), Shown("ba", (1,), 25, query="r"),
    Shown("cba", (3,), 10),
)  # fmt: skip


@pytest.mark.parametrize("n_iterations", [1, 2, 50])
def test_the_table_equals_the_closed_form(n_iterations):
    """After any number of iterations: the textbook EM, impression by impression."""
    data = log_of(*MOVING)
    theta, _ = position_based_em(list(data.sessions()), n_iterations=n_iterations)
    bias = RegressionEM(relevance="table", n_iterations=n_iterations, tolerance=0).fit(data)
    assert bias.t_plus == pytest.approx([theta[k] / theta[1] for k in (1, 2, 3)], rel=1e-12)


def test_the_table_finds_the_answer_that_can_be_computed():
    """Two documents at both positions with exact rates 0.8, 0.4 and 0.4, 0.2: half is position."""
    sessions = []
    for first, second, at_first, at_second in (("a", "b", 80, 20), ("b", "a", 40, 40)):
        page = first + second
        # Clicks at either position are drawn apart, so that the rates are exact.
        sessions += [Shown(page, (1,), at_first), Shown(page, (2,), at_second)]
        sessions += [Shown(page, (), 100 - at_first - at_second)]
    data = log_of(*(s for s in sessions if s.times))
    bias = RegressionEM(relevance="table", n_iterations=20_000, tolerance=1e-9).fit(data)
    assert bias.t_plus == pytest.approx([1.0, 0.5], abs=1e-4)


def test_the_first_e_step_by_hand():
    """With theta and gamma at 1/2, a missed impression is examined, and relevant, with 1/3."""
    cells = Cells.of(log_of(Shown("a", (1,), 4), Shown("a", (), 6)))
    half = np.array([0.5])
    examined, relevant = expected_counts(cells, half, half)
    assert examined == pytest.approx([4 + 6 / 3])
    assert relevant == pytest.approx([4 + 6 / 3])


def test_gradient_and_information_are_those_of_the_click_likelihood():
    """The gradient equals finite differences; the information is the expected curvature."""
    cells = Cells.of(log_of(*MOVING))
    rng = np.random.default_rng(0)
    theta, logit = rng.uniform(0.2, 0.9, 3), rng.normal(size=cells.n_groups)

    def gamma(x):
        return 1 / (1 + np.exp(-x))

    def likelihood(x):
        chance = theta[cells.position] * gamma(x)[cells.group]
        missed = cells.impressions - cells.clicks
        return np.sum(cells.clicks * np.log(chance) + missed * np.log(1 - chance))

    _, relevant = expected_counts(cells, theta, gamma(logit))
    shown = cells.per_group(cells.impressions)
    gradient = cells.per_group(relevant) - shown * gamma(logit)
    step = 1e-6 * np.eye(cells.n_groups)
    numeric = [(likelihood(logit + h) - likelihood(logit - h)) / 2e-6 for h in step]
    assert gradient == pytest.approx(numeric, rel=1e-5, abs=1e-5)
    # Fisher's information is the variance of the gradient of one impression: (dp/dx)**2 / p(1-p).
    chance = theta[cells.position] * gamma(logit)[cells.group]
    slope = chance * (1 - gamma(logit)[cells.group])
    expected = cells.impressions * slope**2 / (chance * (1 - chance))
    assert click_information(cells, theta, gamma(logit)) == pytest.approx(expected)


def test_trees_agree_with_the_table_where_both_apply():
    """A feature that names the document leaves the trees as free as the table."""
    data, _ = simulated(labelled(n_queries=4), sessions=4000)
    table = RegressionEM(relevance="table").fit(data)
    trees = RegressionEM(min_data_in_leaf=1, learning_rate=0.3, n_jobs=1).fit(data)
    assert np.abs(trees.t_plus - table.t_plus).max() < 0.03


def test_trees_see_through_a_good_ranker():
    """Ranked by a feature that tells relevance, relative CTR falls much too fast; the trees less."""
    labels = labelled(n_queries=300)
    data, truth = simulated(labels, sessions=60_000, score=labels.features.values[:, 0])
    naive = np.abs(RelativeCTR().fit(data).t_plus - truth).max()
    trees = np.abs(RegressionEM(n_jobs=1).fit(data).t_plus - truth).max()
    assert naive > 0.2
    assert trees < 0.7 * naive


def test_the_cost_is_by_cells():
    """A thousand times the sessions on the same pages give the same cells, and the same answer."""
    small, large = (log_of(*(s._replace(times=s.times * k) for s in MOVING)) for k in (1, 40))
    assert len(Cells.of(small)) == len(Cells.of(large))
    fits = [RegressionEM(relevance="table", n_iterations=30).fit(data) for data in (small, large)]
    assert fits[0].equals(fits[1], tolerance=1e-12)


def test_the_same_log_gives_the_same_curve():
    """Trees that see everything need no seed."""
    data, _ = simulated(labelled(n_queries=30), sessions=2000)
    first, second = (RegressionEM(n_iterations=20, n_jobs=jobs).fit(data) for jobs in (1, 2))
    assert first.equals(second)


def test_features_without_information_leave_relative_ctr():
    """If no split is possible, every document is as relevant as the next."""
    data = log_of(*MOVING, features=dict.fromkeys("abc", 1.0))
    fitted = RegressionEM(n_jobs=1, n_iterations=5000, tolerance=1e-9).fit(data)
    assert fitted.t_plus == pytest.approx(RelativeCTR().fit(data).t_plus, abs=1e-3)


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


@pytest.mark.parametrize("relevance", ["table", "trees"])
def test_positions_never_clicked_never_shown_or_shown_once(relevance):
    """Clipped with a warning, borrowed, borrowed."""
    features = {name: float(k) for k, name in enumerate("abcdx")}
    at = (1, 2, 3, 5)
    data = log_of(
        Shown("abcd", (1,), 40, positions=at), Shown("bacd", (1, 2), 40, positions=at),
        Shown("cbad", (1,), 40, positions=at), Shown("dbca", (5,), 40, positions=at),
        Shown("xabcd", (1,), 1, positions=(1, 2, 3, 5, 6)),
        features=features,
    )  # fmt: skip
    with pytest.warns(UserWarning, match=r"position\(s\) \[3\]"):
        bias = RegressionEM(relevance=relevance, n_jobs=1, min_data_in_leaf=1).fit(data)
    assert bias.clipped_positions == (3,)
    assert bias.borrowed_positions == (4, 6)
    assert bias.t_plus[2] == bias.t_plus[3] == 0.001
    assert bias.t_plus[5] == bias.t_plus[4]


def test_a_top_position_never_clicked():
    """There is no reference, however EM shares out the blame."""
    data = log_of(Shown("ab", (2,), 20), Shown("ba", (2,), 20))
    with pytest.raises(DataError, match="position 1 was never clicked"):
        RegressionEM(relevance="table").fit(data)


def test_a_log_without_clicks():
    """Nothing clicked, nothing learned."""
    with pytest.raises(DataError, match="the log has no click"):
        RegressionEM(relevance="table").fit(log_of(Shown("ab", (), 20), Shown("ba", (), 20)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"relevance": "forest"}, r"relevance must be one of \['trees', 'table'\]"),
        ({"n_iterations": 0}, "n_iterations must be 1 or higher"),
        ({"trees_per_iteration": 0}, "trees_per_iteration must be 1 or higher"),
        ({"num_leaves": 1}, "num_leaves must be 2 or higher"),
        ({"tolerance": float("nan")}, "tolerance must be 0 or higher"),
        ({"learning_rate": 0.0}, "learning_rate must be above 0"),
    ],
)
def test_settings_are_checked(settings, message):
    """A setting that makes no sense is refused by its name."""
    with pytest.raises(UsageError, match=message):
        RegressionEM(**settings).fit(log_of(*MOVING))
