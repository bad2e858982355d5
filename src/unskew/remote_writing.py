"""Writing to object storage, where nothing is renamed and nobody can hold a lock.

Whoever writes into a folder there puts a token into every name, new for each time, and writes the
manifest last: from then on it counts, and nobody ever sees a mixture of old and new. A marker with the
token lies there meanwhile, so that what a process leaves that is ended is known for what it is.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta

from unskew.claims import PREFIX
from unskew.errors import StoreError, UnskewError
from unskew.places import MANIFEST, RemotePath

_MARKER = re.compile(re.escape(PREFIX) + "([0-9a-f]{8})")
# A marker that is older belongs to no process any more.
ABANDONED = timedelta(days=1)


@contextmanager
def claimed_token(folder: RemotePath) -> Iterator[str]:
    """A token for the names of what is written into the folder; if the block fails, that is removed."""
    _remove_abandoned(folder)
    token = secrets.token_hex(4)
    (folder / f"{PREFIX}{token}").write_bytes(b"")
    try:
        yield token
    except BaseException:
        with suppress(UnskewError):
            _remove_uncounted(folder, token)
        raise
    remove_named(folder, [f"{PREFIX}{token}"])


def check_writable(folder: RemotePath) -> None:
    """Raise the error of the store if nothing can be written into the folder."""
    with claimed_token(folder):
        pass


def remove_named(folder: RemotePath, names: Collection[str]) -> None:
    """Remove what is not needed any more; what cannot be removed stays."""
    for name in names:
        with suppress(UnskewError):
            (folder / name).remove()


def names_of_nobody_else(folder: RemotePath, token: str) -> list[str]:
    """The names in the folder that no other writer is about to write."""
    names = folder.listing()
    others = {*_markers(names)} - {token}
    return [name for name in names if not _has(name, others)]


def check_finished(folder: RemotePath) -> None:
    """Refuse a folder without a manifest into which somebody writes, or was ended while writing."""
    names = folder.listing(folders=False)
    if MANIFEST not in names and _markers(names):
        raise StoreError(
            f"{folder} is not complete: it has no {MANIFEST}, which is written last; wait for whoever "
            "writes it, or write it again if that was ended"
        )


def is_foreign(folder: RemotePath) -> bool:
    """Whether the folder has something that neither is ours nor was left by a writer of ours."""
    names = folder.listing()
    tokens = _markers(names)
    return any(not name.startswith(PREFIX) and not _has(name, tokens) for name in names)


def _remove_abandoned(folder: RemotePath) -> None:
    """Remove what writers left that began long ago, unless it counts."""
    found = folder.listing()
    for token in _markers(found):
        began = found[f"{PREFIX}{token}"].changed
        if began is not None and datetime.now(UTC) - began > ABANDONED:
            _remove_uncounted(folder, token)


def _remove_uncounted(folder: RemotePath, token: str) -> None:
    """Remove what has the token, but only the marker if the manifest mentions the token."""
    counts = False
    with suppress(FileNotFoundError):
        counts = token.encode() in (folder / MANIFEST).read_bytes()
    marker = f"{PREFIX}{token}"
    left = [] if counts else [name for name in folder.listing() if token in name]
    remove_named(folder, [*sorted({*left} - {marker}), marker])


def _markers(names: Collection[str]) -> list[str]:
    return [found[1] for found in map(_MARKER.fullmatch, names) if found is not None]


def _has(name: str, tokens: Collection[str]) -> bool:
    return any(token in name for token in tokens)
