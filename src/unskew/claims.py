"""Claims: temporary names that belong to a living process, and locks on folders.

A file or folder that is being written has a hidden name, ``.unskew-`` and 16 hexadecimal digits, and
a lock that the system takes back when its process ends, however it ends. A name without a lock was
abandoned: whoever writes beside it next removes it.

Where the file system has no locks (some network file systems, Windows), nothing is recognised as
abandoned and nobody waits for anybody.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType

from unskew.errors import StoreError

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


PREFIX = ".unskew-"
_TEMPORARY = re.compile(re.escape(PREFIX) + "[0-9a-f]{16}")

# A reader holds a folder while it loads, a writer while it renames; longer than this is a mistake.
PATIENCE = 300.0
_PAUSE = 0.005


@contextmanager
def temporary_file(folder: Path) -> Iterator[Path]:
    """An empty file in the folder under a temporary name; it is removed unless it was renamed."""
    remove_abandoned(folder)
    path, descriptor = _claimed(folder, lambda path: path.touch(exist_ok=False))
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


@contextmanager
def temporary_folder(folder: Path, *, mode: int = 0o777) -> Iterator[Path]:
    """A folder in the folder under a temporary name; it is removed unless it was renamed."""
    remove_abandoned(folder)
    path, descriptor = _claimed(folder, lambda path: path.mkdir(mode))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(descriptor)


@contextmanager
def claim(path: Path) -> Iterator[None]:
    """Hold a temporary file that was written anew under its name."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with suppress(OSError):
            _try_lock(descriptor, exclusive=True)
        yield
    finally:
        os.close(descriptor)


def remove_abandoned(folder: Path) -> None:
    """Remove temporary files and folders in the folder whose processes have ended."""
    try:
        names = [entry.name for entry in os.scandir(folder) if _TEMPORARY.fullmatch(entry.name)]
    except OSError:
        return
    for name in names:
        with suppress(OSError):  # another process was faster, or it belongs to another user
            _remove_if_abandoned(folder / name)


def _remove_if_abandoned(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if not _try_lock(descriptor, exclusive=True):
            return
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def _claimed(folder: Path, make: Callable[[Path], None]) -> tuple[Path, int]:
    """A new name in the folder and the descriptor that holds its lock."""
    while True:
        path = folder / f"{PREFIX}{secrets.token_hex(8)}"
        make(path)
        with suppress(FileNotFoundError):  # taken for abandoned before it was locked
            descriptor = os.open(path, os.O_RDONLY)
            # Whoever holds the lock already took it for abandoned, and is about to remove it.
            mine = True
            with suppress(OSError):
                mine = _try_lock(descriptor, exclusive=True)
            if mine and path.exists():
                return path, descriptor
            os.close(descriptor)


@contextmanager
def folder_lock(folder: Path, *, exclusive: bool) -> Iterator[bool]:
    """Hold the folder alone, or among readers; False where the file system has no locks."""
    descriptor = os.open(folder, os.O_RDONLY) if fcntl is not None else None
    try:
        yield descriptor is not None and _wait(descriptor, folder, exclusive)
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _wait(descriptor: int, folder: Path, exclusive: bool) -> bool:
    deadline = time.monotonic() + PATIENCE
    try:
        while not _try_lock(descriptor, exclusive=exclusive):
            if time.monotonic() > deadline:
                raise StoreError(
                    f"{folder} has been in use by another process for {PATIENCE:.0f} s: nothing was "
                    "read or written; end that process, or give another path"
                )
            time.sleep(_PAUSE)
    except OSError:
        return False
    return True


def _try_lock(descriptor: int, *, exclusive: bool) -> bool:
    """Whether the lock was free; an OSError where there are no locks."""
    if fcntl is None:
        raise OSError("no locks")
    try:
        kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
