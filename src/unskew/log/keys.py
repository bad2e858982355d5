"""Keys become codes: sessions, queries, documents, contexts and categories as 64-bit integers.

Integers are their own codes. Strings are numbered in order of first appearance by an exact
dictionary. At the end, `KeyCoder.decode` turns codes into sorted keys and indices.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from unskew.log.features import Features
from unskew.log.interning import hash_texts
from unskew.log.ordering import read_only

_WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,18}")
_INT64 = range(-(2**63), 2**63)


class KeyCoder:
    """Turns the keys of one column into int64 codes, batch by batch, and back.

    ``from_text`` says that the keys were read from text without types: at the end they become
    integers if every one of them is written like one, so that 7 in a CSV file meets 7 in Parquet,
    while 007 stays text.
    """

    def __init__(self, *, from_text: bool = False) -> None:
        self._from_text = from_text
        self._codes: dict[str, int] = {}
        self._unsigned = False

    def encode(self, keys: pa.Array) -> npt.NDArray[np.int64]:
        """The codes of an array of integers or strings; a null gets an arbitrary code."""
        if pa.types.is_uint64(keys.type):
            self._unsigned = True
            return np.asarray(_filled(keys, 0)).view(np.int64)
        if pa.types.is_integer(keys.type):
            return np.asarray(_filled(keys, 0)).astype(np.int64, copy=False)
        encoded = pc.dictionary_encode(_filled(keys, ""))
        codes = self._codes
        numbers = np.fromiter(
            (codes.setdefault(key, len(codes)) for key in encoded.dictionary.to_pylist()),
            dtype=np.int64,
            count=len(encoded.dictionary),
        )
        return np.asarray(numbers[np.asarray(encoded.indices)])

    def keep_text(self) -> None:
        """Decode texts as they are, whatever they look like."""
        self._from_text = False

    @property
    def n_bytes(self) -> int:
        """About what the texts seen so far take in memory."""
        return 160 * len(self._codes)

    def ranked(
        self, codes: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """The key of each code, and numbers that sort like the keys do."""
        if not self._codes and not self._unsigned:
            return codes, codes
        keys, index = self.decode(codes)
        return keys[index], index

    def decode(
        self, codes: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """The distinct keys behind the codes, sorted, and the index of each code's key in them."""
        if not self._codes:
            return _unique(codes.view(np.uint64) if self._unsigned else codes)
        used, index = _unique(codes)
        names = np.array(list(self._codes), dtype=object)[used]
        keys = names
        if self._from_text and all(is_whole_number(name) for name in names):
            keys = np.array([int(name) for name in names], dtype=np.int64)
        order = np.argsort(keys, kind="stable")
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        return keys[order], place[index]


def decode_categories(
    values: npt.NDArray[np.floating], names: Sequence[str], coders: Mapping[str, KeyCoder]
) -> Features:
    """Features whose categorical columns hold codes of first appearance, recoded in sorted order."""
    categories: dict[str, tuple[str, ...]] = {}
    for name, coder in coders.items():
        column = values[:, list(names).index(name)]
        present = ~np.isnan(column)
        keys, column[present] = coder.decode(column[present].astype(np.int64))
        categories[name] = tuple(keys.tolist())
    return Features(values, tuple(names), categories)


def is_whole_number(text: str) -> bool:
    """Whether a text is the plain decimal writing of a 64-bit integer."""
    return _WHOLE_NUMBER.fullmatch(text) is not None and int(text) in _INT64


def match_keys(keys: pa.Array, known: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """The index of each key among ``known`` ones, -1 where it is none of them.

    A number and its plain decimal writing match: one side may have been read from text.
    """
    values = pa.array(known)
    if values.type != keys.type:
        values, keys = values.cast(pa.string()), keys.cast(pa.string())
    return np.asarray(pc.index_in(keys, value_set=values).fill_null(-1)).astype(np.int64)


def _unique(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    keys, index = np.unique(values, return_inverse=True)
    return keys, index.astype(np.int64, copy=False)


def _filled(keys: pa.Array, value: Any) -> pa.Array:
    return keys.fill_null(value) if keys.null_count else keys


def key_hashes(keys: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """A hash of every key as it is written, the same in every process and on every machine.

    7 and "7" have the same.
    """
    if keys.dtype.kind in "iu":
        texts = pa.array(keys).cast(pa.large_string()).cast(pa.large_binary())
    else:
        written = [str(key).encode("utf-8", "surrogatepass") for key in keys.tolist()]
        texts = pa.array(written, pa.large_binary())
    if not len(texts):
        return np.empty(0, dtype=np.uint64)
    _, offsets, content = texts.buffers()
    begins = np.frombuffer(offsets, dtype=np.int64)[: len(texts) + 1]
    letters = np.frombuffer(content or b"", dtype=np.uint8)
    return np.asarray(hash_texts(read_only(begins), read_only(letters)))
