"""Impressions in parts: one folder, each part the Impressions of some of the queries.

unskew.json           which parts there are, with checksums, and what they hold in common
part-00000-1f2e3d4c/  Impressions as `Impressions.save` writes them, and so on

Every part can be loaded on its own. No query stands in two parts, so that whatever is a sum over
queries is a sum over parts.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from unskew.claims import folder_lock, remove_abandoned, temporary_folder
from unskew.errors import StoreError, UsageError
from unskew.log import saved
from unskew.log.impressions import Impressions
from unskew.log.merging import (
    balanced_groups,
    cut_by_query,
    joined_categories,
    merge,
    recoded,
)
from unskew.places import MANIFEST, Place, PlaceLike, RemotePath, place_of
from unskew.progress import progress_bar
from unskew.remote_writing import claimed_token, names_of_nobody_else, remove_named
from unskew.store import (
    check_replaceable,
    manifest_text,
    read_folder,
    read_kind,
    replace_file,
    take_name,
)

KIND = "impressions-parts"
VERSION = 1
_NAME = re.compile("part-[0-9]{5,}-[0-9a-f]{8}(-.*)?")
_COUNTS = ("sessions", "queries", "documents", "pages", "patterns", "clicks")
_DTYPES = ("float32", "float64")
_COMMON = ("feature_names", "feature_dtype")


@dataclass(frozen=True)
class PartEntry:
    """One part as the manifest of the whole describes it: its folder, checksum and counts."""

    name: str
    sha256: str
    counts: Mapping[str, int]
    rows: int
    max_position: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "name": self.name, "sha256": self.sha256, "rows": self.rows,
            "max_position": self.max_position, **self.counts,
        }  # fmt: skip

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> PartEntry:
        """The inverse of `to_dict`; a KeyError or ValueError for anything else."""
        name = content["name"]
        if not isinstance(name, str) or Path(name).name != name or name.startswith("."):
            raise ValueError(f"{name!r} is no name of a part")
        counts = {key: content[key] for key in (*_COUNTS, "rows", "max_position")}
        for key, count in counts.items():
            if type(count) is not int or count < 0:
                raise ValueError(f"the {key} of {name} must be a whole number, got {count!r}")
        rows, max_position = counts.pop("rows"), counts.pop("max_position")
        return cls(name, str(content["sha256"]), counts, rows, max_position)


@dataclass(frozen=True)
class WrittenPart:
    """What the writer of a part, on this machine or another, tells whoever writes the manifest."""

    entry: PartEntry
    feature_names: tuple[str, ...]
    feature_dtype: str
    categories: Mapping[str, tuple[str, ...]]
    contexts: tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Parts(Sequence[Impressions]):
    """Impressions in parts, in a folder or behind a URI, read part by part or whole.

    ``parts[k]`` loads part k, ``parts[2:5]`` are some of them, ``parts.whole()`` is one Impressions.

    Examples
    --------
    >>> import unskew
    >>> log = {
    ...     "session": [1, 1, 2, 2], "query": ["tea"] * 4, "doc": ["green", "black"] * 2,
    ...     "position": [1, 2, 1, 2], "click": [1, 0, 0, 1], "price": [3.0, 4.0, 3.0, 4.0],
    ... }
    >>> log["query"] = ["tea", "tea", "milk", "milk"]
    >>> unskew.read_log(log).save("parts", parts=2)
    >>> parts = unskew.Parts.open("parts")
    >>> len(parts.entries), parts.feature_names
    (2, ('price',))

    """

    path: Place
    entries: tuple[PartEntry, ...]
    feature_names: tuple[str, ...]
    feature_dtype: str
    categories: Mapping[str, tuple[str, ...]]
    contexts: tuple[Any, ...]

    @classmethod
    def open(cls, path: PlaceLike) -> Parts:
        """The parts that a folder holds; Impressions that were saved whole are one part."""
        place = place_of(path)
        if read_kind(place) == saved.KIND:
            return _single(place)
        meta = read_folder(place, kind=KIND, version=VERSION).meta
        try:
            found = cls(
                place,
                tuple(PartEntry.from_dict(entry) for entry in meta["parts"]),
                tuple(meta["feature_names"]),
                str(np.dtype(meta["feature_dtype"])),
                {name: tuple(texts) for name, texts in meta["categories"].items()},
                tuple(meta["contexts"]),
            )
            found._check()
            return found
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise StoreError(f"{place} does not describe parts ({error!r}): restore it") from error

    def _check(self) -> None:
        """Raise a ValueError for a description that no folder of parts can have."""
        names = [entry.name for entry in self.entries]
        if not names or len(set(names)) != len(names):
            raise ValueError("there is no part, or one is listed twice")
        if self.feature_dtype not in _DTYPES:
            raise ValueError(f"features of {self.feature_dtype}")
        for what, values in (("features", self.feature_names), *self.categories.items()):
            if set(map(type, values)) - {str} or len(set(values)) != len(values):
                raise ValueError(f"{what} must be different texts")
        if not set(self.categories) <= set(self.feature_names):
            raise ValueError("categories of a feature that does not exist")
        kinds = set(map(type, self.contexts))
        if kinds not in ({int}, {str}, set()) or len(set(self.contexts)) != len(self.contexts):
            raise ValueError("contexts must be different texts or whole numbers")

    def __len__(self) -> int:
        return len(self.entries)

    @overload
    def __getitem__(self, index: int) -> Impressions: ...
    @overload
    def __getitem__(self, index: slice) -> Parts: ...
    def __getitem__(self, index: int | slice) -> Impressions | Parts:
        if isinstance(index, slice):
            return replace(self, entries=self.entries[index])
        return self._load(self.entries[index], features=True)

    def without_features(self, index: int) -> Impressions:
        """Part ``index`` with its documents, pages and patterns, but no feature columns."""
        return self._load(self.entries[index], features=False)

    def _load(self, entry: PartEntry, *, features: bool) -> Impressions:
        folder = self.path / entry.name
        _check_manifest(folder, entry, self.path)
        data = saved.load(folder, features=features)
        _check_counts(data, entry, folder)
        if not set(data.contexts.tolist()) <= set(self.contexts):
            raise StoreError(f"{folder} has a context that the whole has not: restore the folder")
        if not features:
            return _with_contexts(data, self.contexts)
        self._check_features(data, folder)
        documents = replace(data.documents, features=recoded(data.features, dict(self.categories)))
        return _with_contexts(replace(data, documents=documents), self.contexts)

    def _check_features(self, data: Impressions, folder: Place) -> None:
        """Refuse a part with other features, or with a category that the whole has not."""
        if data.features.names != self.feature_names:
            raise StoreError(
                f"{folder} has the features {list(data.features.names)}, the other parts have "
                f"{list(self.feature_names)}: restore the folder"
            )
        for name, texts in data.features.categories.items():
            if not set(texts) <= set(self.categories.get(name, ())):
                raise StoreError(
                    f"{folder}: feature {name!r} has a category that the whole has not: restore the "
                    "folder"
                )

    def total(self, count: str) -> int:
        """The sum of one of the counts (sessions, queries, documents, …) over the parts."""
        return sum(entry.counts[count] for entry in self.entries)

    @property
    def n_rows(self) -> int:
        """How many rows of the log the parts stand for."""
        return sum(entry.rows for entry in self.entries)

    @property
    def max_position(self) -> int:
        """The length of a curve over positions: the lowest place, or less where places are sparse."""
        return max((entry.max_position for entry in self.entries), default=0)

    def whole(self) -> Impressions:
        """All parts as one Impressions, equal to those of the log compacted in one piece."""
        if not self.entries:
            raise UsageError(f"{self.path}: not a single part is selected")
        pieces = list(self)
        _check_disjoint(pieces, self)
        return merge([_compact_contexts(piece) for piece in pieces])

    def __repr__(self) -> str:
        return (
            f"Parts({len(self)} parts, {self.total('sessions'):,} sessions, "
            f"{self.total('queries'):,} queries, {self.total('documents'):,} documents, "
            f"{self.total('clicks'):,} clicks, {len(self.feature_names)} features)"
        )


def load(path: PlaceLike) -> Impressions:
    """The Impressions of a folder, whether they were saved whole or in parts."""
    place = place_of(path)
    if read_kind(place) != KIND:
        return saved.load(place)
    if isinstance(place, RemotePath):
        return Parts.open(place).whole()
    # Whoever replaces the parts waits until all of them are read.
    with folder_lock(place, exclusive=False):
        return Parts.open(place).whole()


def is_impressions(kind: str) -> bool:
    """Whether a folder of this kind holds Impressions."""
    return kind in {saved.KIND, KIND}


def _single(path: Place) -> Parts:
    """Impressions that were saved whole, as their only part."""
    data = saved.load(path)
    written = describe(data, path)
    return Parts(
        path.parent, (written.entry,), written.feature_names, written.feature_dtype,
        written.categories, written.contexts,
    )  # fmt: skip


def _check_manifest(folder: Place, entry: PartEntry, whole: Place) -> None:
    file = folder / MANIFEST
    if not file.is_file():
        raise StoreError(
            f"{folder} is missing: {whole} is incomplete, restore it or compact the log again"
        )
    if _checksum(file) != entry.sha256:
        raise StoreError(
            f"{folder} is another part than the one that {whole / MANIFEST} lists: restore the "
            "folder or compact the log again"
        )


def _check_counts(data: Impressions, entry: PartEntry, folder: Place) -> None:
    """Refuse a part that holds more or less than the manifest of the whole says."""
    for name, count in {**entry.counts, "rows": entry.rows}.items():
        if getattr(data, f"n_{name}") != count:
            raise StoreError(
                f"{folder} holds {getattr(data, f'n_{name}'):,} {name}, but {MANIFEST} of the whole "
                f"lists {count:,}: restore the folder or compact the log again"
            )


def _with_contexts(data: Impressions, contexts: Sequence[Any]) -> Impressions:
    """The same sessions with the contexts that all parts share."""
    if data.contexts.tolist() == list(contexts):
        return data
    place = {key: number for number, key in enumerate(contexts)}
    codes = np.array([*(place[key] for key in data.contexts.tolist()), -1], dtype=np.int32)
    keys = _keys(contexts)
    patterns = replace(data.patterns, context=codes[data.patterns.context])
    return replace(data, contexts=keys, patterns=patterns)


def _keys(values: Sequence[Any]) -> npt.NDArray[Any]:
    if not values:
        return np.empty(0, dtype=np.int64)
    array = np.array(values)
    return array if array.dtype.kind in "iu" else array.astype(object)


def _compact_contexts(data: Impressions) -> Impressions:
    """Only the contexts that occur, which are those that the whole log has."""
    used = np.unique(data.patterns.context[data.patterns.context >= 0])
    if len(used) == len(data.contexts):
        return data
    place = np.append(np.searchsorted(used, np.arange(len(data.contexts))), -1).astype(np.int32)
    patterns = replace(data.patterns, context=place[data.patterns.context])
    return replace(data, contexts=data.contexts[used], patterns=patterns)


def _check_disjoint(pieces: Sequence[Impressions], parts: Parts) -> None:
    """Refuse parts of which two hold sessions of one query."""
    owner: dict[Any, int] = {}
    for number, piece in enumerate(pieces):
        for key in piece.queries.tolist():
            other = owner.setdefault(key, number)
            if other != number:
                raise two_parts(key, parts.entries[other].name, parts.entries[number].name)


def two_parts(query: Any, one: str, other: str) -> StoreError:
    """The error for a query that stands in two parts."""
    return StoreError(
        f"query {query!r} stands in two parts, {one} and {other}: parts are divided by query. "
        "Compact the log again"
    )


# Writing ----------------------------------------------------------------------------------------


def describe(data: Impressions, folder: Place) -> WrittenPart:
    """What a saved part tells whoever writes the manifest."""
    counts = {
        "sessions": data.n_sessions, "queries": data.n_queries, "documents": data.n_documents,
        "pages": data.n_pages, "patterns": data.n_patterns, "clicks": data.n_clicks,
    }  # fmt: skip
    with warnings.catch_warnings():
        # Whoever trains on the whole is told of sparse positions, not whoever writes a part.
        warnings.simplefilter("ignore")
        length = data.curve_length
    entry = PartEntry(folder.name, _checksum(folder / MANIFEST), counts, data.n_rows, length)
    features = data.features
    used = data.contexts[np.unique(data.patterns.context[data.patterns.context >= 0])]
    return WrittenPart(
        entry, features.names, str(features.values.dtype),
        {name: tuple(texts) for name, texts in features.categories.items()},
        tuple(used.tolist()),
    )  # fmt: skip


def write_part(data: Impressions, folder: Place) -> WrittenPart:
    """Save one part into a folder; a disk that is full leaves nothing of it behind."""
    saved.save_impressions(data, folder)
    return describe(data, folder)


class PartsWriter:
    """Writes parts one after the other; they count all together once it is closed."""

    def __init__(self, staging: Place, token: str) -> None:
        self.staging, self._token = staging, token
        self._written: list[WrittenPart] = []

    def folder(self, number: int, suffix: str = "") -> Place:
        """Where part ``number`` is written until the whole counts."""
        return self.staging / f"part-{number:05d}-{self._token}{suffix}"

    def add(self, data: Impressions) -> None:
        """Write one more part."""
        self.take(write_part(data, self.folder(len(self._written))))

    def take(self, written: WrittenPart) -> None:
        """List a part that somebody wrote into `staging`."""
        if self._written:
            self._check_alike(written)
        self._written.append(written)

    def _check_alike(self, written: WrittenPart) -> None:
        first = self._written[0]
        for name in _COMMON:
            mine, other = getattr(first, name), getattr(written, name)
            if mine != other:
                raise StoreError(
                    f"{first.entry.name} and {written.entry.name} differ in {name}: {mine} and "
                    f"{other}"
                )

    def manifest(self) -> bytes:
        """The manifest of all parts."""
        first = self._written[0]
        categories = joined_categories([dict(one.categories) for one in self._written])
        contexts = sorted({key for one in self._written for key in one.contexts})
        meta: dict[str, Any] = {
            "parts": [one.entry.to_dict() for one in self._written],
            "feature_names": list(first.feature_names),
            "feature_dtype": first.feature_dtype,
            "categories": {name: list(texts) for name, texts in categories.items()},
            "contexts": contexts,
        }
        content = {"kind": KIND, "version": VERSION, "files": {}, **meta}
        return manifest_text(content).encode()

    def names(self) -> list[str]:
        """The folders of the parts."""
        return [one.entry.name for one in self._written]


@contextmanager
def parts_writer(path: PlaceLike) -> Iterator[PartsWriter]:
    """A writer of parts; at the end of the block they are what the folder holds.

    An existing folder of parts is replaced. If the block fails, everything is as it was.
    """
    place = place_of(path)
    writing = _remote_writer(place) if isinstance(place, RemotePath) else _local_writer(place)
    with writing as writer:
        yield writer
        if not writer.names():
            raise UsageError(f"{place}: there is no part to write")


@contextmanager
def _remote_writer(out: RemotePath) -> Iterator[PartsWriter]:
    """Parts are written where they stay; they count from the moment when the manifest is there."""
    check_replaceable(out, KIND)
    with claimed_token(out) as token:
        writer = PartsWriter(out, token)
        yield writer
        (out / MANIFEST).write_bytes(writer.manifest())
        # The old parts, and what failed attempts left.
        ours = filter(_NAME.fullmatch, names_of_nobody_else(out, token))
        remove_named(out, {*ours} - {*writer.names()})


@contextmanager
def _local_writer(path: Path) -> Iterator[PartsWriter]:
    """Parts are written under a hidden name, and renamed in the end."""
    out = Path(os.path.realpath(path))
    exists = out.is_dir()
    if exists:
        with folder_lock(out, exclusive=False):  # another writer may be about to replace it
            check_replaceable(out, KIND)
    else:
        check_replaceable(out, KIND)
    out.parent.mkdir(parents=True, exist_ok=True)
    remove_abandoned(out.parent)
    with temporary_folder(out if exists else out.parent) as staging:
        writer = PartsWriter(staging, os.urandom(4).hex())
        yield writer
        text = writer.manifest()
        if not exists:
            (staging / MANIFEST).write_bytes(text)
            _drop_others(staging, {*writer.names(), MANIFEST})
        if exists or not take_name(staging, out):
            _replace(out, staging, writer.names(), text)


def _drop_others(staging: Path, kept: set[str]) -> None:
    """Remove what a failed attempt of another process left."""
    for entry in staging.iterdir():
        if entry.name not in kept:
            shutil.rmtree(entry, ignore_errors=True)


def _replace(out: Path, staging: Path, names: Sequence[str], manifest: bytes) -> None:
    with folder_lock(out, exclusive=True):
        check_replaceable(out, KIND)
        old = [file.parent.name for file in out.glob(f"part-*/{MANIFEST}")]
        for name in names:
            (staging / name).rename(out / name)
        replace_file(out / MANIFEST, lambda file: file.write_bytes(manifest))
        for name in old:
            shutil.rmtree(out / name, ignore_errors=True)


def save_parts(data: Impressions, path: PlaceLike, n_parts: int, *, progress: bool = False) -> None:
    """Save Impressions in parts, each with about as many documents and pages."""
    if n_parts < 1:
        raise UsageError(f"parts must be a whole number, 1 or higher, got {n_parts}")
    with (
        parts_writer(path) as writer,
        progress_bar("Writing parts", n_parts, show=progress) as advance,
    ):
        for part in cut_by_query(data, balanced_groups(data, n_parts), n_parts):
            writer.add(part)
            advance(1)


def _checksum(file: Place) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
