"""Folders on disk are whole: the old content or the new one."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import unskew
from unskew.errors import StoreError
from unskew.store import (
    MANIFEST,
    manifest_text,
    open_folder,
    read_folder,
    read_kind,
    replace_file,
    replace_files,
    write_folder,
)


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
    (folder / MANIFEST).write_text(manifest_text(manifest))


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


def test_file_names_never_change(tmp_path: Path) -> None:
    """A folder that is saved again has the same files, and what others put there stays."""
    write(tmp_path / "x", "one")
    (tmp_path / "x" / "notes.md").write_text("mine")
    write(tmp_path / "x", "two")
    assert {p.name for p in (tmp_path / "x").iterdir()} == {"a.txt", "b.txt", "notes.md", MANIFEST}
    assert (tmp_path / "x" / "a.txt").read_text() == "two"
    assert (tmp_path / "x" / "notes.md").read_text() == "mine"


def test_a_file_less(tmp_path: Path) -> None:
    """A file that the new content does not have is removed, also one with a suffix of 0.1.0."""
    write(tmp_path / "x", "one")
    for name in ("a-0123abcd.txt", ".unskew.json-0123abcd"):
        (tmp_path / "x" / name).write_text("left by 0.1.0")
    files = {"b.txt": lambda file: file.write_text("two")}
    write_folder(tmp_path / "x", kind="note", version=1, meta={"text": "two"}, files=files)
    assert read(tmp_path / "x") == "two"
    assert {p.name for p in (tmp_path / "x").iterdir()} == {"b.txt", MANIFEST}


def old_manifest(folder: Path) -> None:
    """Make a folder what 0.1.0 left when it saved a second time: a suffix, and no checksum."""
    manifest = json.loads((folder / MANIFEST).read_text())
    del manifest["manifest"], manifest["sha256"]
    for name, entry in manifest["files"].items():
        entry["file"] = f"{name[0]}-0123abcd.txt"
        (folder / name).rename(folder / entry["file"])
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n")


def test_a_folder_of_the_first_version(tmp_path: Path) -> None:
    """Suffixed names without a checksum of the manifest load, and are replaced by plain names."""
    write(tmp_path / "x", "one")
    old_manifest(tmp_path / "x")
    assert read(tmp_path / "x") == "one"
    write(tmp_path / "x", "two")
    assert read(tmp_path / "x") == "two"
    assert {p.name for p in (tmp_path / "x").iterdir()} == {"a.txt", "b.txt", MANIFEST}


def test_a_flipped_byte_anywhere(tmp_path: Path) -> None:
    """Whatever byte of a folder is changed, to whatever else, is an error that names the file."""
    write(tmp_path / "x", "text")
    checked = 0
    for file in (tmp_path / "x").iterdir():
        right = file.read_bytes()
        for place, byte in enumerate(right):
            for other in {byte ^ 1, byte ^ 0x20, byte ^ 0xFF, 0x20, 0x09} - {byte}:
                file.write_bytes(right[:place] + bytes([other]) + right[place + 1 :])
                with pytest.raises(StoreError, match=re.escape(str(file))):
                    read(tmp_path / "x")
                checked += 1
        file.write_bytes(right)
    assert checked > 1_000
    assert read(tmp_path / "x") == "text"


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000 + "]" * 100_000,
        '{"a":' * 100_000 + "1" + "}" * 100_000,
        "[]",
        "3",
        '{"kind": "note", "version": 1, "files": []}',
        '{"kind": "note", "version": 1, "files": {"a.txt": []}}',
        '{"kind": "note", "version": 1, "files": {"a.txt": {"file": [], "bytes": 1, "sha256": ""}}}',
        '{"kind": "note", "version": 1, "files": {"a": {"file": "..", "bytes": 1, "sha256": ""}}}',
        '{"kind": "note", "version": "1", "files": {}}',
        "1" * 10_000,
        "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"),
    ],
    ids=lambda text: text[:60],
)
def test_strange_manifests(text: str, tmp_path: Path) -> None:
    """Lists where objects belong, a hundred thousand levels, numbers: an error, not a traceback."""
    write(tmp_path / "x", "text")
    (tmp_path / "x" / MANIFEST).write_text(text, encoding="latin-1")
    with pytest.raises(StoreError, match=re.escape(str(tmp_path / "x" / MANIFEST))):
        read(tmp_path / "x")
    with pytest.raises(StoreError, match=re.escape(str(tmp_path / "x" / MANIFEST))):
        unskew.load(tmp_path / "x")


@pytest.mark.parametrize("moved", range(4))
def test_a_death_between_two_renames(moved: int, tmp_path: Path) -> None:
    """New content that counts is read whole however many of its files have moved."""
    folder = tmp_path / "x"
    write(folder, "old")
    write(tmp_path / "y", "new")
    (tmp_path / "y").rename(folder / ".unskew-next")
    for name in ("a.txt", "b.txt", MANIFEST)[:moved]:
        (folder / ".unskew-next" / name).replace(folder / name)
    folder.chmod(0o555)  # a reader that may not write
    assert read(folder) == "new"
    folder.chmod(0o755)
    assert read(folder) == "new"
    assert {p.name for p in folder.iterdir()} == {"a.txt", "b.txt", MANIFEST}


def test_a_link_to_a_folder(tmp_path: Path) -> None:
    """Saving through a link replaces what the link leads to."""
    write(tmp_path / "x", "one")
    (tmp_path / "link").symlink_to(tmp_path / "x")
    write(tmp_path / "link", "two")
    assert (tmp_path / "link").is_symlink()
    assert read(tmp_path / "x") == "two"


def test_an_empty_folder_and_the_current_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty folder is filled in place, the current one included."""
    monkeypatch.chdir(tmp_path)
    for text in ("one", "two"):
        write(Path(), text)
        assert read(tmp_path) == text


