"""Competition: the exponent of a curve that is off, by documents that stood against better ones."""

from __future__ import annotations

import numpy as np
import pytest

from unskew.bias.balance import Strata, balanced_examination, strata_of
from unskew.bias.cells import Cells
from unskew.bias.competition import (
    SHARE,
    SPREAD,
    Bend,
    Competition,
    bend_of,
    ranks_of,
    straightened,
    warn_of_bend,
)
from unskew.bias.reference import Rival, competition_equation

PAGE = 6
THETA = np.arange(1, PAGE + 1) ** -1.0


def ranked_log(
    n_queries: int, *, known: float, candidates: int = PAGE, seed: int = 0
) -> tuple[Cells, Competition]:
    """The best by a ranker whose score is relevance; features tell the share ``known`` of it."""
    rng = np.random.default_rng(seed)
    told, hidden = rng.normal(size=(2, n_queries, candidates))
    score = np.sqrt(known) * told + np.sqrt(1.0 - known) * hidden
    best = np.argsort(-score, axis=1)[:, :PAGE]
    score, predicted = (np.take_along_axis(one, best, axis=1).ravel() for one in (score, told))
    group = np.arange(n_queries * PAGE)
    query, position = group // PAGE, group % PAGE
    shown = np.full(len(group), 200.0)
    clicks = rng.binomial(200, THETA[position] / (1.0 + np.exp(1.0 - 1.5 * score))).astype(float)
    return Cells(group, position, shown, clicks, len(group), PAGE), Competition(
        query=query,
        rank=ranks_of(predicted, query, np.ones(len(group), dtype=bool)),
        stratum=strata_of(-predicted, shown, 40),
        relevance=np.full(len(group), 0.4),
    )


def steep_curve(cells: Cells, found: Competition) -> np.ndarray:
    """What the strata alone make of the log."""
    return balanced_examination(Strata.of(cells, found.stratum, found.relevance))


def test_ranks_are_counted_among_the_shown_documents_of_a_query():
    """By hand: two queries, and a document that was not shown comes last."""
    score = np.array([0.1, 0.9, 0.5, 2.0, 1.0])
    shown = np.array([True, True, True, False, True])
    assert ranks_of(score, np.array([0, 0, 1, 0, 1]), shown).tolist() == [2, 1, 2, 3, 1]


def test_the_equation_of_the_twin_is_solved():
    """At eta the left side, summed naively, is 0; elsewhere it is not."""
    cells, found = ranked_log(60, known=0.5)
    theta = steep_curve(cells, found)
    bend = bend_of(cells, theta, found)
    documents = [
        Rival(*row)
        for row in zip(
            found.stratum.tolist(), found.rank.tolist(), (cells.position + 1).tolist(),
            cells.impressions.tolist(), cells.clicks.tolist(), found.relevance.tolist(), strict=True,
        )
    ]  # fmt: skip
    scale = cells.clicks.sum()
    assert abs(competition_equation(documents, theta.tolist(), bend.eta)) < 1e-9 * scale
    assert abs(competition_equation(documents, theta.tolist(), bend.eta + 0.1)) > 1e-4 * scale


@pytest.mark.parametrize("known", [0.5, 0.8])
@pytest.mark.parametrize("candidates", [PAGE, 2 * PAGE, 5 * PAGE])
def test_what_features_do_not_tell_is_made_good(known, candidates):
    """A ranker that knows more than the features: the steep curve errs less, whatever was not shown."""
    cells, found = ranked_log(1500, known=known, candidates=candidates)
    theta = steep_curve(cells, found)
    bend = bend_of(cells, theta, found)
    curve, _ = straightened(theta, np.eye(PAGE), bend)
    steep, now = (np.abs(one / one[0] - THETA).max() for one in (theta, curve))
    assert bend.eta > 2 * bend.error
    assert now < 0.85 * steep


def test_a_right_curve_stays():
    """Where features tell all that the ranker knew, eta is 0 up to its standard error."""
    cells, found = ranked_log(1500, known=1.0)
    bend = bend_of(cells, THETA, found)
    assert abs(bend.eta) < 3 * bend.error
    assert bend.error < 0.05


def test_a_rank_that_says_nothing_changes_next_to_nothing():
    """Scores of pure chance: the standard error is large, and the exponent is drawn to 0."""
    cells, found = ranked_log(300, known=0.0)
    bend = bend_of(cells, steep_curve(cells, found), found)
    assert abs(bend.drawn) < 0.03


def test_an_exponent_is_drawn_towards_nothing_by_its_error():
    """By hand: an error as large as the spread halves it; where nothing tells, nothing changes."""
    assert Bend(0.2, SPREAD).drawn == pytest.approx(SHARE * 0.1)
    assert Bend(0.2, 0.0).drawn == pytest.approx(SHARE * 0.2)
    assert Bend(0.2, SPREAD).variance == pytest.approx(SPREAD**2 / 2)
    told = np.diag([2.0, 1.0, 1.0])
    theta = np.array([1.0, 0.5, 0.25])
    same, information = straightened(theta, told, Bend(0.0, np.inf))
    assert same is theta
    assert information is told


def test_what_eta_leaves_open_is_taken_from_the_information():
    """The inverse of the information grows by the variance of eta along log(position)."""
    told = np.array([[3.0, 1.0, 0.5], [1.0, 4.0, 0.2], [0.5, 0.2, 2.0]])
    bend, level = Bend(0.3, 0.05), np.log([1.0, 2.0, 3.0])
    theta, information = straightened(np.array([1.0, 0.5, 0.2]), told, bend)
    expected = np.linalg.inv(told) + bend.variance * np.outer(level, level)
    assert np.linalg.inv(information) == pytest.approx(expected)
    assert theta[1] / theta[0] == pytest.approx(0.5 * 2.0**bend.drawn)


def test_a_ranker_that_knew_much_more_is_said():
    """A large exponent beyond chance is a warning; a small one, or one by chance, is not."""
    with pytest.warns(
        UserWarning, match="seems to know more about relevance than the features tell"
    ):
        warn_of_bend(Bend(0.5, 0.1))
    for bend in (Bend(0.1, 0.01), Bend(0.5, 0.3), Bend(0.0, np.inf)):
        warn_of_bend(bend)
