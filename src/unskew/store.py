"""Folders on disk that are always whole: the old content or the new one, whenever a process dies.

A saved object is a folder of ordinary files and a manifest, ``unskew.json``, that names them with
their sizes and checksums and ends with a checksum of its own. The names of the files never change.

The new content is written whole under a hidden name. For a new folder one rename makes it count. In
an existing folder it is renamed to ``.unskew-next``: from that moment on it is what the folder
holds. Its files then take the places of the old ones, the manifest last. A process that dies on the
way leaves ``.unskew-next`` there; the next reader or writer carries on. Writers wait for each other
and for readers: the folder itself is the lock. Other files in the folder stay where they are.

A folder behind a URI has neither renames nor locks. There every file gets a name of its own, the
manifest is written last, and files are fetched to this machine when they are read.

Loading reads data: it never runs code and never hands unchecked data to native code.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from unskew.claims import (
    PREFIX,
    claim,
    folder_lock,
    remove_abandoned,
    temporary_file,
    temporary_folder,
)
from unskew.errors import StoreError
from unskew.places import MANIFEST, Place, PlaceLike, RemotePath, place_of
from unskew.remote_writing import check_finished, claimed_token, is_foreign, remove_named

# What a system says when a file has no room.
NO_ROOM = {errno.ENOSPC, errno.EFBIG, errno.EDQUOT}
_NEXT = f"{PREFIX}next"

# The form of the manifest: 2 has a checksum. 0.1.0 wrote neither this number nor a checksum.
_FORM = 2
_OWN_KEYS = {"manifest", "kind", "version", "files", "sha256"}
_SIGNED = re.compile(rb'(.*),\n  "sha256": "([0-9a-f]{64})"\n}\n', re.DOTALL)

# Without locks a reader may meet a folder in the moment in which its files are replaced.
_ATTEMPTS = 5
_PAUSE = 0.05


@dataclass(frozen=True)
class StoredFolder:
    """What a saved folder holds: its description and the present paths of its files.

    Those of a folder behind a URI are copies, which are made when they are asked for and last as long as
    the folder is open.
    """

    meta: Mapping[str, Any]
    files: Mapping[str, Path]


# Writing ----------------------------------------------------------------------------------------


def write_folder(
    path: PlaceLike,
    *,
    kind: str,
    version: int,
    meta: Mapping[str, Any],
    files: Mapping[str, Callable[[Path], None]],
    old_kinds: Collection[str] = (),
) -> Place:
    """Write ``files`` (a name and what writes it) and ``meta`` into the folder ``path``, atomically.

    An existing folder is replaced only if Unskew saved it and it holds the same ``kind``, by this
    name or one that earlier versions gave it.
    """
    place = place_of(path)
    if isinstance(place, RemotePath):
        check_replaceable(place, kind, old_kinds)
        with claimed_token(place) as token, TemporaryDirectory(prefix="unskew-") as made:
            _write(Path(made), kind, version, meta, files, suffix=f"-{token}")
            _upload(Path(made), place)
        return place
    folder = Path(os.path.realpath(place))
    check_replaceable(folder, kind, old_kinds)
    folder.parent.mkdir(parents=True, exist_ok=True)
    remove_abandoned(folder.parent)
    with temporary_folder(folder if folder.is_dir() else folder.parent) as new:
        _write(new, kind, version, meta, files)
        if not take_name(new, folder):
            _replace_content(new, folder, kind, old_kinds)
        _sync(folder.parent)
    return place


def _upload(made: Path, folder: RemotePath) -> None:
    """Bring new content to its place, the manifest last; then remove the files of the old one."""
    old: set[str] = set()
    with suppress(StoreError, FileNotFoundError):
        old = _file_names(_parsed(folder / MANIFEST))
    for file in sorted(made.iterdir(), key=lambda file: file.name == MANIFEST):
        (folder / file.name).upload(file)
    remove_named(folder, old)


def _write(
    folder: Path,
    kind: str,
    version: int,
    meta: Mapping[str, Any],
    files: Mapping[str, Callable[[Path], None]],
    suffix: str = "",
) -> None:
    entries: dict[str, dict[str, Any]] = {}
    for name, write in files.items():
        stem, dot, extension = name.partition(".")
        target = folder / f"{stem}{suffix}{dot}{extension}"
        _write_file(target, write)
        entries[name] = {
            "file": target.name,
            "bytes": target.stat().st_size,
            "sha256": _checksum(target),
        }
    text = manifest_text({"kind": kind, "version": version, "files": entries, **meta})
    _write_file(folder / MANIFEST, lambda path: path.write_bytes(text.encode()))
    _sync(folder)


def _write_file(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file through to the disk; whoever writes it, others may read it as they may others."""
    path.touch()
    mode = path.stat().st_mode
    try:
        write(path)
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        # Temporary folders and files are hidden; whoever asked knows the one around them.
        place = next(p for p in path.parents if not p.name.startswith("."))
        raise StoreError(
            f"a file in {place} cannot be written: {os.strerror(error.errno)}. What was there before is "
            "still there. Remedy: make room, or write to another place."
        ) from error
    if path.stat().st_mode != mode:
        path.chmod(mode & 0o777)
    _sync(path)


