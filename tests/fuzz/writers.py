"""Two writers and a reader on one folder: nothing is lost, and no half result is read.

``python -m fuzz.writers 200`` runs 200 rounds and prints what was read.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections import Counter
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from unskew.errors import StoreError
from unskew.store import open_folder, write_folder

# What is there when a round begins.
BEGINNINGS = ("saved", "absent", "empty")


def save(folder: Path, text: str) -> None:
    """Save a folder of three files with the same text, large enough to take a moment."""
    files = {name: lambda file: file.write_text(text * 20_000) for name in ("a", "b", "c")}
    write_folder(folder, kind="note", version=1, meta={"text": text}, files=files)


def read(folder: Path) -> str:
    """The text of the folder; an AssertionError if its parts do not agree."""
    with open_folder(folder, kind="note", version=1) as stored:
        texts = {file.read_text() for file in stored.files.values()}
        if texts != {stored.meta["text"] * 20_000} or len(stored.files) != 3:
            raise AssertionError("half a result was read")
        return str(stored.meta["text"])


def writer(folder: Path, name: str, start: Any, end: Any, rounds: int, done: Any) -> None:
    """Save once in every round."""
    for number in range(rounds):
        start.wait()
        save(folder, f"{name} {number};")
        with done.get_lock():
            done.value += 1
        end.wait()


def reader(folder: Path, start: Any, end: Any, rounds: int, done: Any, found: Any) -> None:
    """Read in every round until both writers are done, and once more."""
    seen: Counter[str] = Counter()
    for number in range(rounds):
        start.wait()
        last = False
        while not last:
            last = done.value == 2 * (number + 1)
            try:
                text = read(folder)
                seen["old" if text == "old;" else "new"] += 1
                if text != "old;" and not text.endswith(f" {number};"):
                    seen["of another round"] += 1
            except StoreError as error:
                absent = "is not there" in str(error) or "has no unskew.json" in str(error)
                seen["absent" if absent and BEGINNINGS[number % 3] != "saved" else str(error)] += 1
            except AssertionError as error:
                seen[str(error)] += 1
        end.wait()
    found.put(seen)


def run(rounds: int) -> Counter[str]:
    """How reading ended over all rounds; the folder is checked after each."""
    context = get_context("spawn")
    start, end = context.Barrier(4), context.Barrier(4)
    found, done = context.Queue(), context.Value("i", 0)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "x"
        processes = [
            context.Process(target=writer, args=(folder, name, start, end, rounds, done))
            for name in "ab"
        ]
        processes.append(
            context.Process(target=reader, args=(folder, start, end, rounds, done, found))
        )
        for process in processes:
            process.start()
        outcome: Counter[str] = Counter()
        for number in range(rounds):
            _begin(folder, BEGINNINGS[number % 3])
            start.wait(timeout=60)
            end.wait(timeout=60)
            outcome[f"won by {read(folder)[0]}"] += 1
            left = {p.name for p in (*folder.parent.iterdir(), *folder.iterdir())}
            if left != {"x", "a", "b", "c", "unskew.json"}:
                outcome[f"left {sorted(left)}"] += 1
        outcome += found.get(timeout=60)
        for process in processes:
            process.join()
            outcome["failed writers or readers"] += process.exitcode != 0
    return outcome


def _begin(folder: Path, how: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if how == "empty":
        folder.mkdir()
    elif how == "saved":
        save(folder, "old;")


if __name__ == "__main__":
    sys.stdout.write(f"{dict(run(int(sys.argv[1])))}\n")