def test_readers_hold_writers_off(tmp_path: Path) -> None:
    """Files do not change while a folder is open, and a writer waits until it is closed."""
    write(tmp_path / "x", "one")
    writer = threading.Thread(target=write, args=(tmp_path / "x", "two"))
    with open_folder(tmp_path / "x", kind="note", version=1) as stored:
        writer.start()
        time.sleep(0.2)
        assert {file.read_text() for file in stored.files.values()} == {"one"}
        assert writer.is_alive()
    writer.join()
    assert read(tmp_path / "x") == "two"


def test_a_folder_that_stays_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that waited in vain fails before it touches anything."""
    monkeypatch.setattr("unskew.claims.PATIENCE", 0.05)
    write(tmp_path / "x", "one")
    with (
        open_folder(tmp_path / "x", kind="note", version=1),
        pytest.raises(StoreError, match="in use by another process"),
    ):
        write(tmp_path / "x", "two")
    assert read(tmp_path / "x") == "one"
    assert len(list((tmp_path / "x").iterdir())) == 3


def test_abandoned_work_is_removed(tmp_path: Path) -> None:
    """Temporary names without a living owner go when something is written beside them."""
    for name in (".unskew-0123456789abcdef", ".unskew-fedcba9876543210"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "half").write_text("half")
    (tmp_path / ".unskew-00000000ffffffff").write_text("half")
    (tmp_path / ".unskew-notes").write_text("not ours")
    replace_file(tmp_path / "a", lambda file: file.write_text("whole"))
    assert {p.name for p in tmp_path.iterdir()} == {"a", ".unskew-notes"}


def test_living_work_is_left_alone(tmp_path: Path) -> None:
    """What another writer is at work on is not removed."""

    def write_both(file: Path) -> None:
        file.write_text("outer")
        replace_file(tmp_path / "inner", lambda inner: inner.write_text("inner"))

    replace_file(tmp_path / "outer", write_both)
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {
        "outer": "outer",
        "inner": "inner",
    }


def test_several_files_or_none(tmp_path: Path) -> None:
    """If one of several files cannot be written, none of them appears."""
    (tmp_path / "a").write_text("old")

    def fail(file: Path) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(StoreError, match=r"cannot be written: No space left.*Remedy: make room"):
        replace_files({tmp_path / "a": lambda file: file.write_text("new"), tmp_path / "b": fail})
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {"a": "old"}


def test_others_may_read(tmp_path: Path) -> None:
    """A file has the rights that new files have here, whoever wrote it."""

    def private(file: Path) -> None:
        file.unlink()
        os.close(os.open(file, os.O_CREAT | os.O_WRONLY, 0o600))

    write_folder(tmp_path / "x", kind="note", version=1, meta={}, files={"a": private})
    (tmp_path / "plain").write_text("")
    assert (tmp_path / "x" / "a").stat().st_mode == (tmp_path / "plain").stat().st_mode
