"""What commands give for every kind of id is what they give for small integers, ids apart.

`test_kinds.py` has `inspect`, `compact`, `train`, `evaluate` and `rank`; here are all others that take
data. Each kind of id comes in one kind of file after the other.
"""

from __future__ import annotations

import csv
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kinds import FILES, IDS, N_QUERIES, as_text, small_data, write
from unskew.cli import main
from unskew.cli.app import COMMANDS
from unskew.online.judging.rankings import read_rankings

KINDS = [(kind, FILES[number % len(FILES)]) for number, kind in enumerate(IDS)]
EVERY_KIND = pytest.mark.parametrize(("kind", "ending"), KINDS)
PLAIN = "small integers"

# Where each command is tried over the kinds of ids; demo and paper take no data of a user.
TRIED_IN_TEST_KINDS = {"inspect", "compact", "train", "evaluate", "rank"}
TRIED_HERE = {
    "advise", "bias", "clicks", "simulate", "tune", "report", "ab", "interleave", "judge", "export",
}  # fmt: skip
WITHOUT_DATA = {"demo", "paper"}


def run(*arguments):
    """The exit code of the command line."""
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    return stop.value.code


def printed(capsys, *arguments):
    """What a command prints as JSON."""
    capsys.readouterr()
    assert run(*arguments, "--json") == 0
    return json.loads(capsys.readouterr().out)


def rows_of(path):
    """The rows of a table that a command wrote; those of CSV are texts."""
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def spelled(kind, *, queries):
    """The ids of a kind by those of small integers, as texts."""
    plain, other = small_data(PLAIN).candidates, small_data(kind).candidates
    column = "query" if queries else "doc"
    return dict(zip(as_text(plain[column]), as_text(other[column]), strict=True))


def translated(rows, kind):
    """Rows with ids of small integers, as they are with ids of another kind."""
    query, doc = spelled(kind, queries=True), spelled(kind, queries=False)
    return [{**row, "query": query[str(row["query"])], "doc": doc[str(row["doc"])]} for row in rows]


def as_texts(rows):
    """Rows whose ids are texts."""
    return [{**row, "query": str(row["query"]), "doc": str(row["doc"])} for row in rows]


def ranked_by(candidates, folder, ending):
    """Two rankings of the candidates, by one feature each."""
    return [
        write(
            candidates.select(["query", "doc"]).append_column("score", candidates[feature]),
            folder / f"{feature}.{ending}",
        )
        for feature in ("bm25", "age")
    ]


def test_every_command_is_tried():
    """A command that is added must be tried over the kinds of ids and files, here or beside."""
    assert set(COMMANDS) == TRIED_IN_TEST_KINDS | TRIED_HERE | WITHOUT_DATA


@EVERY_KIND
def test_bias(kind, ending, tmp_path, capsys):
    """The curves do not depend on what ids look like."""
    curves = []
    for name in (PLAIN, kind):
        log = write(small_data(name).log, tmp_path / f"{len(curves)}.{ending}")
        options = ("-m", "relative-ctr", "--resamples", "0", "-q")
        (found,) = printed(capsys, "bias", log, *options)["methods"]
        curves.append(found.pop("bias", None) or found["t_plus"])
    assert curves[0] == curves[1]


@EVERY_KIND
def test_clicks(kind, ending, tmp_path):
    """The relevance table has the ids of the log, and the same numbers for every kind."""
    found = []
    for name in (PLAIN, kind):
        log = write(small_data(name).log, tmp_path / f"{len(found)}.{ending}")
        out = tmp_path / f"relevance-{len(found)}.parquet"
        assert run("clicks", log, "-m", "pbm", "-o", out, "-q") == 0
        found.append(rows_of(out))
    assert as_texts(found[1]) == translated(found[0], kind)


@EVERY_KIND
def test_simulate(kind, ending, tmp_path):
    """A simulated log, its features and the test labels have the ids of the labels."""
    found = []
    for name in (PLAIN, kind):
        labels = write(small_data(name).labels, tmp_path / f"labels-{len(found)}.{ending}")
        out, test = (tmp_path / f"{what}-{len(found)}.parquet" for what in ("log", "test"))
        options = ("--sessions", "40", "--policy", "labels", "--labels", test, "-q")
        assert run("simulate", labels, "-o", out, *options) == 0
        features = out.with_name(f"{out.stem}.features.parquet")
        found.append([rows_of(path) for path in (out, features, test)])
    for plain, other in zip(*found, strict=True):
        assert len(plain) >= 40
        assert as_texts(other) == translated(plain, kind)


@EVERY_KIND
def test_ab(kind, ending, tmp_path, capsys):
    """Users and queries are kept apart by their ids, whatever these look like."""
    found = []
    for name in (PLAIN, kind):
        data = small_data(name).log
        data = data.append_column("user", data["query"])
        half = data.num_rows // 2
        arms = [data.slice(0, half), data.slice(half)]
        paths = [write(arm, tmp_path / f"{len(found)}-{n}.{ending}") for n, arm in enumerate(arms)]
        found.append(printed(capsys, "ab", "read", *paths, "--user", "user", "--by", "query"))
    queries = spelled(kind, queries=True)
    parts = found[0].pop("parts")
    assert {queries[key]: part for key, part in parts.items()} == found[1].pop("parts")
    assert found[0] == found[1]
    assert found[0]["assignment"]["control"] == N_QUERIES // 2


