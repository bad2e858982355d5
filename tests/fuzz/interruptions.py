"""Commands that are cut off: by a full disk, and by SIGKILL at any moment.

Whatever a command writes is absent, as it was, or whole. After a kill the same command runs again,
and nothing of the killed one is left.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

import unskew
from fuzz.commands import TRAINING
from fuzz.oracle import RIGHT, Findings, Kind, main
from fuzz.samples import prepare, run_command
from unskew.errors import UnskewError
from unskew.export.exporting import check_export

# Every command that writes, and what it writes; all files of one command belong together.
RECORD = "outrecord.json"
WRITERS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "compact": (("compact", "log.csv", "-o", "out", "-q"), ("out",)),
    "compact --parts": (("compact", "log.csv", "-o", "out", "--parts", "2", "-q"), ("out",)),
    "tune": (
        ("tune", "log.parquet", "-o", "out", "--resume", RECORD, "--trials", "2", "--folds",
         "1", "--bias", "none", "--space", "p=0.0..1.0", "--set", "n_estimators=2", "--set",
         "min_data_in_leaf=2", "--threads", "1", "-q"),
        ("out",),
    ),
    "report": (
        ("report", "model", "--log", "log.csv", "-o", "out.html", "--resamples", "0", "-m",
         "relative-ctr", "--threads", "1", "-q"),
        ("out.html",),
    ),
    "train": (("train", "log.csv", "-o", "out", *TRAINING), ("out",)),
    "train xgboost": (
        ("train", "log.csv", "-o", "out", "--booster", "xgboost", *TRAINING), ("out",),
    ),
    "train ranksvm": (
        ("train", "log.csv", "-o", "out", "--ranker", "ranksvm", "--threads", "1", "-q"), ("out",),
    ),
    "train click-model": (
        ("train", "log.csv", "-o", "out", "--ranker", "click-model", *TRAINING), ("out",),
    ),
    "train dnn": (
        ("train", "log.csv", "-o", "out", "--ranker", "dnn", "--set", "n_epochs=1", "--set",
         "hidden=[4]", "--threads", "1", "-q"),
        ("out",),
    ),
    "export": (("export", "model", "--to", "elasticsearch", "-o", "out"), ("out",)),
    "bias": (
        ("bias", "log.csv", "-m", "relative-ctr", "--resamples", "0", "-q", "-o", "out.json"),
        ("out.json",),
    ),
    "clicks": (("clicks", "log.csv", "-m", "pbm", "-q", "-o", "out.parquet"), ("out.parquet",)),
    "rank": (
        ("rank", "model", "candidates.csv", "-o", "out.parquet", "--threads", "1"), ("out.parquet",),
    ),
    "interleave": (
        ("interleave", "mix", "a.csv", "b.parquet", "-o", "out.parquet"), ("out.parquet",),
    ),
    "judge": (("judge", "results", "judged.sqlite", "-o", "out.parquet"), ("out.parquet",)),
    "simulate": (
        ("simulate", "labels.csv", "-o", "out.parquet", "--sessions", "30", "--policy", "random",
         "-q"),
        ("out.parquet", "out.features.parquet", "out.propensities.json"),
    ),
}  # fmt: skip


def state(place: Path, names: tuple[str, ...]) -> str:
    """Absent or whole, by what the files say; an AssertionError for anything between."""
    present = [name for name in names if (place / name).exists()]
    if names[0] not in present:
        return "absent"
    if present != list(names):
        raise AssertionError(f"{present} without the rest")
    for name in names:
        _read(place / name)
    return "whole"


def _read(path: Path) -> None:
    if path.suffix == ".parquet":
        pq.read_table(path)
    elif path.suffix == ".json":
        if not path.read_text().endswith("}\n"):
            raise AssertionError(f"half of {path.name}")
    elif path.suffix == ".html":
        if not path.read_text().rstrip().endswith("</html>"):
            raise AssertionError(f"half of {path.name}")
    elif (path / "samples.json").exists():
        check_export(path)
    else:
        unskew.load(path)


def leftovers(place: Path) -> list[str]:
    """Temporary names in the place, in what was written there, and in the temporary folder."""
    found = [*place.rglob(".unskew-*"), *(place.parent / "temporary").glob("*")]
    return [str(p.relative_to(place.parent)) for p in found]


def _words(name: str, place: Path) -> list[str]:
    return [str(place / w) if (place / w).exists() or w.startswith("out") else w
            for w in WRITERS[name][0]]  # fmt: skip


def called(name: str, place: Path) -> None:
    """Run a writing command in a place."""
    temporary = place.parent / "temporary"
    temporary.mkdir(exist_ok=True)
    usual, tempfile.tempdir = tempfile.tempdir, str(temporary)
    try:
        run_command(WRITERS[name][0][0], *_words(name, place)[1:])
    finally:
        tempfile.tempdir = usual


# A full disk ------------------------------------------------------------------------------------


def attempt_full_disk(sample: Path, case: int, place: Path) -> str | None:
    """A command that may write files up to a random size only; first once, then over its result."""
    rng = np.random.default_rng([case, 8])
    name = list(WRITERS)[case % len(WRITERS)]
    where = Path(shutil.copytree(sample, place / "files"))
    again = bool(rng.random() < 0.4)
    if again:
        called(name, where)
    before = _content(where)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(10 ** rng.uniform(0, 4.5)), hard))
    try:
        called(name, where)
    except UnskewError:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        return None if _content(where) == before else "an error, but files changed"
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    if leftovers(where):
        return f"left {leftovers(where)}"
    return None if state(where, WRITERS[name][1]) == "whole" else "success, but nothing is there"


def _content(place: Path) -> dict[str, bytes]:
    """Every file, without those that SQLite keeps beside a database that is read.

    The record of a search is kept after every trial, so that a search can go on: it must be whole.
    """
    if (place / RECORD).exists():
        json.loads((place / RECORD).read_text())
    return {
        str(p.relative_to(place)): p.read_bytes()
        for p in place.rglob("*")
        if p.is_file() and p.name != RECORD and not p.name.endswith(("-wal", "-shm"))
    }


# SIGKILL ----------------------------------------------------------------------------------------


def kill_at_random(sample: Path, case: int, place: Path, longest: dict[str, float]) -> str | None:
    """Kill a command after a random part of the time it takes, look, and run it again."""
    rng = np.random.default_rng([case, 9])
    name = list(WRITERS)[case % len(WRITERS)]
    names = WRITERS[name][1]
    had = rng.random() < 0.5
    where = Path(shutil.copytree(sample.parent / name if had else sample, place / "files"))
    # Most of the writing happens in the last part of a command's time.
    share = 1 - 0.5 * rng.random() ** 2 if rng.random() < 0.7 else rng.random()
    killed = _in_child(name, where, share * longest[name])
    found = state(where, names)
    if found == "absent" and had:
        return "the old result is gone"
    _in_child(name, where, None)
    if state(where, names) != "whole":
        return "the next run wrote nothing"
    if leftovers(where):
        return f"left {leftovers(where)}"
    return f"killed, {found}" if killed else "ended before"


def _in_child(name: str, place: Path, seconds: float | None) -> bool:
    """Run a command in a forked child; whether it was killed after so many seconds."""
    child = os.fork()
    if child == 0:
        try:
            called(name, place)
        except BaseException as error:
            sys.stderr.write(f"{name}: {error}\n")
            os._exit(1)
        os._exit(0)
    if seconds is None:
        _, status = os.waitpid(child, 0)
        if status:
            raise AssertionError(f"{name} ended with {os.waitstatus_to_exitcode(status)}")
        return False
    time.sleep(seconds)
    done, _ = os.waitpid(child, os.WNOHANG)
    if done:
        return False
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


def kills(rounds: int) -> Findings:
    """So many kills over all writing commands; this process itself runs none of them."""
    kind = Kind("kills", ("files",), prepare, lambda *_: None)
    findings = Findings()
    with tempfile.TemporaryDirectory(prefix="fuzz-kills-") as folder:
        samples = Path(folder)
        child = os.fork()
        if child == 0:
            prepare(samples)
            os._exit(0)
        os.waitpid(child, 0)
        longest: dict[str, float] = {}
        for name in WRITERS:
            place = Path(shutil.copytree(samples / "files", samples / name))
            started = time.monotonic()
            _in_child(name, place, None)
            longest[name] = time.monotonic() - started
            if state(place, WRITERS[name][1]) != "whole":
                raise AssertionError(f"{name} wrote nothing")
        for case in range(rounds):
            place = samples / f"case{case}"
            try:
                ended = kill_at_random(samples / "files", case, place, longest)
            except Exception as error:  # a finding, whatever it is
                ended = f"{type(error).__name__}: {error}"
            fine = {"killed, absent", "killed, whole", "ended before"}
            findings.note(kind, case, RIGHT if ended in fine else str(ended))
            findings.ends[str(ended)] += 1
            shutil.rmtree(place, ignore_errors=True)
            if (case + 1) % 20 == 0:
                sys.stderr.write(f"{case + 1} kills: {findings}\n")
    return findings


KINDS = (Kind("full disk", ("files",), prepare, attempt_full_disk),)

if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] == "kills":
        found = kills(int(sys.argv[2]))
        sys.stdout.write(f"kills: {found}\n")
        sys.exit(int(bool(found.bad)))
    main(KINDS)
