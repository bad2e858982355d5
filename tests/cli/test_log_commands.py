"""The commands that take a click log: inspect and compact."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import unskew
from unskew.cli import main

LOG = {
    "session": [1, 1, 2, 2], "query": ["a", "a", "a", "a"], "doc": [10, 11, 10, 11],
    "position": [1, 2, 1, 2], "click": [0, 1, 1, 0],
}  # fmt: skip


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A small log as Parquet."""
    pq.write_table(pa.table(LOG), tmp_path / "clicks.parquet")
    return tmp_path / "clicks.parquet"


def run(*arguments: object) -> int:
    """Run the command line and give its exit code."""
    with pytest.raises(SystemExit) as exit_:
        main([str(argument) for argument in arguments])
    return int(exit_.value.code or 0)


def test_inspect(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A good log is shown with its numbers and bars, and the exit code is 0."""
    assert run("inspect", log) == 0
    shown = capsys.readouterr().out
    for text in ("2  sessions, 0 without a click", "1  pages", "Clicks by position", "█"):
        assert text in shown


def test_inspect_json(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--json gives programs the same numbers."""
    assert run("inspect", log, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["sessions"], found["pages"], found["patterns"], found["clicks"]) == (2, 1, 2, 2)
    assert found["positions"][0]["ctr"] == 0.5


def test_inspect_lists_problems(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every kind of problem is listed, and the exit code says that the data is wrong."""
    bad = LOG | {"position": [1, -2, 1, 2], "click": [0, 1, 99, 0]}
    pq.write_table(pa.table(bad), tmp_path / "bad.parquet")
    assert run("inspect", tmp_path / "bad.parquet") == 1
    shown = capsys.readouterr().out
    assert "position_below_one (1)" in shown
    assert "click_not_grade (1)" in shown
    assert "2 sessions with problems are left out" in shown


def test_compact(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The folder equals what the API gives, and is a log for every command."""
    assert run("compact", log, "-o", tmp_path / "out") == 0
    assert "saved to" in capsys.readouterr().out
    assert unskew.load(tmp_path / "out").equals(unskew.read_log(log))
    assert run("inspect", tmp_path / "out", "--json") == 0
    assert json.loads(capsys.readouterr().out)["sessions"] == 2
    assert run("compact", tmp_path / "out", "-o", tmp_path / "again") == 2
    assert "is compact already" in capsys.readouterr().err


def test_compact_with_options(tmp_path: Path) -> None:
    """Column names, ignored columns and the first position are options."""
    odd = {"position": "rank", "click": "clicked"}
    renamed = {odd.get(name, name): values for name, values in LOG.items()}
    renamed |= {"rank": [0, 1, 0, 1], "title": ["x"] * 4, "x": [1.0, 2.0, 1.0, 2.0]}
    pq.write_table(pa.table(renamed), tmp_path / "odd.parquet")
    options = ["--position", "rank", "--click", "clicked", "--ignore", "title"]
    options += ["--first-position", "0", "--quiet"]
    assert run("compact", tmp_path / "odd.parquet", "-o", tmp_path / "out", *options) == 0
    assert unskew.load(tmp_path / "out").features.names == ("x",)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["compact", "nowhere.parquet", "-o", "out"], 1, "there is no such file"),
        (["inspect", "nowhere.parquet"], 1, "there is no such file"),
        (
            ["compact", "clicks.parquet", "-o", "out", "--session", "sesion"],
            1,
            "did you mean 'session'",
        ),
        (["compact", "clicks.parquet", "-o", "out", "--first-position", "7"], 2, "must be 0 or 1"),
        (["compact", "clicks.parquet"], 2, "Missing option"),
        (["inspekt"], 2, "No such command"),
    ],
)
def test_exit_codes(
    arguments: list[str],
    code: int,
    message: str,
    log: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """1 if the data is wrong, 2 if the call is, and the reason on standard error."""
    monkeypatch.chdir(log.parent)
    assert run(*arguments) == code
    assert message in capsys.readouterr().err


def test_a_foreign_folder_is_not_overwritten(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Writing over a folder that is not ours is refused."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("mine")
    assert run("compact", log, "-o", tmp_path / "mine") == 1
    assert "was not saved by Unskew" in capsys.readouterr().err


def test_version_and_help() -> None:
    """The installed program answers quickly, without loading the heavy libraries."""
    code = "from unskew.cli import main; main(['--version'])"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout.strip() == f"unskew {unskew.__version__}"