@EVERY_KIND
def test_interleave(kind, ending, tmp_path, capsys):
    """Mixed lists have the ids of the rankings, and clicks on them are joined by these ids."""
    data = small_data(kind)
    rankings = ranked_by(data.candidates, tmp_path, ending)
    mixed = tmp_path / ("mixed.parquet" if ending == "parquet" else "mixed.csv")
    assert run("interleave", "mix", *rankings, "-o", mixed) == 0
    if ending == "parquet":
        assert pq.read_table(mixed)["doc"].type == IDS[kind][1]
    shown = {(row["query"], row["doc"]) for row in as_texts(rows_of(mixed))}
    known = zip(as_text(data.candidates["query"]), as_text(data.candidates["doc"]), strict=True)
    assert shown == set(known)
    log = write(data.log, tmp_path / f"log.{ending}")
    found = printed(capsys, "interleave", "read", log, "--mixed", mixed)["impressions"]
    assert found["wins_a"] + found["wins_b"] + found["ties"] == 48
    assert found["wins_a"] > 5


@EVERY_KIND
def test_judge(kind, ending, tmp_path):
    """The lists that assessors see are those of the files, by the ids that these have."""
    found = []
    for name in (PLAIN, kind):
        folder = tmp_path / str(len(found))
        folder.mkdir()
        paths = ranked_by(small_data(name).candidates, folder, ending)
        found.append([dict(ranking.lists) for ranking in read_rankings(*map(str, paths))])
    query, doc = spelled(kind, queries=True), spelled(kind, queries=False)
    for plain, other in zip(*found, strict=True):
        assert other == {query[q]: tuple(doc[d] for d in docs) for q, docs in plain.items()}


@pytest.mark.parametrize("ending", FILES)
def test_export(ending, tmp_path, capsys):
    """A model of any kind of file is exported, and the export scores as the model does."""
    log = write(small_data("emoji").log, tmp_path / f"log.{ending}")
    settings = ("--n-estimators", "4", "--min-data-in-leaf", "2", "--random-state", "0", "-q")
    assert run("train", log, "-o", tmp_path / "model", *settings) == 0
    assert (
        run("export", tmp_path / "model", "--to", "vespa", "-o", tmp_path / "out", "--check") == 0
    )
    assert "largest difference" in capsys.readouterr().out


def test_evaluate_on_a_log(tmp_path, capsys):
    """Estimates from a held-out log are the same for other kinds of ids and files."""
    log = write(small_data(PLAIN).log, tmp_path / "plain.parquet")
    expected = printed(capsys, "evaluate", "--score", "bm25", "--log", log)
    for number, (kind, ending) in enumerate([("20 digits", "csv"), ("emoji", "parquet")]):
        other = write(small_data(kind).log, tmp_path / f"{number}.{ending}")
        assert printed(capsys, "evaluate", "--score", "bm25", "--log", other) == expected, kind


@pytest.mark.parametrize(("kind", "ending"), [("20 digits", "csv"), ("emoji", "csv.gz")])
@pytest.mark.filterwarnings("ignore")
def test_advise_tune_and_report(kind, ending, tmp_path):
    """What reads a log to judge it takes other kinds of ids and files as well."""
    log = write(small_data(kind).log, tmp_path / f"log.{ending}")
    labels = write(small_data(kind).labels, tmp_path / f"labels.{ending}")
    assert run("advise", log, "--resamples", "0", "-q", "--json") in (0, 1)
    model = tmp_path / "model"
    settings = ("--set", "n_estimators=4", "--set", "min_data_in_leaf=2", "-q")
    assert run("tune", log, "-o", model, "--trials", "1", "--bias", "none", *settings) == 0
    page = tmp_path / "report.html"
    curve = tmp_path / "bias.json"
    method = ("-m", "relative-ctr", "--resamples", "0", "-q")
    assert run("bias", log, *method, "-o", curve) == 0
    options = ("--labels", labels, "--bias", curve, "-o", page, "-q")
    assert run("report", model, "--log", log, *options) == 0
    assert page.read_text(encoding="utf-8").startswith("<!")


def test_ids_that_differ_by_zeros_only(tmp_path):
    """In CSV 0012 and 12 stay two documents through clicks and interleave."""
    text = ["0012", "12", "00012"]
    columns = {
        "session": np.repeat(np.arange(30), 3), "query": ["07"] * 90, "doc": text * 30,
        "position": [1, 2, 3] * 30, "click": [int(k % 4 == 0 or k % 9 < 2) for k in range(90)],
        "x": [1.0, 2.0, 3.0] * 30,
    }  # fmt: skip
    log = write(pa.table(columns), tmp_path / "log.csv")
    assert run("clicks", log, "-m", "pbm", "-o", tmp_path / "relevance.csv", "-q") == 0
    assert sorted(row["doc"] for row in rows_of(tmp_path / "relevance.csv")) == sorted(text)
    assert {row["query"] for row in rows_of(tmp_path / "relevance.csv")} == {"07"}
    rankings = write(
        pa.table({"query": ["07"] * 3, "doc": text, "score": [3.0, 2.0, 1.0]}), tmp_path / "a.csv"
    )
    other = write(
        pa.table({"query": ["07"] * 3, "doc": text, "score": [1.0, 2.0, 3.0]}), tmp_path / "b.csv"
    )
    assert run("interleave", "mix", rankings, other, "-o", tmp_path / "mixed.csv") == 0
    assert sorted(row["doc"] for row in rows_of(tmp_path / "mixed.csv")) == sorted(text)
