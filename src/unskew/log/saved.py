"""Impressions on disk: a folder of Parquet files that a person can open.

documents.parquet   document, query, doc
features.parquet    the feature columns, row for row beside documents.parquet
pages.parquet       page, position, document
patterns.parquet    page, context, weight, clicked (positions), grade, sessions
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from unskew.errors import StoreError
from unskew.log.features import Features
from unskew.log.impressions import Documents, Impressions, Pages, Patterns
from unskew.log.soundness import check_sound
from unskew.places import PlaceLike, place_of
from unskew.store import StoredFolder, open_folder, write_folder

KIND = "impressions"
VERSION = 1
_FEATURES = "features.parquet"


def save_impressions(data: Impressions, path: PlaceLike) -> None:
    """Write the folder, atomically."""
    tables = {
        "documents.parquet": _documents_table(data),
        _FEATURES: _features_table(data.features),
        "pages.parquet": _pages_table(data),
        "patterns.parquet": _patterns_table(data),
    }

    def writer(table: pa.Table) -> Any:
        return lambda file: pq.write_table(table, file, compression="zstd")

    write_folder(
        path,
        kind=KIND,
        version=VERSION,
        meta={
            "sessions": data.n_sessions,
            "queries": data.n_queries,
            "documents": data.n_documents,
            "pages": data.n_pages,
            "patterns": data.n_patterns,
            "clicks": data.n_clicks,
            "feature_names": list(data.features.names),
            "feature_dtype": str(data.features.values.dtype),
            "categories": {name: list(values) for name, values in data.features.categories.items()},
            "contexts": data.contexts.tolist(),
            "gains": None if data.gains is None else list(data.gains),
        },
        files={name: writer(table) for name, table in tables.items()},
    )


def load(path: PlaceLike, *, features: bool = True) -> Impressions:
    """Read a folder that `Impressions.save` wrote; its feature columns only if asked for."""
    with open_folder(path, kind=KIND, version=VERSION) as stored:
        try:
            data = _loaded(stored, features)
            check_sound(data, whole=features)
            _check_counts(data, stored.meta)
        except StoreError:
            raise
        except (
            pa.ArrowException, AttributeError, IndexError, KeyError, MemoryError, OSError, OverflowError,
            TypeError, ValueError,
        ) as error:  # fmt: skip
            raise StoreError(
                f"{place_of(path)} does not hold what its manifest says: {error}"
            ) from error
    return data


def _loaded(stored: StoredFolder, with_features: bool) -> Impressions:
    tables = {
        name: pq.read_table(stored.files[name])
        for name in stored.files
        if with_features or name != _FEATURES
    }
    n = tables["documents.parquet"].num_rows
    features = _features(tables, stored.meta) if with_features else Features(np.empty((n, 0)), ())
    queries, documents = _documents(tables["documents.parquet"], features)
    pages = _pages(tables["pages.parquet"], documents)
    contexts = np.array(stored.meta["contexts"])
    contexts = contexts if contexts.dtype.kind in "iu" else contexts.astype(object)
    patterns = _patterns(tables["patterns.parquet"], pages, contexts)
    if not len(contexts):
        contexts = np.empty(0, dtype=np.int64)
    data = Impressions(queries, contexts, documents, pages, patterns)
    return data.with_gains(stored.meta.get("gains"))  # earlier versions wrote none


def _check_counts(data: Impressions, meta: Mapping[str, Any]) -> None:
    counts = {
        "sessions": data.n_sessions, "queries": data.n_queries, "documents": data.n_documents,
        "pages": data.n_pages, "patterns": data.n_patterns, "clicks": data.n_clicks,
    }  # fmt: skip
    for name, count in counts.items():
        if meta[name] != count:
            raise ValueError(f"there are {count:,} {name}, and the manifest says {meta[name]!r}")


def _documents_table(data: Impressions) -> pa.Table:
    documents = data.documents
    return pa.table(
        {
            "document": np.arange(len(documents)),
            "query": pa.array(data.queries[documents.query]),
            "doc": pa.array(documents.doc),
        }
    )


def _documents(table: pa.Table, features: Features) -> tuple[npt.NDArray[Any], Documents]:
    keys = column(table, "query")
    # Documents are sorted by query: a query begins where its key differs from the one before.
    new = np.concatenate(([True], keys[1:] != keys[:-1])) if len(keys) else np.empty(0, bool)
    query = (np.cumsum(new) - 1).astype(np.int32)
    return keys[new], Documents(query, column(table, "doc"), features)


def _features_table(features: Features) -> pa.Table:
    columns = []
    for k, name in enumerate(features.names):
        values = features.values[:, k]
        if name in features.categories:
            missing = np.isnan(values)
            codes = pa.array(np.where(missing, 0, values).astype(np.int32), mask=missing)
            categories = pa.array(list(features.categories[name]), pa.string())
            columns.append(pa.DictionaryArray.from_arrays(codes, categories))
        else:
            columns.append(pa.array(values))
    return pa.table(columns, names=list(features.names))


def _features(tables: dict[str, pa.Table], meta: Any) -> Features:
    table = tables[_FEATURES]
    names = tuple(meta["feature_names"])
    categories = {name: tuple(values) for name, values in meta["categories"].items()}
    n = tables["documents.parquet"].num_rows
    values = np.empty((n, len(names)), dtype=np.dtype(meta["feature_dtype"]))
    for k, name in enumerate(names):
        column = table.column(name).combine_chunks()
        if name in categories:
            code = {category: number for number, category in enumerate(categories[name])}
            values[:, k] = [np.nan if v is None else code[v] for v in column.to_pylist()]
        else:
            values[:, k] = column.to_numpy(zero_copy_only=False)
    return Features(values, names, categories)


def _pages_table(data: Impressions) -> pa.Table:
    pages = data.pages
    page = np.repeat(np.arange(len(pages), dtype=np.int32), np.diff(pages.offsets))
    return pa.table({"page": page, "position": pages.position, "document": pages.document})


def _pages(table: pa.Table, documents: Documents) -> Pages:
    page, document = column(table, "page"), column(table, "document")
    step = np.diff(page, prepend=-1)
    if page.dtype.kind not in "iu" or not ((step == 0) | (step == 1)).all() or page[:1].any():
        raise ValueError("pages are not numbered in order")
    if len(document) and not 0 <= document.min() <= document.max() < len(documents):
        raise ValueError("a page shows a document that is not there")
    offsets = np.concatenate(([0], np.cumsum(np.bincount(page)))).astype(np.int64)
    query = documents.query[document[offsets[:-1]]]
    return Pages(query, offsets, document, column(table, "position"))


def _patterns_table(data: Impressions) -> pa.Table:
    pages, patterns = data.pages, data.patterns
    first = np.repeat(pages.offsets[patterns.page], np.diff(patterns.offsets))
    position = pages.position[first + patterns.slot]
    contexts = pa.array(data.contexts).take(pa.array(patterns.context, mask=patterns.context < 0))
    offsets = pa.array(patterns.offsets, pa.int64())
    return pa.table(
        {
            "page": patterns.page,
            "context": contexts,
            "weight": patterns.weight,
            "clicked": pa.LargeListArray.from_arrays(offsets, pa.array(position)),
            "grade": pa.LargeListArray.from_arrays(offsets, pa.array(patterns.grade)),
            "sessions": patterns.count,
        }
    )


def _patterns(table: pa.Table, pages: Pages, contexts: npt.NDArray[Any]) -> Patterns:
    clicked = table.column("clicked").combine_chunks()
    offsets = np.asarray(clicked.offsets, dtype=np.int64)
    page = column(table, "page")
    if page.dtype.kind not in "iu" or (
        len(page) and not 0 <= page.min() <= page.max() < len(pages)
    ):
        raise ValueError("a pattern names a page that is not there")
    named = table.column("context").combine_chunks()
    known = pa.array(contexts, named.type) if len(contexts) else pa.nulls(0, named.type)
    context = np.asarray(pc.fill_null(pc.index_in(named, known), -1))
    if (np.asarray(named.is_valid()) & (context < 0)).any():
        raise ValueError("a pattern names a context that the manifest does not have")
    return Patterns(
        page=page,
        context=context,
        weight=column(table, "weight"),
        count=column(table, "sessions"),
        offsets=offsets,
        slot=_slots(np.asarray(clicked.flatten()), np.repeat(page, np.diff(offsets)), pages),
        grade=np.asarray(table.column("grade").combine_chunks().flatten()),
    )


def _slots(
    position: npt.NDArray[np.int32], page: npt.NDArray[np.int32], pages: Pages
) -> npt.NDArray[np.int32]:
    """The slot of each clicked position on its page."""
    # Page and position together ascend over all pages, so one search finds every slot.
    entry_page = np.repeat(np.arange(len(pages), dtype=np.int64), np.diff(pages.offsets))
    entries = entry_page << 32 | pages.position
    clicked = page.astype(np.int64) << 32 | position
    at = np.searchsorted(entries, clicked)
    if not (at < len(entries)).all() or (entries[at] != clicked).any():
        raise ValueError("a position was clicked that its page does not have")
    return (at - pages.offsets[page]).astype(np.int32)


def column(table: pa.Table, name: str) -> npt.NDArray[Any]:
    """A column as an array: of numbers as they are, of texts as objects."""
    return np.asarray(table.column(name).combine_chunks().to_numpy(zero_copy_only=False))
