"""Paths, folders and globs become lists of files of one kind."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from unskew.errors import DataError, UsageError, warn
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
    if len(paths) > 1:
        _refuse_repeated(files)
    return next(iter(found.values())), files, name


def _expand(path: str, kinds: Sequence[SourceKind]) -> list[str]:
    """The file of that name, the files of the folder of that name, or else what a glob matches."""
    if Path(path).is_dir():
        endings = tuple(ending for kind in kinds if kind.in_folders for ending in kind.endings)
        files = _in_folder(path, endings)
        if not files:
            raise DataError(f"{path}: the folder holds no file that ends in {', '.join(endings)}")
        return files
    if Path(path).exists():
        return [path]
    if glob.has_magic(path):
        matched = glob.glob(path, recursive=True)  # noqa: PTH207
        files = _without_repeats(path, (f for f in matched if Path(f).is_file()))
        if not files:
            raise DataError(f"{path}: no file matches")
        return files
    folder = Path(path).parent
    where = "" if folder.is_dir() else f" (there is no folder {str(folder)!r} either)"
    raise DataError(f"{path}: there is no such file{where}; check the path")


def _in_folder(path: str, endings: tuple[str, ...]) -> list[str]:
    """The files with these endings in a folder and below, links followed, in sorted order.

    What is hidden or temporary (a name that begins with a dot or an underscore) is no data; a note
    says what was left out.
    """
    found: list[str] = []
    hidden: list[str] = []
    for folder, below, names in walk(path):
        data = [name for name in names if name.lower().endswith(endings)]
        hidden += (os.path.join(folder, n) for n in (*below, *data) if _is_hidden(n))  # noqa: PTH118
        below[:] = sorted(name for name in below if not _is_hidden(name))
        found += (os.path.join(folder, n) for n in data if not _is_hidden(n))  # noqa: PTH118
    for file in found:
        if not Path(file).is_file():
            raise DataError(
                f"{file}: this is no file, or a link to one that is not there. Remedy: remove it, or "
                "name the files to read."
            )
    if hidden:
        warn(
            f"{path}: {len(hidden):,} hidden or temporary file(s) or folder(s) are not read, such as "
            f"{min(hidden)}",
        )
    return _without_repeats(path, found)


def walk(path: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """As `os.walk`, links followed: every folder once, whatever leads to it."""
    seen: set[tuple[int, int]] = set()

    def refuse(error: OSError) -> None:
        raise DataError(
            f"{error.filename}: the folder cannot be read ({error.strerror}). Remedy: allow it, or "
            "name the files to read."
        ) from error

    for folder, below, names in os.walk(path, followlinks=True, onerror=refuse):
        status = os.stat(folder)  # noqa: PTH116
        if (status.st_dev, status.st_ino) in seen:
            below.clear()
            continue
        seen.add((status.st_dev, status.st_ino))
        yield folder, below, names


def _is_hidden(name: str) -> bool:
    """Whether a name marks what is hidden or temporary; ``_day=1`` is a part of the data."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _without_repeats(path: str, files: Iterable[str]) -> list[str]:
    """The files, each once: a link to a file that is read anyway is left out, with a note."""
    kept: dict[str, str] = {}
    # The file itself is kept rather than a link to it.
    ordered = sorted(files, key=lambda file: (Path(file).is_symlink(), file))
    repeated = [f for f in ordered if kept.setdefault(os.path.realpath(f), f) != f]
    if repeated:
        warn(
            f"{path}: {len(repeated):,} link(s) to files that are read anyway are left out, such as "
            f"{repeated[0]}",
        )
    return sorted(kept.values())


def _refuse_repeated(files: Sequence[str]) -> None:
    """Refuse a list in which one file stands twice."""
    seen: dict[str, str] = {}
    for file in files:
        place = os.path.realpath(file)
        if place in seen:
            raise UsageError(f"{file} is the same file as {seen[place]}: name each file once")
        seen[place] = file


def _kind(file: str, kinds: Sequence[SourceKind]) -> SourceKind:
    for kind in kinds:
        if kind.endings and file.lower().endswith(kind.endings):
            return kind
    raise UsageError(
        f"{file}: cannot tell the kind of file from its name; known endings are "
        f"{', '.join(ending for kind in kinds for ending in kind.endings)}"
    )
