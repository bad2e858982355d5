"""Two writers and a reader on one folder, a third writer beside: nothing lost, nothing half read.

``python -m fuzz.writers 200`` runs 200 rounds and prints what was read; ``200 parts`` does so with
Impressions in parts.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections import Counter
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from unskew.errors import StoreError
from unskew.log.impressions import Impressions
from unskew.log.parts import load
from unskew.store import open_folder, write_folder

# What is there when a round begins.
BEGINNINGS = ("saved", "absent", "empty")
# Seconds that a round may take: a busy machine is no fault of the code.
PATIENCE = 60


class Note:
    """A folder of three files with the same text, large enough to take a moment."""

    files = frozenset({"a", "b", "c", "unskew.json"})

    @staticmethod
    def save(folder: Path, text: str) -> None:
        """Write the text."""
        files = {name: lambda file: file.write_text(text * 20_000) for name in ("a", "b", "c")}
        write_folder(folder, kind="note", version=1, meta={"text": text}, files=files)

    @staticmethod
    def read(folder: Path) -> str:
        """The text of the folder; an AssertionError if its parts do not agree."""
        with open_folder(folder, kind="note", version=1) as stored:
            texts = {file.read_text() for file in stored.files.values()}
            if texts != {stored.meta["text"] * 20_000} or len(stored.files) != 3:
                raise AssertionError("half a result was read")
            return str(stored.meta["text"])


class InParts:
    """Impressions in three parts whose documents carry the text."""

    files = frozenset({"part", "unskew.json"})

    @staticmethod
    def save(folder: Path, text: str) -> None:
        """Write the parts."""
        n = 60
        columns = {
            "session": np.repeat(np.arange(n), 2), "query": np.repeat(np.arange(n) % 12, 2),
            "doc": [f"{text}{k}" for k in (1, 2)] * n, "position": [1, 2] * n,
        }  # fmt: skip
        Impressions.from_arrays(None, [1, 0] * n, **columns).save(folder, parts=3)

    @staticmethod
    def read(folder: Path) -> str:
        """The text of all parts."""
        data = load(folder)
        texts = {str(doc)[:-1] for doc in data.documents.doc.tolist()}
        if len(texts) != 1 or data.n_sessions != 60:
            raise AssertionError("half a result was read")
        return texts.pop()


KINDS: dict[str, Any] = {"note": Note, "parts": InParts}


def writer(
    kind: str, folder: Path, name: str, start: Any, end: Any, rounds: int, done: Any, found: Any
) -> None:
    """Save once in every round."""
    for number in range(rounds):
        start.wait()
        try:
            KINDS[kind].save(folder, f"{name} {number};")
        except Exception as error:  # a finding, whatever it is
            found.put(Counter({f"writer {name} failed: {error!r}": 1}))
        with done.get_lock():
            done.value += 1
        end.wait()


def reader(
    kind: str, folder: Path, start: Any, end: Any, rounds: int, done: Any, found: Any
) -> None:
    """Read in every round until all writers are done, and once more."""
    seen: Counter[str] = Counter()
    for number in range(rounds):
        start.wait()
        last = False
        while not last:
            last = done.value == 3 * (number + 1)
            try:
                text = KINDS[kind].read(folder)
                seen["old" if text == "old;" else "new"] += 1
                if text != "old;" and not text.endswith(f" {number};"):
                    seen["of another round"] += 1
            except StoreError as error:
                time.sleep(0.002)
                absent = "is not there" in str(error) or "has no unskew.json" in str(error)
                seen["absent" if absent and BEGINNINGS[number % 3] != "saved" else str(error)] += 1
            except AssertionError as error:
                seen[str(error)] += 1
        end.wait()
    found.put(seen)


def run(rounds: int, kind: str = "note") -> Counter[str]:
    """How reading ended over all rounds; the folders are checked after each.

    The writers ``a`` and ``b`` save the same folder ``x``; ``c`` saves ``y`` beside it.
    """
    context = get_context("spawn")
    start, end = context.Barrier(5), context.Barrier(5)
    found, done = context.Queue(), context.Value("i", 0)
    with tempfile.TemporaryDirectory() as place:
        folder, beside = Path(place) / "x", Path(place) / "y"
        shared = (start, end, rounds, done, found)
        processes = [
            context.Process(target=writer, args=(kind, where, name, *shared))
            for name, where in (("a", folder), ("b", folder), ("c", beside))
        ]
        processes.append(context.Process(target=reader, args=(kind, folder, *shared)))
        for process in processes:
            process.start()
        outcome: Counter[str] = Counter()
        for number in range(rounds):
            _begin(kind, folder, BEGINNINGS[number % 3])
            _begin(kind, beside, BEGINNINGS[number // 3 % 3])
            start.wait(timeout=PATIENCE)
            end.wait(timeout=PATIENCE)
            outcome[f"won by {KINDS[kind].read(folder)[0]}"] += 1
            outcome["beside"] += KINDS[kind].read(beside) == f"c {number};"
            _note_leftovers(kind, Path(place), outcome)
        for process in processes:
            process.join()
            outcome["failed writers or readers"] += process.exitcode != 0
        while not found.empty():
            outcome += found.get()
    return outcome


def _note_leftovers(kind: str, place: Path, outcome: Counter[str]) -> None:
    """Count whatever is there beside the two folders and their files."""
    left = {p.name for p in place.iterdir()} - {"x", "y"}
    for folder in (place / "x", place / "y"):
        left |= {p.name.partition("-")[0] or p.name for p in folder.iterdir()} - KINDS[kind].files
    if left:
        outcome[f"left {sorted(left)}"] += 1


def _begin(kind: str, folder: Path, how: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if how == "empty":
        folder.mkdir()
    elif how == "saved":
        KINDS[kind].save(folder, "old;")


if __name__ == "__main__":
    sys.stdout.write(f"{dict(run(int(sys.argv[1]), *sys.argv[2:]))}\n")
