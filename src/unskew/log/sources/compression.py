"""Compressed text: how a file is compressed, and whether it is whole."""

from __future__ import annotations

import gzip
import zlib

from unskew.errors import DataError

# Bytes unpacked at a time.
_CHUNK = 2**20


def compression(file: str) -> str:
    """How a file is compressed, in DuckDB's words; it cannot tell it from a name with a ``?``."""
    kinds = {"gz": "gzip", "zst": "zstd"}
    return kinds.get(file.lower().rpartition(".")[2], "none")


def check_whole(file: str) -> None:
    """Refuse a gzip file whose checksum or length is wrong, which DuckDB does not look at."""
    if compression(file) != "gzip":
        return
    try:
        with gzip.open(file) as stream:
            while stream.read(_CHUNK):
                pass
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(
            f"{file}: the compressed file is truncated or damaged ({error}). Remedy: copy it again."
        ) from error