def take_name(new: Path, folder: Path) -> bool:
    """Whether the new folder took its name, because there was none of it yet."""
    if folder.is_dir():
        return False
    try:
        new.rename(folder)
    except OSError:
        if folder.is_dir():  # another process was faster
            return False
        raise
    return True


def _replace_content(new: Path, folder: Path, kind: str, old_kinds: Collection[str]) -> None:
    with folder_lock(folder, exclusive=True):
        _carry_on(folder)
        check_replaceable(folder, kind, old_kinds)
        new.rename(folder / _NEXT)
        _sync(folder)
        _carry_on(folder)


def _carry_on(folder: Path) -> None:
    """Move the files of ``.unskew-next`` to their places, if a writer left it."""
    new = folder / _NEXT
    if not new.is_dir():
        return
    if (new / MANIFEST).is_file():
        names = _file_names(_parsed(new / MANIFEST))
        for name in names:
            if (new / name).is_file():
                (new / name).replace(folder / name)
        _remove_replaced(folder, names)
        (new / MANIFEST).replace(folder / MANIFEST)
        _sync(folder)
    shutil.rmtree(new, ignore_errors=True)


def _remove_replaced(folder: Path, kept: set[str]) -> None:
    """Remove the files of the old manifest that the new one does not mention.

    0.1.0 put a suffix to the names of files that it saved anew.
    """
    old: set[str] = set()
    with suppress(StoreError, FileNotFoundError):
        entries = _parsed(folder / MANIFEST)["files"]
        old = {*entries, *(entry["file"] for entry in entries.values())}
    token = "-" + "[0-9a-f]" * 8
    found: list[Path] = list(folder.glob(f".{MANIFEST}{token}"))
    for name in {name for name in {*old, *kept} if _is_plain(name)}:
        stem, dot, extension = name.partition(".")
        found += [folder / name, *folder.glob(f"{stem}{token}{dot}{extension}")]
    for file in found:
        if file.name not in kept:
            file.unlink(missing_ok=True)


def check_replaceable(path: PlaceLike, kind: str, old_kinds: Collection[str] = ()) -> None:
    """Refuse a folder that was not saved by Unskew, or holds something else than ``kind``."""
    folder = place_of(path)
    if not folder.exists() or (folder.is_dir() and not _is_foreign(folder)):
        return
    if not any((place / MANIFEST).is_file() for place in (folder, folder / _NEXT)):
        raise StoreError(
            f"{folder} exists and was not saved by Unskew: nothing was written; give a new path"
        )
    found = read_kind(folder)
    if found not in {kind, *old_kinds}:
        raise StoreError(
            f"{folder} holds {found!r}, not {kind!r}: nothing was written; give a new path"
        )


def _is_foreign(folder: Place) -> bool:
    """Whether there is something in the folder beside what a writer left that was ended."""
    if isinstance(folder, RemotePath):
        return is_foreign(folder)
    names = (file.name for file in folder.iterdir())
    return any(not name.startswith(PREFIX) or name == _NEXT for name in names)


def replace_file(path: Path, write: Callable[[Path], object]) -> None:
    """Put what ``write`` writes in the place of a file, whole at every moment."""
    replace_files({path: write})


