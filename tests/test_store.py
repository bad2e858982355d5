"""Folders on disk are whole: the old content or the new one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import unskew
from unskew.errors import StoreError
from unskew.store import MANIFEST, read_folder, read_kind, write_folder


def write(folder: Path, text: str, kind: str = "note", version: int = 1) -> None:
    """Save a folder with two files of the given text."""
    files = {name: lambda file: file.write_text(text) for name in ("a.txt", "b.txt")}
    write_folder(folder, kind=kind, version=version, meta={"text": text}, files=files)


def read(folder: Path) -> str:
    """Load such a folder; its parts must agree."""
    stored = read_folder(folder, kind="note", version=1)
    texts = {stored.meta["text"], *(file.read_text() for file in stored.files.values())}
    assert len(texts) == 1
    return texts.pop()


def test_written_and_replaced(tmp_path: Path) -> None:
    """A folder is written, replaced, and holds no file of the past."""
    write(tmp_path / "x", "one")
    assert read(tmp_path / "x") == "one"
    assert sorted(p.name for p in (tmp_path / "x").iterdir()) == ["a.txt", "b.txt", MANIFEST]
    write(tmp_path / "x", "two")
    write(tmp_path / "x", "three")
    assert read(tmp_path / "x") == "three"
    assert len(list((tmp_path / "x").iterdir())) == 3
    assert read_kind(tmp_path / "x") == "note"
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


def test_a_failed_save_leaves_the_old(tmp_path: Path) -> None:
    """An error while writing leaves the folder as it was, and nothing beside it."""
    write(tmp_path / "x", "one")

    def fail(file: Path) -> None:
        file.write_text("half")
        raise RuntimeError("disk full")

    for folder in (tmp_path / "x", tmp_path / "new"):
        with pytest.raises(RuntimeError, match="disk full"):
            write_folder(folder, kind="note", version=1, meta={}, files={"a.txt": fail})
    assert read(tmp_path / "x") == "one"
    assert [p.name for p in tmp_path.iterdir()] == ["x"]
    assert len(list((tmp_path / "x").iterdir())) == 3


WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
import test_store
for k in range(10_000):
    test_store.write(Path(sys.argv[1]), f"text {k}")
"""


@pytest.mark.parametrize("after", [0.02, 0.05, 0.11, 0.2])
def test_a_killed_process_leaves_a_whole_folder(after: float, tmp_path: Path) -> None:
    """Killed at any moment, the folder on disk is one that was saved."""
    folder = tmp_path / "x"
    command = [sys.executable, "-c", WRITER, str(folder), str(Path(__file__).parent)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(command, env=environment)
    while not folder.exists():
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(after)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert read(folder).startswith("text ")
    write(folder, "afterwards")
    assert read(folder) == "afterwards"
    assert len(list(folder.iterdir())) == 3, "what the killed process left is cleaned up"


def broken_manifest(folder: Path) -> None:
    """Damage: JSON cut short."""
    (folder / MANIFEST).write_text("{")


def foreign_manifest(folder: Path) -> None:
    """Damage: JSON of something else."""
    (folder / MANIFEST).write_text('{"kind": 3}')


def escaping_manifest(folder: Path) -> None:
    """Damage: a file outside the folder."""
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest["files"]["a.txt"]["file"] = "../secret.txt"
    (folder / MANIFEST).write_text(json.dumps(manifest))


def truncated(folder: Path) -> None:
    """Damage: a file cut short."""
    (folder / "a.txt").write_text("te")


def altered(folder: Path) -> None:
    """Damage: a file of the same size with other content."""
    (folder / "a.txt").write_text("tixt")


def missing(folder: Path) -> None:
    """Damage: a file that is gone."""
    (folder / "a.txt").unlink()


def no_manifest(folder: Path) -> None:
    """Damage: no manifest."""
    (folder / MANIFEST).unlink()


DAMAGES = [
    (broken_manifest, "cannot be read"),
    (foreign_manifest, "is not a manifest that Unskew wrote"),
    (escaping_manifest, "is not a manifest that Unskew wrote"),
    (truncated, r"a\.txt is truncated: 2 bytes of 4"),
    (altered, r"a\.txt was changed after it was saved"),
    (missing, r"a\.txt is missing: the folder is incomplete"),
    (no_manifest, "it is not a folder that Unskew saved"),
]


@pytest.mark.parametrize(("damage", "message"), DAMAGES, ids=lambda d: getattr(d, "__name__", ""))
def test_damaged_folders(damage: object, message: str, tmp_path: Path) -> None:
    """Every damage is recognised when the folder is read."""
    write(tmp_path / "x", "text")
    damage(tmp_path / "x")  # type: ignore[operator]
    with pytest.raises(StoreError, match=message):
        read(tmp_path / "x")


def test_other_kinds_and_versions(tmp_path: Path) -> None:
    """A folder of another kind, from the future, or of an unknown kind is refused by name."""
    write(tmp_path / "x", "text", kind="poem")
    with pytest.raises(StoreError, match="holds 'poem', but 'note' was asked for"):
        read(tmp_path / "x")
    with pytest.raises(StoreError, match="holds 'poem', which this version does not know"):
        unskew.load(tmp_path / "x")
    write(tmp_path / "y", "text", version=2)
    with pytest.raises(StoreError, match=r"saved by a newer Unskew \(format 2"):
        read(tmp_path / "y")


def test_nothing_foreign_is_overwritten(tmp_path: Path) -> None:
    """A folder that Unskew did not save, or of another kind, is never touched."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(StoreError, match="was not saved by Unskew: nothing was written"):
        write(tmp_path / "mine", "text")
    write(tmp_path / "poem", "text", kind="poem")
    with pytest.raises(StoreError, match="holds 'poem', not 'note': nothing was written"):
        write(tmp_path / "poem", "text")
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"


@pytest.mark.parametrize(("name", "message"), [("nowhere", "not there"), ("file", "a file")])
def test_no_folder(name: str, message: str, tmp_path: Path) -> None:
    """A path that is no folder is named."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=message):
        unskew.load(tmp_path / name)


def test_an_old_name_of_the_same_kind(tmp_path):
    """A folder saved under a kind's old name is read, and replaced under the new one."""
    write_folder(tmp_path / "a", kind="old", version=1, meta={"n": 1}, files={})
    with pytest.raises(StoreError, match="holds 'old', but 'new' was asked for"):
        read_folder(tmp_path / "a", kind="new", version=1)
    stored = read_folder(tmp_path / "a", kind="new", version=1, old_kinds=("old",))
    assert stored.meta == {"n": 1}
    with pytest.raises(StoreError, match="holds 'old', not 'new': nothing was written"):
        write_folder(tmp_path / "a", kind="new", version=2, meta={}, files={})
    write_folder(tmp_path / "a", kind="new", old_kinds=("old",), version=2, meta={"n": 2}, files={})
    assert read_folder(tmp_path / "a", kind="new", version=2).meta == {"n": 2}
