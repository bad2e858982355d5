"""Examination from where the clicks of each document were, whatever its relevance."""

from __future__ import annotations

import numpy as np
import pytest

from unskew.clicks.fitting.cells import StateCells
from unskew.clicks.fitting.places import (
    TIE,
    PlacePrior,
    fit_places,
    held_out_strength,
    linked_cells,
    places_log_likelihood,
    score_and_information,
)
from unskew.clicks.fitting.reference import places_likelihood

ALL = np.ones(4, dtype=bool)


def drawn(n_documents: int, theta: np.ndarray, *, shown: float = 20.0, seed: int = 0) -> StateCells:
    """Clicks of documents of any relevance, each seen in all states but one."""
    rng = np.random.default_rng(seed)
    document, state, shows, clicks = [], [], [], []
    for d in range(n_documents):
        relevance = rng.beta(1, 4)
        for s in np.flatnonzero(np.arange(len(theta)) != d % len(theta)):
            n = 1 + rng.poisson(shown)
            document.append(d)
            state.append(s)
            shows.append(n)
            clicks.append(rng.binomial(n, theta[s] * relevance))
    return StateCells(
        np.array(document), np.array(state, dtype=np.int32), np.array(shows, float),
        np.array(clicks, float),
    )  # fmt: skip


def dense(cells: StateCells, n_documents: int, n_states: int) -> tuple[np.ndarray, np.ndarray]:
    """Impressions and clicks with one row per document."""
    shown, clicks = np.zeros((2, n_documents, n_states))
    shown[cells.document, cells.state] = cells.shown
    clicks[cells.document, cells.state] = cells.clicks
    return shown, clicks


def test_the_likelihood_equals_the_readable_twin() -> None:
    """Summed over documents, it is that of every click's place in plain Python."""
    cells, theta = drawn(7, np.array([0.9, 0.5, 0.4, 0.2])), np.array([1.0, 0.7, 0.3, 0.4])
    shown, clicks = dense(cells, 7, 4)
    assert places_log_likelihood(cells, theta, 7).sum() == pytest.approx(
        places_likelihood(shown, clicks, theta)
    )


def test_score_and_information_are_derivatives_of_the_twin() -> None:
    """The score equals finite differences of the likelihood, the information those of the score."""
    cells = drawn(9, np.array([0.9, 0.5, 0.4, 0.2]))
    shown, clicks = dense(cells, 9, 4)
    logs = np.random.default_rng(0).normal(size=4)
    score, information = score_and_information(cells, np.exp(logs))
    for k, h in enumerate(1e-5 * np.eye(4)):
        up, down = (places_likelihood(shown, clicks, np.exp(x)) for x in (logs + h, logs - h))
        assert score[k] == pytest.approx((up - down) / 2e-5, abs=1e-4)
        after, before = (score_and_information(cells, np.exp(x))[0] for x in (logs + h, logs - h))
        assert -(after - before) / 2e-5 == pytest.approx(information[k], abs=1e-4)


def test_documents_that_say_nothing_drop_out() -> None:
    """One seen in one state only and one without a click change no digit of the fit."""
    cells = drawn(20, np.array([0.9, 0.5, 0.4, 0.2]))
    more = StateCells(
        np.concatenate((cells.document, [20, 21, 21])),
        np.concatenate((cells.state, [3, 0, 1])).astype(np.int32),
        np.concatenate((cells.shown, [500.0, 9.0, 9.0])),
        np.concatenate((cells.clicks, [400.0, 0.0, 0.0])),
    )
    assert len(linked_cells(more, 22).document) <= len(cells.document)
    start, none = np.zeros(4), np.zeros((4, 4))
    assert (fit_places(more, start, ALL, none) == fit_places(cells, start, ALL, none)).all()


def test_examination_comes_back_whatever_the_relevance() -> None:
    """Within five standard errors by the information, without any prior."""
    theta = np.array([0.9, 0.6, 0.4, 0.25])
    cells = drawn(400, theta)
    logs = fit_places(cells, np.zeros(4), ALL, np.zeros((4, 4)))
    _, information = score_and_information(cells, np.exp(logs))
    error = np.sqrt(np.diag(np.linalg.pinv(information)))
    assert (np.abs(logs - np.log(theta / theta[0]))[1:] < 5 * (error[1:] + error[0])).all()


def test_states_that_nothing_links_keep_their_start() -> None:
    """No document compares the last two states with the first: their level is that of the start."""
    cells = StateCells(
        np.array([0, 0, 1, 1]), np.array([0, 1, 2, 3], dtype=np.int32), np.full(4, 10.0),
        np.array([4.0, 2.0, 3.0, 3.0]),
    )  # fmt: skip
    start = np.array([0.0, -0.5, -1.0, -1.0])
    logs = fit_places(cells, start, ALL, np.zeros((4, 4)))
    assert logs[1] - logs[0] == pytest.approx(np.log(0.5), abs=1e-6)
    assert logs[2:].mean() - logs[:2].mean() == pytest.approx(-0.75, abs=1e-5)


def test_the_states_of_a_position_are_tied() -> None:
    """A state that nothing tells of has the mean of its position; a power curve costs nothing."""
    prior = PlacePrior(np.array([0, 1, 1, 2]), np.array([50.0, 30.0, 0.0, 10.0]))
    logs = np.array([0.0, -np.log(2), -np.log(2) + 0.5, -np.log(3)])
    assert logs @ prior.penalty(0.0) @ logs == pytest.approx(TIE * 0.25)
    logs[2] = logs[1]
    assert logs @ prior.penalty(100.0) @ logs == pytest.approx(0.0, abs=1e-9)
    assert np.array([0.0, -1.0, -1.0, 0.0]) @ prior.penalty(100.0) @ [0.0, -1.0, -1.0, 0.0] > 10


def test_a_log_with_plenty_of_clicks_is_not_shaped() -> None:
    """Where documents that moved have many clicks the curve is drawn to nothing."""
    cells = drawn(400, np.array([0.9, 0.6, 0.4, 0.25]))
    clicks = np.bincount(cells.state, weights=cells.clicks)
    assert held_out_strength(cells, np.zeros(4), ALL, PlacePrior(np.arange(4), clicks)) == 0.0


def barely_moving(seed: int) -> StateCells:
    """Documents that stand in a state of their own and were seen once or twice in another."""
    rng = np.random.default_rng(seed)
    document, state = np.repeat(np.arange(80), 2), np.arange(160) % 2
    home = rng.integers(8, size=80)
    place = (home[document] + state * (1 + rng.integers(7, size=160))) % 8
    shown = np.where(state == 0, 20, rng.integers(1, 3, size=160))
    clicks = rng.binomial(shown, 0.2 / (1 + place))
    return StateCells(document, place.astype(np.int32), shown.astype(float), clicks.astype(float))


def test_few_clicks_ask_for_a_shape() -> None:
    """Where documents hardly move, held-out documents choose a curve nearer to the truth."""
    plain, shaped = [], []
    for seed in range(12):
        cells = linked_cells(barely_moving(seed), 80)
        clicks = np.bincount(cells.state, weights=cells.clicks, minlength=8)
        free, prior = clicks > 0, PlacePrior(np.arange(8), clicks)
        strength = held_out_strength(cells, np.zeros(8), free, prior)
        for found, s in ((plain, 0.0), (shaped, strength)):
            logs = fit_places(cells, np.zeros(8), free, prior.penalty(s))
            found.append(np.abs(logs - logs[0] + np.log(np.arange(1, 9)))[free].mean())
    assert np.median(shaped) < 0.7 * np.median(plain)
