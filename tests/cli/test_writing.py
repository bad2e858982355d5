"""No command writes over its own input, to one place twice, or over what is not ours."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

from unskew.cli import main

SIMULATE = ("--sessions", "200", "--policy", "random", "--quiet")


def call(*arguments) -> int:
    """Run the program; the exit code."""
    with pytest.raises(SystemExit) as end:
        main([str(a) for a in arguments])
    return end.value.code


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    """Labelled documents that somebody else wrote."""
    n = 40
    table = pa.table(
        {
            "query": [q for q in range(10) for _ in range(4)], "doc": [*range(4)] * 10,
            "relevance": [2, 0, 1, 0] * 10, "x": [float(k % 7) for k in range(n)],
        }
    )  # fmt: skip
    pq.write_table(table, tmp_path / "labels.parquet")
    return tmp_path / "labels.parquet"


def other_names(file: Path) -> dict[str, Path]:
    """Names that lead to the same file."""
    folder = file.parent
    (folder / "link.parquet").symlink_to(file)
    (folder / "hard.parquet").hardlink_to(file)
    (folder / "sub").mkdir()
    return {
        "itself": file, "link": folder / "link.parquet", "hard": folder / "hard.parquet",
        "relative": folder / "sub" / ".." / file.name,
        "from here": Path(os.path.relpath(file)),
    }  # fmt: skip


@pytest.mark.parametrize("name", ["itself", "link", "hard", "relative", "from here"])
def test_simulate_keeps_its_labels(labels: Path, name: str, capsys) -> None:
    """The labels are never replaced by clicks, by whatever name they are called."""
    before = labels.read_bytes()
    out = other_names(labels)[name]
    assert call("simulate", labels, "-o", out, "--overwrite", *SIMULATE) == 2
    assert "would write over" in " ".join(capsys.readouterr().err.split())
    assert labels.read_bytes() == before
    assert call("simulate", labels.parent, "-o", labels, "--overwrite", *SIMULATE) == 2
    assert labels.read_bytes() == before


def test_simulate_writes_to_several_places(labels: Path, capsys) -> None:
    """The log, its features and the test labels cannot share a name, nor the features be read."""
    out = labels.parent / "x.parquet"
    for other in (out, labels.parent / "x.features.parquet"):
        assert call("simulate", labels, "-o", out, "--labels", other, *SIMULATE) == 2
        assert "name the same file" in " ".join(capsys.readouterr().err.split())
    assert sorted(p.name for p in labels.parent.iterdir()) == ["labels.parquet"]
    beside = labels.rename(labels.parent / "x.features.parquet")
    before = beside.read_bytes()
    assert call("simulate", beside, "-o", out, "--overwrite", *SIMULATE) == 2
    assert beside.read_bytes() == before


def test_rank_keeps_its_candidates(labels: Path, capsys) -> None:
    """The candidates are refused as output before the model is even looked for."""
    before = labels.read_bytes()
    for out in other_names(labels).values():
        assert call("rank", labels.parent / "no model", labels, "-o", out, "--overwrite") == 2
        assert "would write over" in " ".join(capsys.readouterr().err.split())
    pattern = labels.parent / "lab*.parquet"
    assert call("rank", labels.parent / "no model", pattern, "-o", labels, "--overwrite") == 2
    assert labels.read_bytes() == before


def test_mixing_keeps_its_rankings(labels: Path) -> None:
    """Neither ranking is replaced by their mixture."""
    before = labels.read_bytes()
    assert call("interleave", "mix", labels, labels, "-o", labels, "--overwrite") == 2
    assert labels.read_bytes() == before


def test_train_and_compact_refuse_before_reading(labels: Path, capsys) -> None:
    """A folder that is read, or not ours, is refused before the log is looked for."""
    mine = labels.parent / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work")
    nowhere = labels.parent / "no such log.parquet"
    for command in ("train", "compact"):
        assert call(command, nowhere, "-o", mine, "--quiet") == 1
        assert "was not saved by Unskew" in " ".join(capsys.readouterr().err.split())
        assert call(command, mine, "-o", mine, "--quiet") == 2
        assert "is read by the same command" in " ".join(capsys.readouterr().err.split())
        assert call(command, labels, "-o", labels, "--quiet") == 2
    assert (mine / "thesis.txt").read_text() == "years of work"


@pytest.mark.parametrize("name", ["log.parquet", "log.features.parquet", "log.propensities.json"])
def test_foreign_files_need_overwrite(labels: Path, name: str, capsys) -> None:
    """What this program did not write is replaced only on demand; its own files always."""
    foreign = labels.parent / name
    foreign.write_text("years of work")
    out = labels.parent / "log.parquet"
    assert call("simulate", labels, "-o", out, *SIMULATE) == 2
    assert "--overwrite to replace it" in " ".join(capsys.readouterr().err.split())
    assert foreign.read_text() == "years of work"
    assert call("simulate", labels, "-o", out, "--overwrite", *SIMULATE) == 0
    assert call("simulate", labels, "-o", out, *SIMULATE) == 0


def test_a_table_of_ours(tmp_path: Path, capsys) -> None:
    """A Parquet table says that it is ours and is replaced; a CSV file cannot say it."""
    table = pa.table({"query": [1, 1], "doc": ["a", "b"], "rank": [1, 2]})
    a, b = tmp_path / "a.parquet", tmp_path / "b.csv"
    pq.write_table(table, a)
    csv.write_csv(table, b)
    for _ in range(2):
        assert call("interleave", "mix", a, b, "-o", tmp_path / "mixed.parquet") == 0
    assert call("interleave", "mix", a, b, "-o", tmp_path / "mixed.csv") == 0
    assert call("interleave", "mix", a, b, "-o", tmp_path / "mixed.csv") == 2
    assert "--overwrite" in capsys.readouterr().err
    assert call("interleave", "mix", a, b, "-o", tmp_path / "mixed.csv", "--overwrite") == 0


FULL = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))
from unskew.cli import main
main({arguments!r})
"""


@pytest.mark.parametrize("size", [100, 1_500, 3_000])
def test_a_full_disk_leaves_nothing(labels: Path, size: int) -> None:
    """If one of the files does not fit, neither the log nor anything beside it appears."""
    wide = pq.read_table(labels)
    for k in range(60):  # the features take more room than the log
        wide = wide.append_column(f"f{k}", pa.array([k + row / 7 for row in range(len(wide))]))
    pq.write_table(wide, labels)
    out = labels.parent / "out"
    arguments = ["simulate", str(labels), "-o", str(out / "log.parquet"), "--sessions", "5",
                 "--policy", "random", "--quiet"]  # fmt: skip
    code = FULL.format(size=size, arguments=arguments)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert list(out.iterdir()) == []


def test_a_killed_command_is_cleaned_up_after(labels: Path) -> None:
    """Killed at any moment, a command leaves nothing half, and the next one removes its traces."""
    out = labels.parent / "out"
    arguments = ["simulate", labels, "-o", out / "log.parquet", "--policy", "random", "--quiet"]
    command = [sys.executable, "-c", "import sys; from unskew.cli import main; main(sys.argv[1:])"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [*command, *map(str, arguments), "--sessions", "20000000"], env=environment
    )
    while not (out.is_dir() and list(out.iterdir())):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (out / "log.parquet").exists()
    assert list(out.iterdir()), "something was left"
    assert call(*arguments, "--sessions", "100") == 0
    assert sorted(p.name for p in out.iterdir()) == [
        "log.features.parquet", "log.parquet", "log.propensities.json",
    ]  # fmt: skip
    json.loads((out / "log.propensities.json").read_text())