def replace_files(writers: Mapping[Path, Callable[[Path], object]]) -> None:
    """Put what each writer writes in its place, and nothing anywhere if one of them fails.

    All are written under temporary names first, in the order given, and then renamed from the last
    to the first: whoever finds the first finds the others, too.
    """
    with ExitStack() as stack:
        written: list[tuple[Path, Path]] = []
        for path, write in writers.items():
            target = Path(os.path.realpath(path))
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary = stack.enter_context(temporary_file(target.parent))
            _write_file(temporary, write)
            stack.enter_context(claim(temporary))
            written.append((temporary, target))
        for temporary, target in reversed(written):
            temporary.replace(target)
            _sync(target.parent)


# Reading ----------------------------------------------------------------------------------------


@contextmanager
def open_folder(
    path: PlaceLike, *, kind: str, version: int, old_kinds: Collection[str] = ()
) -> Iterator[StoredFolder]:
    """A checked folder of the given kind, written by this version or an older one.

    Nobody replaces its files while it is open, unless it lies behind a URI.
    """
    folder = place_of(path)
    if isinstance(folder, RemotePath):
        with TemporaryDirectory(prefix="unskew-") as copies:
            manifest = _known(folder, kind, version, old_kinds)
            yield StoredFolder(_meta(manifest), _Fetched(folder, manifest["files"], Path(copies)))
        return
    if not folder.is_dir():
        _manifest(folder)
    if (folder / _NEXT).is_dir():
        with suppress(OSError), folder_lock(folder, exclusive=True) as locked:
            if locked:
                _carry_on(folder)
    with folder_lock(folder, exclusive=False) as locked:
        for attempt in range(_ATTEMPTS):
            try:
                stored = _stored(folder, kind, version, old_kinds)
                break
            except (StoreError, FileNotFoundError):
                if locked or attempt == _ATTEMPTS - 1:
                    raise
                time.sleep(_PAUSE)
        yield stored


def read_folder(
    path: PlaceLike, *, kind: str, version: int, old_kinds: Collection[str] = ()
) -> StoredFolder:
    """What `open_folder` gives, for files of this machine that are not replaced meanwhile."""
    with open_folder(path, kind=kind, version=version, old_kinds=old_kinds) as stored:
        return stored


def read_manifest(path: PlaceLike) -> dict[str, Any]:
    """What the manifest of a saved folder of any kind says, its checksum proven."""
    return _manifest(place_of(path))


def read_kind(path: PlaceLike) -> str:
    """What a saved folder holds, by name."""
    return str(_manifest(place_of(path))["kind"])


def _stored(folder: Path, kind: str, version: int, old_kinds: Collection[str]) -> StoredFolder:
    manifest = _known(folder, kind, version, old_kinds)
    files = {name: _checked(folder, entry) for name, entry in manifest["files"].items()}
    return StoredFolder(_meta(manifest), files)


def _known(folder: Place, kind: str, version: int, old_kinds: Collection[str]) -> dict[str, Any]:
    """The manifest, which is of the given kind and of a version that is known."""
    manifest = _manifest(folder)
    if manifest["kind"] not in {kind, *old_kinds}:
        raise StoreError(f"{folder} holds {manifest['kind']!r}, but {kind!r} was asked for")
    if manifest["version"] > version:
        raise StoreError(
            f"{folder} was saved by a newer Unskew (format {manifest['version']} of {kind!r}; this "
            f"one reads up to {version}): upgrade with pip install -U unskew"
        )
    return manifest


def _meta(manifest: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in manifest.items() if key not in _OWN_KEYS}


def _manifest(folder: Place) -> dict[str, Any]:
    """The manifest that counts."""
    if not folder.is_dir():
        what = "a file, not a folder" if folder.is_file() else "not there"
        raise StoreError(f"{folder} is {what}: give the folder that save() wrote")
    # In this order: the new manifest may move to its place in between.
    waiting = [] if isinstance(folder, RemotePath) else [folder / _NEXT / MANIFEST]
    for file in (*waiting, folder / MANIFEST):
        with suppress(FileNotFoundError):
            return _parsed(file)
    if isinstance(folder, RemotePath):
        check_finished(folder)
    raise StoreError(f"{folder} has no {MANIFEST}: it is not a folder that Unskew saved")


