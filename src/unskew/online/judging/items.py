"""What is shown of a document: title, snippet and link, from a table of the user's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.compute as pc

from unskew.errors import DataError
from unskew.online.judging.columns import read_columns, refuse_null

TITLE_LENGTH = 300
SNIPPET_LENGTH = 1000
LINK_LENGTH = 2048


@dataclass(frozen=True)
class Item:
    """One document as text: nothing in it is markup. ``address`` is its url as it came."""

    doc: str
    title: str | None = None
    snippet: str | None = None
    address: str | None = None

    @property
    def link(self) -> str | None:
        """The address if it begins with http or https, else nothing."""
        return safe_link(self.address)


@dataclass(frozen=True)
class Items:
    """The documents' texts, keyed by document or by query and document."""

    by_key: Mapping[tuple[str | None, str], Item]
    has_query: bool = False

    def get(self, query: str, doc: str) -> Item:
        """The texts of a document for a query; its id alone where there are none."""
        return self.by_key.get((query if self.has_query else None, doc), Item(doc))

    def require(self, shown: Iterable[tuple[str, str]]) -> None:
        """Raise if a document that will be shown is not in the table."""
        unknown = [
            (query, doc)
            for query, doc in shown
            if (query if self.has_query else None, doc) not in self.by_key
        ]
        if unknown:
            query, doc = unknown[0]
            raise DataError(
                f"{len(unknown):,} document(s) of the rankings are not in the table of items, the "
                f"first is doc {doc!r} of query {query!r}. Remedy: add a row for each (its title may "
                "be empty), or check that both tables write ids alike, leading zeros included"
            )


def read_items(source: Any, shown: Iterable[tuple[str, str]]) -> Items:
    """The texts of the documents ``shown`` (query and doc) from a table.

    Its columns are doc, optionally query (where a document's snippet depends on it), and at least
    one of title, snippet and url.
    """
    pairs = list(shown)
    columns = read_columns(
        source,
        what="the table of items",
        required=("doc",),
        optional=("query", "title", "snippet", "url"),
    )
    names = columns.column_names
    if not {"title", "snippet", "url"} & set(names):
        raise DataError(
            "the table of items has none of the columns title, snippet and url: there is nothing to "
            "show of a document but its id. Remedy: add one, or leave out --items"
        )
    has_query = "query" in names
    refuse_null(columns, ("query", "doc") if has_query else ("doc",), "the table of items")
    wanted = pa.array(list(dict.fromkeys(doc for _, doc in pairs)), pa.string())
    found: dict[tuple[str | None, str], Item] = {}
    for row in columns.filter(pc.is_in(columns["doc"], wanted)).to_pylist():
        key = (row.get("query"), row["doc"])
        if key in found:
            of = f" of query {key[0]!r}" if has_query else ""
            raise DataError(
                f"the table of items has doc {key[1]!r}{of} more than once; one row is required. "
                "Remedy: keep one, or add a column query if its texts depend on the query"
            )
        found[key] = Item(
            row["doc"],
            title=_cut(row.get("title"), TITLE_LENGTH),
            snippet=_cut(row.get("snippet"), SNIPPET_LENGTH),
            address=(row.get("url") or "").strip() or None,
        )
    items = Items(found, has_query)
    items.require(pairs)
    return items


def safe_link(address: str | None) -> str | None:
    """The address if a browser may open it: http or https with a host, no space or control in it."""
    if (
        address is None
        or len(address) > LINK_LENGTH
        or any(c.isspace() or not c.isprintable() for c in address)
    ):
        return None
    try:
        parts = urlsplit(address)
        host = parts.hostname
    except ValueError:
        return None
    return address if parts.scheme in {"http", "https"} and host else None


def _cut(text: str | None, length: int) -> str | None:
    stripped = (text or "").strip()
    if not stripped:
        return None
    return stripped if len(stripped) <= length else stripped[: length - 1] + "…"
