"""`unskew advise`: words first, JSON on demand, every kind of log and id."""

from __future__ import annotations

import json

import pytest

from kinds import FILES, IDS, small_data, write
from unskew.cli import main


def call(*arguments):
    """Run the program; the exit code."""
    with pytest.raises(SystemExit) as end:
        main([str(a) for a in arguments])
    return end.value.code


def advised(capsys, *arguments):
    """What --json prints."""
    capsys.readouterr()
    assert call("advise", *arguments, "--json", "--threads", 1, "--resamples", 0, "-q") == 0
    return json.loads(capsys.readouterr().out)


def test_the_answer_comes_first(tmp_path, capsys):
    """The first line is the answer; estimators, contents and what to do follow."""
    log = tmp_path / "log.parquet"
    call(
        "simulate",
        "generated",
        "--queries",
        60,
        "--sessions",
        2500,
        "--policy",
        "drifting",
        "-o",
        log,
    )
    capsys.readouterr()
    assert call("advise", log, "--threads", 1, "--resamples", 20, "-q") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("This log is good enough to measure position bias")
    shown = " ".join(" ".join(lines).split())
    for text in ("How to train: no ranker yet", "Position bias by harvesting", "harvesting sound",
                 "What the log holds", "Give features of the documents"):  # fmt: skip
        assert text in shown


@pytest.mark.parametrize("kind", IDS)
@pytest.mark.parametrize("ending", FILES)
def test_every_kind_of_id_and_file(kind, ending, tmp_path, capsys):
    """The advice does not depend on what ids or files look like; a compacted folder gives the same."""
    plain = advised(capsys, write(small_data("small integers").log, tmp_path / "plain.parquet"))
    log = write(small_data(kind).log, tmp_path / f"log.{ending}")
    assert advised(capsys, log) == plain
    if ending == "parquet":
        assert call("compact", log, "-o", tmp_path / "compact", "-q") == 0
        assert advised(capsys, tmp_path / "compact") == plain


def test_a_small_log_is_refused_kindly(tmp_path, capsys):
    """Eight queries that never move are no ground for anything but care, and it says what to do."""
    found = advised(capsys, write(small_data("text").log, tmp_path / "log.parquet"))
    assert {one["answer"] for one in found["uses"]} <= {"no", "partly"}
    assert found["method"]["name"] in {"blind", "none"}
    assert found["remedies"]


def test_an_unknown_context(tmp_path, capsys):
    """A context that the log does not have is refused by name."""
    log = write(small_data("text").log, tmp_path / "log.parquet")
    assert call("advise", log, "--shuffled", "x") == 2
    assert "--shuffled: the log has no context 'x'" in " ".join(capsys.readouterr().err.split())