def _parsed(file: Place) -> dict[str, Any]:
    try:
        raw = file.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StoreError(f"{file} cannot be read ({error}): restore the folder") from error
    manifest = parse_json(raw, file)
    _check_signature(manifest, raw, file)
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


def parse_json(raw: bytes, file: Place) -> Any:
    """What the JSON of a saved file says; broken or endlessly nested text is a `StoreError`."""
    try:
        return json.loads(raw.decode("utf-8"))
    except RecursionError:
        raise StoreError(f"{file} cannot be read (nested too deeply): restore the folder") from None
    except ValueError as error:
        raise StoreError(f"{file} cannot be read ({error}): restore the folder") from error


def manifest_text(manifest: Mapping[str, Any]) -> str:
    """The manifest as it is written: its last entry is a checksum of the text before it."""
    own = {"manifest", "sha256"}
    content = {"manifest": _FORM, **{k: v for k, v in manifest.items() if k not in own}}
    body = json.dumps(content, indent=2).removesuffix("\n}")
    return f'{body},\n  "sha256": "{hashlib.sha256(body.encode()).hexdigest()}"\n}}\n'


def _check_signature(manifest: Any, raw: bytes, file: Place) -> None:
    signed = _SIGNED.fullmatch(raw)
    if signed is None:
        right = not isinstance(manifest, dict) or not {"manifest", "sha256"} & set(manifest)
    else:
        right = hashlib.sha256(signed[1]).hexdigest() == signed[2].decode()
    if not right:
        raise StoreError(f"{file} was changed after it was saved: restore the folder")


def _well_formed(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and _is_plain(entry.get("file"))
        and isinstance(entry.get("bytes"), int)
        and isinstance(entry.get("sha256"), str)
    )


def _is_plain(name: Any) -> bool:
    """Whether a file of this name lies in the folder itself: one with a path reaches outside."""
    if not isinstance(name, str) or not name or name.startswith(".") or name == MANIFEST:
        return False
    return not set(name) & {"/", "\\", "\0"} and name == Path(name).name


def _file_names(manifest: Mapping[str, Any]) -> set[str]:
    return {entry["file"] for entry in manifest["files"].values()}


def _checked(folder: Path, entry: Mapping[str, Any]) -> Path:
    """The file of an entry, in ``.unskew-next`` if it is there still."""
    name = str(entry["file"])
    waiting = folder / _NEXT / name
    file = waiting if waiting.is_file() else folder / name
    _check_size(file, file.stat().st_size if file.is_file() else None, entry)
    _check_content(file, file, entry)
    return file


class _Fetched(Mapping[str, Path]):
    """The files of a folder behind a URI: those that are asked for are copied to this machine."""

    def __init__(self, folder: RemotePath, entries: Mapping[str, Any], copies: Path) -> None:
        self._folder, self._entries, self._copies = folder, entries, copies
        listing = folder.listing(folders=False) if entries else {}
        for entry in entries.values():
            found = listing.get(entry["file"])
            _check_size(folder / entry["file"], None if found is None else found.size, entry)

    def __getitem__(self, name: str) -> Path:
        entry = self._entries[name]
        file, copy = self._folder / entry["file"], self._copies / str(entry["file"])
        if not copy.is_file():
            file.fetch(copy)
            _check_content(file, copy, entry)
        return copy

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def _check_size(file: Place, size: int | None, entry: Mapping[str, Any]) -> None:
    if size is None:
        raise StoreError(f"{file} is missing: the folder is incomplete, restore or save it again")
    if size != entry["bytes"]:
        what = "truncated" if size < entry["bytes"] else "too long"
        raise StoreError(
            f"{file} is {what}: {size:,} bytes of {entry['bytes']:,}; restore the folder or save it "
            "again"
        )


def _check_content(file: Place, copy: Path, entry: Mapping[str, Any]) -> None:
    if _checksum(copy) != entry["sha256"]:
        raise StoreError(f"{file} was changed after it was saved: restore the folder")


def _sync(path: Path) -> None:
    if os.name == "nt" and path.is_dir():  # Windows opens no folders
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _checksum(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
