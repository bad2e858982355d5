"""The commands for tests with live users: ab and interleave."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from unskew.cli import main
from unskew.online import read_ab


def run(*arguments: object) -> int:
    """Run the command line and give its exit code."""
    with pytest.raises(SystemExit) as exit_:
        main([str(argument) for argument in arguments])
    return int(exit_.value.code or 0)


def _arm(path: Path, rate: float, seed: int, prefix: str) -> Path:
    rng = np.random.default_rng(seed)
    n = 2_000
    user = rng.integers(500, size=n)
    table = pa.table(
        {
            "session": np.repeat(np.arange(n), 2),
            "query": np.repeat(np.where(user % 2 == 0, "[red]a[/]", "b"), 2),
            "position": np.tile([1, 2], n),
            "click": (rng.random(2 * n) < rate).astype(int),
            "user": np.repeat([f"{prefix}{u}" for u in user], 2),
            "time": np.repeat(rng.integers(3, size=n), 2),
            "[bold]spent": rng.random(2 * n),
        }
    )
    pq.write_table(table, path)
    return path


@pytest.fixture
def arms(tmp_path: Path) -> tuple[Path, Path]:
    """A control and a better treatment."""
    return (
        _arm(tmp_path / "control.parquet", 0.3, 1, "c"),
        _arm(tmp_path / "treatment.parquet", 0.4, 2, "t"),
    )


def test_ab_read(arms: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """Words first, then a table; what the user named is never taken for markup."""
    assert (
        run("ab", "read", *arms, "--user", "user", "--by", "query", "--measure", "[bold]spent") == 0
    )
    shown = capsys.readouterr().out
    assert shown.startswith("treatment is better on click@1: +")
    for text in ("[bold]spent", "[red]a[/]", "independent users", "p Holm"):
        assert text in shown


def test_ab_read_json(arms: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """--json gives exactly what the library gives."""
    assert run("ab", "read", *arms, "--user", "user", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found == read_ab(*arms, user="user").to_dict()
    assert set(found["measures"]["click@1"]) >= {
        "control",
        "treatment",
        "relative",
        "interval",
        "p",
    }
    assert found["assignment"]["p"] > 0.001


def test_ab_read_by_day_sequentially(
    arms: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """A sequential reading says when it was decided, and the days are a table."""
    options = (
        "--user",
        "user",
        "--time",
        "time",
        "--by",
        "day",
        "--sequential",
        "--expected",
        "0.3",
    )
    assert run("ab", "read", *arms, *options) == 0
    shown = capsys.readouterr().out
    assert "any time you look" in shown
    assert "click@1: first decided on" in shown
    assert run("ab", "read", *arms, *options, "--json") == 0
    assert list(json.loads(capsys.readouterr().out)["path"]) == ["0", "1", "2"]


def test_ab_read_with_a_pre_period(
    arms: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """What the pre-period explains of the variance is said in words."""
    pre = ("--pre-control", arms[0], "--pre-treatment", arms[1])
    assert run("ab", "read", *arms, "--user", "user", *pre) == 0
    assert "of the variance taken out: click@1 9" in capsys.readouterr().out


def test_a_mismatch_is_said_first(
    arms: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """A split that cannot be chance is the first thing to read."""
    assert run("ab", "read", *arms, "--share", "0.3") == 0
    assert capsys.readouterr().out.startswith("The arms are not split as promised")


def test_exit_codes(arms: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """1 if the data is wrong, 2 if the call is."""
    assert run("ab", "read", *arms, "--user", "usr") == 1
    assert "did you mean 'user'" in capsys.readouterr().err
    assert run("ab", "read", arms[0], arms[0], "--user", "user") == 1
    assert "is in both arms" in capsys.readouterr().err
    assert run("ab", "read", *arms, "--by", "week") == 2
    assert run("ab", "read", arms[0], "missing.parquet") == 1
    assert run("ab", "plan", "--baseline", "0.3") == 2
    assert run("ab", "plan") == 2
    assert run("interleave", "read", arms[0]) == 1
    assert run("interleave", "mix", *arms, "-o", "out.txt") == 2


def test_ab_plan(arms: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """Sessions and days for a change, from a number or from a log."""
    assert run("ab", "plan", "--baseline", 0.3, "--relative", 0.02, "--sessions-a-day", 20_000) == 0
    assert "10 days at 20,000 a day" in capsys.readouterr().out
    log = ("ab", "plan", arms[0], "--user", "user", "--relative", "0.05", "--json")
    assert run(*log) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["baseline"] == pytest.approx(0.3, abs=0.05)
    assert plan["power"] == pytest.approx(0.8, abs=0.01)
    assert run(*log[:-1], "--sequential") == 0
    assert "looks at any time" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("method", ["team-draft", "competitive-pairs", "probabilistic"])
def test_interleave(
    tmp_path: Path, kind: str, method: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two rankings are mixed into a file, and clicks on it are read from there."""
    for name, ranks in (("a", [1, 2, 3]), ("b", [3, 2, 1])):
        pq.write_table(
            pa.table({"query": ["0q"] * 3, "doc": ["01", "1", "2"], "rank": ranks}),
            tmp_path / f"{name}.parquet",
        )
    out = tmp_path / "folder" / f"mixed.{kind}"
    paths = (tmp_path / "a.parquet", tmp_path / "b.parquet", "-o", out)
    assert run("interleave", "mix", *paths, "--method", method, "--seed", 4) == 0
    mixed = pq.read_table(out) if kind == "parquet" else pyarrow.csv.read_csv(out)
    assert mixed.column_names[:4] == ["query", "position", "doc", "team"]
    log = pa.table(
        {
            "session": np.repeat(np.arange(40), 3), "query": ["0q"] * 120,
            "doc": ["01", "1", "2"] * 40, "click": [1, 0, 0] * 40,
        }
    )  # fmt: skip
    pq.write_table(log, tmp_path / "log.parquet")
    capsys.readouterr()
    assert run("interleave", "read", tmp_path / "log.parquet", "--mixed", out) == 0
    shown = capsys.readouterr().out
    assert "impressions" in shown
    assert run("interleave", "read", tmp_path / "log.parquet", "--mixed", out, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    if method != "probabilistic":
        assert found["winner"] == "A", "every click is on A's first document"
        assert shown.startswith("A wins: A is preferred by 100.0%")
    assert found["impressions"]["wins_b"] == 0
