"""LogSummary: what a model remembers of the log it was trained on, to compare a later one with.

It is small whatever the log, and quickly made: clicks by position, ten classes of each feature with how
often each was shown, by a sample of the documents of a large log, and a sample of the ids of documents
and queries, as hashes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray
from unskew.log.counts import count_statistics, sums
from unskew.log.features import Features
from unskew.log.impressions import Impressions
from unskew.log.keys import key_hashes
from unskew.mixing import shuffled_keys

N_CLASSES = 10
_MOST_CATEGORIES = 50
_MOST_HASHES = 4096
# The classes of features rest on so many documents at most.
_MOST_DOCUMENTS = 50_000


@dataclass(frozen=True)
class FeatureClasses:
    """How often each class of a feature was shown, as shares; the last one is a missing value.

    Numbers have ``edges``: a class ends at each, inclusive. Categories have their ``names``, and a
    class for all others.
    """

    edges: tuple[float, ...]
    names: tuple[str, ...] | None
    shares: tuple[float, ...]

    def shares_of(self, features: Features, k: int, weight: FloatArray) -> FloatArray:
        """The shares of the same classes in other features, of which column ``k`` is this one."""
        column = features.values[:, k].astype(np.float64)
        n = len(self.shares)
        if self.names is None:
            place = np.searchsorted(np.array(self.edges), column, side="left")
        else:
            texts = features.categories.get(features.names[k], ())
            known = {name: at for at, name in enumerate(self.names)}
            codes = np.array([*(known.get(text, n - 2) for text in texts), n - 2])
            place = codes[np.nan_to_num(column, nan=-1).astype(np.int64)]
        place = np.where(np.isnan(column), n - 1, place)
        found = sums(place, weight, n)
        total = found.sum()
        return found / total if total > 0 else found


@dataclass(frozen=True)
class IdSample:
    """Hashes of ids: all that lie below ``2 ** 64 / 2 ** halvings``, so that a sample is enough."""

    halvings: int
    hashes: frozenset[int]

    @classmethod
    def of(cls, ids: npt.NDArray[Any]) -> IdSample:
        """The sample of some distinct ids."""
        return cls._below(0, key_hashes(ids))

    @classmethod
    def joined(cls, samples: Sequence[IdSample]) -> IdSample:
        """The sample of all ids of which there are samples: the one of their union."""
        most = max((sample.halvings for sample in samples), default=0)
        hashes: frozenset[int] = frozenset().union(*(sample.hashes for sample in samples))
        return cls._below(most, np.array(list(hashes), dtype=np.uint64))

    @classmethod
    def _below(cls, halvings: int, hashes: npt.NDArray[np.uint64]) -> IdSample:
        """The sample of hashes below a limit, which is halved until they are few enough."""
        while True:
            hashes = hashes[hashes <= np.uint64(2 ** (64 - halvings) - 1)]
            if len(hashes) <= _MOST_HASHES:
                return cls(halvings, frozenset(hashes.tolist()))
            halvings += 1

    def unseen(self, ids: npt.NDArray[Any], weight: FloatArray) -> tuple[int, float] | None:
        """How many of other ids the sample can judge, and the weight of those that are new to it."""
        hashes = key_hashes(ids)
        judged = hashes < np.uint64(2 ** (64 - self.halvings)) if self.halvings else hashes >= 0
        total = float(weight[judged].sum())
        if not total > 0:
            return None
        known = np.isin(hashes[judged], np.array(sorted(self.hashes), dtype=np.uint64))
        return int(judged.sum()), float(weight[judged][~known].sum()) / total


@dataclass(frozen=True)
class LogSummary:
    """What a log was like: its size, clicks by position, classes of features, samples of ids.

    ``positions``, ``impressions`` and ``clicks`` are aligned. ``n_documents`` is how many documents
    the shares of the features rest on.
    """

    n_sessions: int
    n_documents: int
    positions: tuple[int, ...]
    impressions: tuple[float, ...]
    clicks: tuple[float, ...]
    features: Mapping[str, FeatureClasses]
    documents: IdSample
    queries: IdSample

    @classmethod
    def of(cls, data: Impressions) -> LogSummary:
        """The summary of a log."""
        position, impressions, clicks = clicks_at(data)
        rows = _sampled(len(data.documents))
        weight, features = shown_documents(data)[rows], data.features.take(rows)
        return cls(
            n_sessions=data.n_sessions,
            n_documents=min(data.n_documents, len(rows)),
            positions=tuple(position.tolist()),
            impressions=tuple(impressions.tolist()),
            clicks=tuple(clicks.tolist()),
            features={name: _classes(features, k, weight) for k, name in enumerate(features.names)},
            documents=IdSample.of(np.unique(data.documents.doc)),
            queries=IdSample.of(data.queries),
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON knows it."""
        return {
            "sessions": self.n_sessions,
            "documents": self.n_documents,
            "positions": [
                list(row) for row in zip(self.positions, self.impressions, self.clicks, strict=True)
            ],
            "features": {
                name: {
                    "edges": list(of.edges),
                    "names": None if of.names is None else list(of.names),
                    "shares": list(of.shares),
                }
                for name, of in self.features.items()
            },
            "document_ids": _to_plain(self.documents),
            "query_ids": _to_plain(self.queries),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> LogSummary:
        """What `to_dict` wrote; a ValueError, TypeError or KeyError if it is not that."""
        rows = [_numbers(row, "positions", 3) for row in content["positions"]]
        features = {str(name): _read_classes(of) for name, of in content["features"].items()}
        return cls(
            n_sessions=_count(content["sessions"], "sessions"),
            n_documents=_count(content["documents"], "documents"),
            positions=tuple(_count(row[0], "positions") for row in content["positions"]),
            impressions=tuple(row[1] for row in rows),
            clicks=tuple(row[2] for row in rows),
            features=features,
            documents=_read_sample(content["document_ids"]),
            queries=_read_sample(content["query_ids"]),
        )


def clicks_at(data: Impressions) -> tuple[npt.NDArray[np.int64], FloatArray, FloatArray]:
    """The positions of a log, and how much was shown and clicked at each."""
    counts = count_statistics(data)
    shown = np.repeat(counts.impressions, np.diff(data.pages.offsets))
    position, index = np.unique(data.pages.position, return_inverse=True)
    n = len(position)
    return position.astype(np.int64), sums(index, shown, n), sums(index, counts.clicks, n)


def shown_documents(data: Impressions) -> FloatArray:
    """How often each row of the documents was shown."""
    counts = count_statistics(data)
    shown = np.repeat(counts.impressions, np.diff(data.pages.offsets))
    return sums(data.pages.document, shown, len(data.documents))


def _sampled(n: int) -> npt.NDArray[np.intp]:
    """The rows of all documents, or of as many as classes rest on, drawn by a hash of their number."""
    if n <= _MOST_DOCUMENTS:
        return np.arange(n)
    return np.sort(np.argpartition(shuffled_keys(n), _MOST_DOCUMENTS)[:_MOST_DOCUMENTS])


def _classes(features: Features, k: int, weight: FloatArray) -> FeatureClasses:
    name, column = features.names[k], features.values[:, k].astype(np.float64)
    if name in features.categories:
        present = ~np.isnan(column)
        code = column[present].astype(np.int64)
        counts = sums(code, weight[present], len(features.categories[name]))
        most = np.sort(np.argsort(-counts, kind="stable")[:_MOST_CATEGORIES])
        names = tuple(features.categories[name][code] for code in most)
        empty = FeatureClasses((), names, (0.0,) * (len(names) + 2))
    else:
        edges = _quantiles(column, weight)
        empty = FeatureClasses(edges, None, (0.0,) * (len(edges) + 2))
    return FeatureClasses(
        empty.edges, empty.names, tuple(empty.shares_of(features, k, weight).tolist())
    )


def _quantiles(column: FloatArray, weight: FloatArray) -> tuple[float, ...]:
    """The values that divide what was shown into ten classes of about the same size."""
    present = ~np.isnan(column) & (weight > 0)
    if not present.any():
        return ()
    order = np.argsort(column[present], kind="stable")
    value, reached = column[present][order], np.cumsum(weight[present][order])
    wanted = reached[-1] * np.arange(1, N_CLASSES) / N_CLASSES
    edges = np.unique(value[np.searchsorted(reached, wanted, side="left")])
    return tuple(edges[edges < value[-1]].tolist())


def _to_plain(sample: IdSample) -> dict[str, Any]:
    return {"halvings": sample.halvings, "hashes": sorted(sample.hashes)}


def _read_sample(content: Mapping[str, Any]) -> IdSample:
    hashes = content["hashes"]
    if not isinstance(hashes, list) or not all(type(h) is int and 0 <= h < 2**64 for h in hashes):
        raise ValueError("hashes must be whole numbers of 64 bits")
    halvings = _count(content["halvings"], "halvings")
    if halvings > 63:
        raise ValueError("halvings must be below 64")
    return IdSample(halvings, frozenset(hashes))


def _read_classes(content: Mapping[str, Any]) -> FeatureClasses:
    edges, shares = _numbers(content["edges"], "edges"), _numbers(content["shares"], "shares")
    names = content["names"]
    if names is not None and not (isinstance(names, list) and all(type(n) is str for n in names)):
        raise ValueError("names must be texts")
    if len(shares) != (len(edges) if names is None else len(names)) + 2:
        raise ValueError("there must be a share for each class")
    if list(edges) != sorted(edges) or min(shares) < 0:
        raise ValueError("edges must ascend, and shares be 0 or higher")
    return FeatureClasses(edges, None if names is None else tuple(names), shares)


def _numbers(values: Any, name: str, length: int | None = None) -> tuple[float, ...]:
    if not isinstance(values, Sequence) or not set(map(type, values)) <= {int, float}:
        raise ValueError(f"{name} must be numbers")
    found = tuple(float(value) for value in values)
    if not np.isfinite(found).all() or (length is not None and len(found) != length):
        raise ValueError(f"{name} must be finite numbers")
    return found


def _count(value: Any, name: str) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{name} must be a whole number, 0 or higher")
    return value
