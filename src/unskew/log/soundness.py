"""Whether Impressions are sound: what the kernels take for granted, checked on what was loaded."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.log.impressions import Impressions, Pages, Patterns


def check_sound(data: Impressions, *, whole: bool) -> None:
    """A ValueError unless every index has what it points to and every number makes sense.

    Without the features of a ``whole`` log, versions of a document cannot be told apart.
    """
    documents, features = data.documents, data.features
    n = len(documents)
    _require(
        len(documents.doc) == n and len(features) == n, "documents and features differ in length"
    )
    _require(set(map(type, features.names)) <= {str}, "a feature name is no text")
    _require(len(set(features.names)) == len(features.names), "a feature name occurs twice")
    _require(features.values.dtype in (np.float32, np.float64), "features are no floating numbers")
    for name, codes in features.categories.items():
        column = features.values[:, features.names.index(name)]
        known = np.isnan(column) | ((column >= 0) & (column < len(codes)))
        _require(bool(known.all()), f"feature {name!r} has an unknown category")
    _check_order(data, whole)
    _check_pages(data.pages, data.documents.query)
    _check_patterns(data.patterns, data.pages, len(data.contexts))


def _check_order(data: Impressions, whole: bool) -> None:
    """Queries and documents ascend, so that equal ones stand side by side; no version stands twice."""
    query, doc = data.documents.query, data.documents.doc
    _require(bool((data.queries[1:] > data.queries[:-1]).all()), "queries do not ascend")
    same = query[1:] == query[:-1]
    _require(bool((~same | (doc[1:] >= doc[:-1])).all()), "the documents of a query do not ascend")
    again = np.flatnonzero(same & (doc[1:] == doc[:-1])) if whole else np.empty(0, np.int64)
    one, two = data.features.values[again], data.features.values[again + 1]
    equal = (one == two) | (np.isnan(one) & np.isnan(two))
    _require(not equal.all(axis=1).any(), "a document stands twice")


def _check_pages(pages: Pages, query: npt.NDArray[np.int32]) -> None:
    for name, values in (("document", pages.document), ("position", pages.position)):
        _require(values.dtype.kind in "iu", f"{name} is no whole number")
        _require(len(values) == pages.offsets[-1], f"{name} has another length")
    _require(bool((np.diff(pages.offsets) > 0).all()), "a page is empty")
    _require(_within(pages.document, len(query)), "a page shows a document that is not there")
    owner = np.repeat(pages.query, np.diff(pages.offsets))
    _require(bool((query[pages.document] == owner).all()), "a page shows documents of two queries")
    _require(bool((pages.position >= 1).all()), "a position is below 1")
    step = np.diff(pages.position.astype(np.int64))
    step[pages.offsets[1:-1] - 1] = 1  # from one page to the next
    _require(bool((step > 0).all()), "positions do not ascend on a page")


def _check_patterns(patterns: Patterns, pages: Pages, n_contexts: int) -> None:
    m = len(patterns)
    columns = (patterns.context, patterns.weight, patterns.count)
    _require(all(len(column) == m for column in columns), "patterns differ in length")
    _require(patterns.page.dtype.kind in "iu", "page is no whole number")
    _require(_within(patterns.page, len(pages)), "a pattern names a page that is not there")
    _require(bool((np.diff(patterns.page) >= 0).all()), "patterns are not sorted by page")
    _require(patterns.count.dtype.kind in "iu", "sessions is no whole number")
    _require(bool((patterns.count >= 1).all()), "sessions is below 1")
    _require(patterns.weight.dtype == np.float64, "weight is no floating number")
    sound = np.isfinite(patterns.weight) & (patterns.weight >= 0)
    _require(bool(sound.all()), "a weight is negative or not finite")
    _require(_within(patterns.context + 1, n_contexts + 1), "a context is not there")
    offsets = patterns.offsets
    right = len(offsets) == m + 1 and offsets[0] == 0 and offsets[-1] == len(patterns.slot)
    _require(right and bool((np.diff(offsets) >= 0).all()), "clicked is wrong")
    _require(len(patterns.grade) == len(patterns.slot), "grade has another length than clicked")
    _require(patterns.grade.dtype.kind in "iu", "grade is no whole number")
    _require(bool((patterns.grade >= 1).all()), "a grade is below 1")
    size = np.diff(pages.offsets)[np.repeat(patterns.page, np.diff(offsets))]
    _require(bool(((patterns.slot >= 0) & (patterns.slot < size)).all()), "a click is off its page")
    step = np.diff(patterns.slot.astype(np.int64))
    inside = np.ones(len(step), dtype=np.bool_)
    starts = offsets[1:-1]
    inside[starts[(starts > 0) & (starts < len(patterns.slot))] - 1] = False
    _require(bool((step[inside] > 0).all()), "clicked positions do not ascend")


def _within(values: npt.NDArray[Any], size: int) -> bool:
    return bool(((values >= 0) & (values < size)).all())


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise ValueError(message)
