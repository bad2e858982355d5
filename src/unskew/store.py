"""Folders on disk that are always whole: the old content or the new one, whenever a process dies.

A saved object is a folder of ordinary files and a manifest, ``unskew.json``, that names them with
their sizes and checksums. A new folder is written under a hidden name beside its place and renamed.
In an existing one, files are written first, under names no manifest mentions yet; replacing the
manifest is the one atomic step that makes them count; what no manifest mentions any more is removed
last. Loading reads data and never runs code.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unskew.errors import StoreError

__all__ = ["MANIFEST", "StoredFolder", "read_folder", "read_kind", "replace_file", "write_folder"]

MANIFEST = "unskew.json"


@dataclass(frozen=True)
class StoredFolder:
    """What a saved folder holds: its description and the present paths of its files."""

    meta: Mapping[str, Any]
    files: Mapping[str, Path]


def write_folder(
    path: str | os.PathLike[str],
    *,
    kind: str,
    version: int,
    meta: Mapping[str, Any],
    files: Mapping[str, Callable[[Path], None]],
    old_kinds: Collection[str] = (),
) -> Path:
    """Write ``files`` (a name and what writes it) and ``meta`` into the folder ``path``, atomically.

    An existing folder is replaced only if Unskew saved it and it holds the same ``kind``, by this
    name or one that earlier versions gave it.
    """
    folder = Path(path)
    manifest = {"kind": kind, "version": version, "files": {}, **meta}
    if not _replaces(folder, kind, old_kinds):
        folder.parent.mkdir(parents=True, exist_ok=True)
        new = folder.with_name(f".{folder.name}-{secrets.token_hex(4)}")
        new.mkdir()
        try:
            _write(new, manifest, files, suffix="")
            new.rename(folder)
        except BaseException:
            shutil.rmtree(new, ignore_errors=True)
            raise
        _sync(folder.parent)
        return folder
    _write(folder, manifest, files, suffix=f"-{secrets.token_hex(4)}")
    return folder


def _write(
    folder: Path,
    manifest: dict[str, Any],
    files: Mapping[str, Callable[[Path], None]],
    suffix: str,
) -> None:
    """Write the files, then the manifest that describes them."""
    replaced = _manifest(folder)["files"] if (folder / MANIFEST).is_file() else {}
    try:
        for name, write in files.items():
            target = folder / _suffixed(name, suffix)
            write(target)
            _sync(target)
            manifest["files"][name] = {
                "file": target.name,
                "bytes": target.stat().st_size,
                "sha256": _checksum(target),
            }
        text = json.dumps(manifest, indent=2) + "\n"
        replace_file(folder / MANIFEST, lambda path: path.write_text(text, encoding="utf-8"))
    finally:
        _remove_orphans(folder, {*files, *replaced})


def _suffixed(name: str, suffix: str) -> str:
    stem, dot, extension = name.partition(".")
    return f"{stem}{suffix}{dot}{extension}"


def _remove_orphans(folder: Path, names: Iterable[str]) -> None:
    """Remove our files that the manifest does not mention: an older save's, or a failed one's."""
    if not (folder / MANIFEST).is_file():
        return
    mentioned = {entry["file"] for entry in _manifest(folder)["files"].values()}
    any_token = "-" + "[0-9a-f]" * 8
    for file in folder.glob(f".{MANIFEST}{any_token}"):
        file.unlink(missing_ok=True)
    for name in names:
        for file in (folder / name, *folder.glob(_suffixed(name, any_token))):
            if file.name not in mentioned:
                file.unlink(missing_ok=True)


def read_folder(
    path: str | os.PathLike[str], *, kind: str, version: int, old_kinds: Collection[str] = ()
) -> StoredFolder:
    """Read a folder of the given kind, written by this version or an older one, and check it."""
    folder = Path(path)
    manifest = _manifest(folder)
    if manifest["kind"] not in {kind, *old_kinds}:
        raise StoreError(f"{folder} holds {manifest['kind']!r}, but {kind!r} was asked for")
    if manifest["version"] > version:
        raise StoreError(
            f"{folder} was saved by a newer Unskew (format {manifest['version']} of {kind!r}; this "
            f"one reads up to {version}): upgrade with pip install -U unskew"
        )
    files = {name: _checked(folder, entry) for name, entry in manifest["files"].items()}
    meta = {k: v for k, v in manifest.items() if k not in {"kind", "version", "files"}}
    return StoredFolder(meta, files)


def read_kind(path: str | os.PathLike[str]) -> str:
    """What a saved folder holds, by name."""
    return str(_manifest(Path(path))["kind"])


def _manifest(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        what = "a file, not a folder" if folder.exists() else "not there"
        raise StoreError(f"{folder} is {what}: give the folder that save() wrote")
    file = folder / MANIFEST
    if not file.is_file():
        raise StoreError(f"{folder} has no {MANIFEST}: it is not a folder that Unskew saved")
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise StoreError(f"{file} cannot be read ({error}): restore the folder") from error
    well_formed = (
        isinstance(manifest, dict)
        and isinstance(manifest.get("kind"), str)
        and isinstance(manifest.get("version"), int)
        and isinstance(manifest.get("files"), dict)
        and all(_well_formed(entry) for entry in manifest["files"].values())
    )
    if not well_formed:
        raise StoreError(f"{file} is not a manifest that Unskew wrote: restore the folder")
    return dict(manifest)


def _well_formed(entry: Any) -> bool:
    # A file name with a path in it would reach outside the folder.
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("file"), str)
        and entry["file"] == Path(entry["file"]).name
        and isinstance(entry.get("bytes"), int)
        and isinstance(entry.get("sha256"), str)
    )


def _checked(folder: Path, entry: Mapping[str, Any]) -> Path:
    file = folder / str(entry["file"])
    if not file.is_file():
        raise StoreError(f"{file} is missing: the folder is incomplete, restore or save it again")
    if file.stat().st_size != entry["bytes"]:
        raise StoreError(
            f"{file} is truncated: {file.stat().st_size:,} bytes of {entry['bytes']:,}; restore the "
            "folder or save it again"
        )
    if _checksum(file) != entry["sha256"]:
        raise StoreError(f"{file} was changed after it was saved: restore the folder")
    return file


def _replaces(folder: Path, kind: str, old_kinds: Collection[str]) -> bool:
    """Whether a save replaces an earlier one of the same kind; refuses to touch anything else."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return False
    if not (folder / MANIFEST).is_file():
        raise StoreError(
            f"{folder} exists and was not saved by Unskew: nothing was written; give a new path"
        )
    found = read_kind(folder)
    if found not in {kind, *old_kinds}:
        raise StoreError(
            f"{folder} holds {found!r}, not {kind!r}: nothing was written; give a new path"
        )
    return True


def replace_file(path: Path, write: Callable[[Path], object]) -> None:
    """Put what ``write`` writes in the place of a file, whole at every moment."""
    temporary = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    try:
        write(temporary)
        _sync(temporary)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync(path.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _checksum(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
