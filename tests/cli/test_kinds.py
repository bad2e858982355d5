"""Every command takes every kind of id from every kind of file, and changes none."""

from __future__ import annotations

import csv
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import unskew
from kinds import FILES, FRAMES, IDS, as_text, ids, small_data, write
from unskew.cli import main

SETTINGS = (
    "--n-estimators",
    "4",
    "--min-data-in-leaf",
    "2",
    "--random-state",
    "0",
    "--threads",
    "1",
)
EVERY_KIND = pytest.mark.parametrize("kind", IDS)
EVERY_FILE = pytest.mark.parametrize("ending", FILES)


def run(*arguments):
    """The exit code of the command line."""
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    return stop.value.code


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model trained on small integers."""
    folder = tmp_path_factory.mktemp("kinds")
    log = write(small_data("small integers").log, folder / "log.parquet")
    assert run("train", log, "-o", folder / "model", "-q", *SETTINGS) == 0
    return folder / "model"


@EVERY_KIND
@EVERY_FILE
def test_rank_gives_ids_back_as_they_came(kind, ending, model, tmp_path):
    """Ids come out with the values and, from Parquet, the type that they had."""
    candidates = small_data(kind).candidates
    path = write(candidates, tmp_path / f"candidates.{ending}")
    out = tmp_path / ("ranked.parquet" if ending == "parquet" else "ranked.csv")
    assert run("rank", model, path, "-o", out) == 0
    frame = pa.table({name: candidates[name] for name in ("bm25", "age")})
    number = np.repeat(np.arange(8), 5)
    order = unskew.load(model).rank(frame, query=number).row
    if ending == "parquet":
        ranked = pq.read_table(out)
        assert ranked["query"].type == IDS[kind][1]
        assert ranked["query"].to_pylist() == candidates["query"].take(order).to_pylist()
        assert ranked["doc"].to_pylist() == candidates["doc"].take(order).to_pylist()
    else:
        with out.open(newline="", encoding="utf-8") as stream:
            rows = list(csv.DictReader(stream))
        assert [row["query"] for row in rows] == as_text(candidates["query"].take(order))
        assert [row["doc"] for row in rows] == as_text(candidates["doc"].take(order))


@EVERY_KIND
@EVERY_FILE
def test_the_other_commands_give_the_same_for_every_kind(kind, ending, model, tmp_path, capsys):
    """`inspect`, `compact`, `train` and `evaluate` do not depend on what ids look like."""
    data, plain = small_data(kind), small_data("small integers")
    log = write(data.log, tmp_path / f"log.{ending}")
    labels = write(data.labels, tmp_path / f"labels.{ending}")
    capsys.readouterr()
    assert run("inspect", log, "--json", "-q") == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["sessions"], shown["queries"], shown["documents"]) == (48, 8, 40)

    assert run("compact", log, "-o", tmp_path / "compact", "-q") == 0
    compact = unskew.load(tmp_path / "compact")
    assert [str(key) for key in compact.queries.tolist()] == as_text(ids(kind, range(8)))
    assert [str(key) for key in compact.documents.doc.tolist()] == as_text(
        ids(kind, range(100, 140))
    )

    assert run("train", log, "-o", tmp_path / "model", "-q", *SETTINGS) == 0
    expected = unskew.load(model).predict(plain.candidates.select(["bm25", "age"]))
    trained = unskew.load(tmp_path / "model")
    scores = trained.predict(data.candidates.select(["bm25", "age"]))
    np.testing.assert_allclose(scores, expected, rtol=1e-12)

    capsys.readouterr()
    assert run("evaluate", model, "--labels", labels, "--metrics", "ndcg@10", "--json") == 0
    ndcg = json.loads(capsys.readouterr().out)["rankers"]["model"]["ndcg@10"]["mean"]
    relevance = data.labels["relevance"].to_numpy()
    found = unskew.evaluate(expected, relevance, np.repeat(np.arange(8), 5), metrics=["ndcg@10"])
    assert ndcg == pytest.approx(found.mean["ndcg@10"], abs=1e-12)


@EVERY_KIND
@pytest.mark.parametrize("frame", FRAMES)
def test_frames_of_every_kind(kind, frame):
    """A frame of any library gives the Impressions and labels that a Parquet file gives."""
    data = small_data(kind)
    assert unskew.read_log(FRAMES[frame](data.log)).equals(unskew.read_log(data.log))
    labels = unskew.read_labels(FRAMES[frame](data.labels))
    assert [str(key) for key in labels.query.tolist()] == as_text(data.labels["query"])
    assert [str(key) for key in labels.doc.tolist()] == as_text(data.labels["doc"])


@EVERY_KIND
@pytest.mark.parametrize("column", ["list", "numpy", "arrow", "chunks", "pandas", "polars"])
def test_columns_beside_a_matrix_of_every_kind(kind, column):
    """Impressions of arrays have the ids of the columns, whatever holds these."""
    log = small_data(kind).log
    makers = {
        "list": lambda values: values.to_pylist(),
        "numpy": lambda values: values.combine_chunks().to_numpy(zero_copy_only=False),
        "arrow": lambda values: values.combine_chunks(),
        "chunks": lambda values: values,
        "pandas": lambda values: values.to_pandas(),
        "polars": lambda values: FRAMES["polars"](pa.table({"ids": values}))["ids"],
    }
    names = ("click", "session", "query", "doc", "position")
    given = {name: makers[column](log[name]) for name in names}
    X = np.column_stack([log["bm25"], log["age"]])
    data = unskew.Impressions.from_arrays(X, given.pop("click"), **given)
    assert [str(key) for key in data.queries.tolist()] == as_text(ids(kind, range(8)))
    assert [str(key) for key in data.documents.doc.tolist()] == as_text(ids(kind, range(100, 140)))


def test_numbers_beyond_64_bits_stay_exact():
    """Ids of thirty digits in a list are told apart and keep every digit."""
    docs = [10**30 + 1, 10**30 + 2]
    data = unskew.Impressions.from_arrays(
        None, [1, 0], session=[1, 1], query=[1, 1], position=[1, 2], doc=docs
    )
    assert data.documents.doc.tolist() == [str(doc) for doc in docs]


@EVERY_KIND
@pytest.mark.parametrize("frame", FRAMES)
def test_a_ranker_ranks_frames_with_ids_of_every_kind(kind, frame, model):
    """`rank` of the API takes columns of any library and gives the ids back."""
    candidates = small_data(kind).candidates
    given = FRAMES[frame](candidates)
    query, doc = given["query"], given["doc"]
    if frame == "arrow":
        query, doc = query.combine_chunks(), doc.combine_chunks()
    X = candidates.select([2, 3]) if frame == "arrow" else given[["bm25", "age"]]
    ranking = unskew.load(model).rank(X, query=query, doc=doc)
    assert [str(one) for one in ranking.doc.tolist()] == as_text(
        candidates["doc"].take(ranking.row)
    )
    assert ranking.rank.tolist().count(1) == 8


@EVERY_FILE
@pytest.mark.parametrize("column", ["query", "doc"])
def test_rank_refuses_an_id_that_is_missing(ending, column, model, tmp_path, capsys):
    """A null among the ids is an error that names the row and the column."""
    candidates = small_data("text").candidates
    values = candidates[column].to_pylist()
    values[3] = None
    at = candidates.column_names.index(column)
    candidates = candidates.set_column(at, column, pa.array(values, pa.string()))
    path = write(candidates, tmp_path / f"candidates.{ending}")
    assert run("rank", model, path, "-o", tmp_path / "ranked.csv") == 1
    error = " ".join(capsys.readouterr().err.split())
    assert f"row 4: column '{column}' is null. Remedy: fill it in" in error
    assert not (tmp_path / "ranked.csv").exists()


def test_rank_takes_other_types_of_ids(model, tmp_path):
    """Booleans, dictionaries, timestamps and floats come out as they came in."""
    candidates = small_data("small integers").candidates
    n = candidates.num_rows
    for number, values in enumerate(
        [
            pa.array([k % 2 == 0 for k in range(n)]),
            pa.array([f"q{k % 3}" for k in range(n)]).dictionary_encode(),
            pa.array([k % 4 for k in range(n)], pa.timestamp("us")),
            pa.array([k % 4 + 0.5 for k in range(n)]),
        ]
    ):
        path = write(candidates.set_column(0, "query", values), tmp_path / f"{number}.parquet")
        assert run("rank", model, path, "-o", tmp_path / "ranked.parquet") == 0
        ranked = pq.read_table(tmp_path / "ranked.parquet")
        assert sorted(ranked["query"].to_pylist()) == sorted(values.to_pylist())
        assert ranked["rank"].to_pylist().count(1) == len(set(values.to_pylist()))


@EVERY_FILE
def test_rank_of_nothing_is_nothing(ending, model, tmp_path):
    """Candidates without a row give a result without a row."""
    path = write(small_data("text").candidates.slice(0, 0), tmp_path / f"none.{ending}")
    assert run("rank", model, path, "-o", tmp_path / "ranked.parquet") == 0
    ranked = pq.read_table(tmp_path / "ranked.parquet")
    assert ranked.num_rows == 0
    assert ranked.column_names == ["query", "doc", "score", "rank"]
