"""Where data and clicks come from."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from unskew.datasets import make_search_dataset
from unskew.errors import DataError
from unskew.paper.peers import SessionRows
from unskew.paper.profiles import PROFILES, GeneratedSize
from unskew.paper.sources import open_source
from unskew.paper.worlds import Clicks, World

SIZE = GeneratedSize(40, 16, 8.0)


def write_letor(path, data):
    """Labelled data as a gzipped LETOR file."""
    with gzip.open(path, "wt") as file:
        for grade, query, row in zip(data.relevance, data.query, data.features.values, strict=True):
            values = " ".join(f"{k}:{value:.6g}" for k, value in enumerate(row, start=1))
            file.write(f"{int(grade)} qid:{query} {values}\n")


def queries(data):
    """The queries of labelled data."""
    return set(data.query.tolist())


def test_generated_data_is_new_for_every_seed():
    """Five eighths train, one validates, two test; no query twice; another seed, other data."""
    source = open_source("generated", dataset=None, size=SIZE)
    first, second = source.parts(1, 1), source.parts(1, 2)
    sizes = [first.train.n_queries, first.validation.n_queries, first.test.n_queries]
    assert sizes == [25, 5, 10]
    assert not np.array_equal(first.train.features.values[:5], second.train.features.values[:5])


def test_a_file_is_cut_into_five_folds(tmp_path):
    """Every query is tested in exactly one fold, and trains where it does not test or validate."""
    data = make_search_dataset(n_queries=23, n_features=16, seed=1)
    write_letor(tmp_path / "some.txt.gz", data)
    source = open_source(str(tmp_path / "some.txt.gz"), dataset=None, size=SIZE)
    assert (source.name, source.n_folds) == ("some", 5)
    tested = []
    for fold in range(1, 6):
        parts = source.parts(fold, 1)
        train, validation, test = map(queries, (parts.train, parts.validation, parts.test))
        assert train | validation | test == queries(data)
        assert train.isdisjoint(validation | test)
        assert validation.isdisjoint(test)
        tested += sorted(test)
    assert sorted(tested) == sorted(queries(data))
    assert queries(source.parts(1, 1).test) != queries(source.parts(1, 2).test)


def test_a_folder_keeps_its_folds(tmp_path):
    """A known layout is used as it is; one without validation lends some training queries."""
    data = make_search_dataset(n_queries=30, n_features=16, seed=1)
    for name, rows in (("train", np.arange(20)), ("test", np.arange(20, 30))):
        write_letor(tmp_path / f"{name}.txt.gz", data.take_queries(rows))
    source = open_source(str(tmp_path), dataset=None, size=SIZE)
    assert source.n_folds == 1
    parts = source.parts(1, 1)
    assert (parts.train.n_queries, parts.validation.n_queries) == (16, 4)
    assert not queries(parts.train) & queries(parts.validation)


def test_the_folds_of_real_data_are_counted(real_data):
    """MQ2008 lies in five parts, from which five folds are made."""
    source = open_source(str(real_data / "mq2008"), dataset="mq2008", size=SIZE)
    assert (source.name, source.n_folds) == ("mq2008", 5)


def test_missing_data_is_named(tmp_path):
    """A path that is not there is an error that says what may be given."""
    with pytest.raises(DataError, match="nowhere is not there: give the folder of a dataset"):
        open_source(str(tmp_path / "nowhere"), dataset=None, size=SIZE)


@pytest.fixture(scope="module")
def world():
    """A small world."""
    source = open_source("generated", dataset=None, size=SIZE)
    return World(source.parts(1, 1), Clicks(), 500, 1)


def test_a_share_of_the_sessions_is_a_part_of_them():
    """Fewer sessions are the first of the more: the amount of data changes, nothing else."""
    source = open_source("generated", dataset=None, size=SIZE)
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
    source = open_source("generated", dataset=None, size=SIZE)
    world = World(source.parts(1, 1), Clicks(), 20_000, 1)
    assert world.bias("randomization") is world.bias("randomization")
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
