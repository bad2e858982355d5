"""`unskew judge results`: the table, JSON for programs, and the exported judgements."""

from __future__ import annotations

import json

import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

from unskew.cli import main
from unskew.online.judging.answers import Answer
from unskew.online.judging.database import Database
from unskew.online.judging.rankings import Ranking
from unskew.online.judging.results import read_results
from unskew.online.judging.study import make_study


def run(*arguments):
    """The exit code of the command line."""
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    return stop.value.code


@pytest.fixture
def judgements(tmp_path):
    """Writes a database of the given answers, A always on the left: name to answers."""

    def write(**answers):
        path = tmp_path / "judgements.sqlite"
        n = max(map(len, answers.values()))
        queries = [f"q{k}" for k in range(n)]
        a = Ranking("new", dict.fromkeys(queries, ("1", "2")))
        b = Ranking("old", dict.fromkeys(queries, ("2", "1")))
        database = Database(path, seed=1)
        asked = list(database.begin(make_study(a, b)))
        for name, given in answers.items():
            who = database.assessor(name)
            for number, answer in zip(asked, given, strict=False):
                database.record(who, number, Answer(answer), a_was_left=True, reason="[red]x")
        database.close()
        return path

    return write


def test_json_equals_the_api(judgements, capsys):
    """The JSON of the command line is that of the library."""
    path = judgements(Ann=["left", "same", "right"], Bob=["left", "both_bad", "skip"])
    assert run("judge", "results", path, "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown == json.loads(json.dumps(read_results(path).to_json()))
    assert (shown["win"], shown["same"], shown["loss"]) == (1, 1, 1)
    assert shown["agreement"]["queries"] == 2


def test_table(judgements, capsys):
    """The table has queries, judgements and assessors, and sentences say who won."""
    path = judgements(Ann=["left"] * 9 + ["right"], Bob=["left"] * 9 + ["right"])
    assert run("judge", "results", path) == 0
    shown = capsys.readouterr().out
    for expected in (
        "new against old, top 5", "win/loss ratio 9.00", "p = 0.0215: A is better",
        "10 of 10 queries judged", "alpha) 1.00", "Ann", "Bob",
        "the left list was preferred 18 times and the right one 2",
    ):  # fmt: skip
        assert expected in " ".join(shown.split())


def test_table_before_anything_is_decided(judgements, capsys):
    """Few answers are told as such, without a ratio."""
    assert run("judge", "results", judgements(Ann=["same"])) == 0
    shown = capsys.readouterr().out
    assert "no query has a win or a loss yet" in shown
    assert "no query has two assessors yet" in shown


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_export(judgements, tmp_path, suffix):
    """Every judgement is a row of the exported table, also into a folder that is new."""
    path, out = judgements(Ann=["left", "skip"]), tmp_path / "out" / f"table.{suffix}"
    assert run("judge", "results", path, "-o", out) == 0
    read = pq.read_table if suffix == "parquet" else csv.read_csv
    rows = read(out).to_pylist()
    assert [row["outcome"] for row in rows] == ["win", "skipped"]
    assert rows[0]["reason"] == "[red]x"
    assert [file.name for file in out.parent.iterdir()] == [out.name]


def test_wrong_calls(judgements, tmp_path, capsys):
    """A wrong ending is an error of the call, an absent database one of the data."""
    assert run("judge", "results", judgements(Ann=["left"]), "-o", "x.txt") == 2
    assert "--out must end in .parquet or .csv, got 'x.txt'" in capsys.readouterr().err
    assert run("judge", "results", tmp_path / "none.sqlite") == 1
    assert "there is no such file" in capsys.readouterr().err
