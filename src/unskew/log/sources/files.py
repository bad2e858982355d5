"""Paths, folders and globs become lists of files of one kind."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path

from unskew.errors import DataError, UsageError
from unskew.log.sources.kind import SourceKind


def files_of_one_kind(
    paths: Sequence[str], kinds: Sequence[SourceKind]
) -> tuple[SourceKind, list[str], str]:
    """The kind of the files behind some paths, the files, and how messages call them."""
    files = [file for path in paths for file in _expand(path, kinds)]
    name = files[0] if len(files) == 1 else f"{paths[0]} ({len(files)} files)"
    found = {kind.name: kind for kind in (_kind(file, kinds) for file in files)}
    if len(found) > 1:
        raise UsageError(f"{name}: files of one kind are needed, got {sorted(found)}")
    return next(iter(found.values())), files, name


def _expand(path: str, kinds: Sequence[SourceKind]) -> list[str]:
    """A path, the files of a folder, or what a glob matches."""
    if Path(path).is_dir():
        endings = tuple(ending for kind in kinds if kind.in_folders for ending in kind.endings)
        inside = [
            p for p in Path(path).rglob("*") if p.is_file() and not p.name.startswith((".", "_"))
        ]
        files = sorted(str(p) for p in inside if str(p).endswith(endings))
        if not files:
            raise DataError(f"{path}: the folder holds no file that ends in {', '.join(endings)}")
        return files
    if Path(path).exists():
        return [path]
    if glob.has_magic(path):
        files = sorted(f for f in glob.glob(path, recursive=True) if Path(f).is_file())  # noqa: PTH207
        if not files:
            raise DataError(f"{path}: no file matches")
        return files
    folder = Path(path).parent
    where = "" if folder.is_dir() else f" (there is no folder {str(folder)!r} either)"
    raise DataError(f"{path}: there is no such file{where}; check the path")


def _kind(file: str, kinds: Sequence[SourceKind]) -> SourceKind:
    for kind in kinds:
        if kind.endings and file.lower().endswith(kind.endings):
            return kind
    raise UsageError(
        f"{file}: cannot tell the kind of file from its name; known endings are "
        f"{', '.join(ending for kind in kinds for ending in kind.endings)}"
    )
