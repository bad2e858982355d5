"""Spilling: a log whose distinct pages and patterns do not fit in memory is compacted in pieces.

Whenever the records of a compactor have grown to the limit, they are written to disk as Impressions,
cut by query into the parts of the result, and the compactor begins anew. At the end the pieces of each
part are added up. Memory is bounded by the limit and by one part.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from unskew.errors import StoreError
from unskew.log.features import Features
from unskew.log.impressions import Documents, Impressions, Pages, Patterns
from unskew.log.keys import is_whole_number, key_hashes
from unskew.log.merging import merge, slices_by_query
from unskew.log.saved import column

# What the records of a compactor may take before they are written to disk.
DEFAULT_LIMIT = 3 * 2**28
_N_ARRAYS = 16
_UNITS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def limit_bytes(memory_limit: str | None) -> int:
    """The limit for records if DuckDB gets so much memory: a quarter of it, 768 MiB at most."""
    found = re.fullmatch(r"\s*([0-9.]+)\s*([KMGT]?)I?B?\s*", (memory_limit or "").upper())
    if found is None:
        return DEFAULT_LIMIT
    return min(DEFAULT_LIMIT, int(float(found[1]) * 1024 ** _UNITS[found[2]] / 4))


class Spill:
    """Pieces of a log on disk, each cut into the parts of the result by a hash of the query."""

    def __init__(self, folder: Path, n_parts: int, limit: int) -> None:
        self.folder, self.n_parts, self.limit = folder, n_parts, limit
        self.begin(from_text=False)

    def begin(self, *, from_text: bool) -> None:
        """Begin without a piece; those of an earlier reading are removed.

        ``from_text`` says that keys are read from text without types. They are kept as text until
        every key is known, and become integers in the end if every one of them is written like one.
        """
        shutil.rmtree(self.folder, ignore_errors=True)
        self.n_pieces = 0
        self._features: list[Features] = []
        self.n_documents = np.zeros(self.n_parts, dtype=np.int64)
        self._whole = dict.fromkeys(("query", "doc", "context"), from_text)

    def part_of(self, queries: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """The part that each of these queries belongs to."""
        return (key_hashes(queries) % np.uint64(self.n_parts)).astype(np.int64)

    def take(self, data: Impressions) -> None:
        """Write one more piece, whose queries come part by part."""
        columns = {"query": data.queries, "doc": data.documents.doc, "context": data.contexts}
        for name, keys in columns.items():
            self._whole[name] = self._whole[name] and all(map(is_whole_number, keys.tolist()))
        part = self.part_of(data.queries)
        for k, cut in enumerate(slices_by_query(data, part, self.n_parts)):
            self.n_documents[k] += len(cut.documents)
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                _write(cut, self._file(self.n_pieces, k))
            except OSError as error:
                raise StoreError(
                    f"{self.folder}: a piece of the log could not be written ({error}). Nothing was "
                    "kept. Remedy: make room, or give another place to spill to."
                ) from error
        self._features.append(data.features.take(np.empty(0, dtype=np.intp)))
        self.n_pieces += 1

    def part(self, number: int) -> Impressions:
        """One part of the result: its pieces added up; they are removed."""
        pieces = []
        for piece in range(self.n_pieces):
            data = _read(self._file(piece, number), self._features[piece])
            pieces.append(self._with_keys(data))
            self._file(piece, number).unlink()
        return merge(pieces)

    def _file(self, piece: int, part: int) -> Path:
        return self.folder / f"{piece:05d}-{part:05d}"

    def _with_keys(self, data: Impressions) -> Impressions:
        """The piece with integers where every key of the whole log is written like one."""
        keys: dict[str, Any] = {}
        if self._whole["query"]:
            keys["queries"] = _integers(data.queries)
        if self._whole["context"]:
            keys["contexts"] = _integers(data.contexts)
        if self._whole["doc"]:
            keys["documents"] = replace(data.documents, doc=_integers(data.documents.doc))
        return replace(data, **keys)


def _write(data: Impressions, file: Path) -> None:
    """Write the arrays of one part of a piece, one Arrow stream after the other."""
    documents, pages, patterns = data.documents, data.pages, data.patterns
    arrays = [
        data.queries, data.contexts, documents.query, documents.doc, data.features.values.ravel(),
        pages.query, pages.offsets, pages.document, pages.position, patterns.page, patterns.context,
        patterns.weight, patterns.count, patterns.offsets, patterns.slot, patterns.grade,
    ]  # fmt: skip
    with pa.OSFile(str(file), "wb") as sink:
        for array in arrays:
            kind = pa.large_string() if array.dtype == object else None
            batch = pa.record_batch([pa.array(array, kind)], names=["values"])
            with pa.ipc.new_stream(sink, batch.schema) as stream:
                stream.write_batch(batch)


def _read(file: Path, features: Features) -> Impressions:
    """The part of a piece; its ``features`` without a row say what they are called."""
    with pa.OSFile(str(file), "rb") as source:
        arrays = [column(pa.ipc.open_stream(source).read_all(), "values") for _ in range(_N_ARRAYS)]
    queries, contexts, query, doc, values, *others = arrays
    shaped = values.reshape(len(doc), features.n_features)
    documents = Documents(query, doc, replace(features, values=shaped))
    return Impressions(queries, contexts, documents, Pages(*others[:4]), Patterns(*others[4:]))


def _integers(keys: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    return np.array([int(key) for key in keys.tolist()], dtype=np.int64)
