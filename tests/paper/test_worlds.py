"""Worlds: where clicks come from, and what is known about them."""

from __future__ import annotations

import numpy as np
import pytest

from unskew.datasets.opening import EIGHTHS, GeneratedSize, open_labelled
from unskew.paper.peers import SessionRows
from unskew.paper.profiles import PROFILES
from unskew.paper.runs import Clicks
from unskew.paper.worlds import ESTIMATED, World
from unskew.registry import METHODS

SIZE = GeneratedSize(40, 16, 8.0)


def queries(data):
    """The queries of labelled data."""
    return set(data.query.tolist())


@pytest.fixture(scope="module")
def world():
    """A small world."""
    source = open_labelled("generated", dataset=None, size=SIZE, split=EIGHTHS)
    return World(source.parts(1, 1), Clicks(), 500, 1)


def test_a_share_of_the_sessions_is_a_part_of_them():
    """Fewer sessions are the first of the more: the amount of data changes, nothing else."""
    source = open_labelled("generated", dataset=None, size=SIZE, split=EIGHTHS)
    half, whole = (World(source.parts(1, 1), Clicks(share=s), 500, 1).clicks for s in (0.5, 1.0))
    assert (half.n_sessions, whole.n_sessions) == (250, 500)
    some, every = (list(data.sessions()) for data in (half, whole))
    assert all(every.count(session) >= some.count(session) for session in set(some))


def test_validation_users_see_other_queries(world):
    """Validation clicks are on validation queries, as many a query as in training."""
    validation = world.validation_clicks
    assert set(validation.queries.tolist()) <= queries(world.validation)
    per_query = validation.n_sessions / world.validation.n_queries
    assert per_query == pytest.approx(500 / world.train.n_queries)


def test_estimates_are_made_once():
    """A second ranker gets the same bias, with the time of the first estimation."""
    source = open_labelled("generated", dataset=None, size=SIZE, split=EIGHTHS)
    world = World(source.parts(1, 1), Clicks(), 20_000, 1)
    assert world.bias("randomization") is world.bias("randomization")
    assert set(ESTIMATED) == {"oracle", *(m.name for m in METHODS.values() if m.held_by)}
    np.testing.assert_allclose(world.bias("oracle").bias.t_plus, world.truth)


def test_what_was_shown_is_what_was_logged(world):
    """The rows and positions of the lists are those of the log's pages."""
    rows, position = world.shown()
    shown = set(zip(world.train.query[rows].tolist(), world.train.doc[rows].tolist(),
                    position.tolist(), strict=True))  # fmt: skip
    for session in world.clicks.sessions():
        for doc, place in zip(session.doc, session.position, strict=True):
            assert (session.query, doc, place) in shown


def test_peers_get_every_session_with_a_click(world):
    """The rows for the peers are the sessions of the log, those without a click left out."""
    data = world.clicks
    rows = SessionRows.of(data)
    logged = [session for session in data.sessions() if session.clicked]
    assert len(rows.sizes) == len(logged)
    ends = np.cumsum(rows.sizes)
    found = sorted(
        (tuple(rows.position[a:b][rows.click[a:b] == 1].tolist()), tuple(rows.X[a].tolist()))
        for a, b in zip(ends - rows.sizes, ends, strict=True)
    )
    first_row = {
        (data.queries[q], doc): tuple(row.tolist())
        for q, doc, row in zip(data.documents.query, data.documents.doc.tolist(),
                               data.features.values, strict=True)
    }  # fmt: skip
    wanted = sorted((s.clicked, first_row[s.query, s.doc[0]]) for s in logged)
    assert found == wanted


def test_profiles_have_the_defaults_of_the_paper():
    """Every figure's points hold the default that it shares with the table."""
    for profile in PROFILES.values():
        assert profile.p_values[0] == 0.0
        assert {0.0, 1.0} <= set(profile.thetas)
        assert {0.5, 1.0} <= set(profile.betas)
        assert {profile.peer_share, 1.0} <= set(profile.shares)
        assert profile.sessions == 165_660
        assert profile.trees == 300
