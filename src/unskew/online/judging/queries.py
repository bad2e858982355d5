"""The queries to judge: a text file with one on each line, or a table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unskew.errors import DataError
from unskew.online.judging.columns import read_columns, refuse_null

TABLES = (".parquet", ".pq", ".parq", ".csv", ".tsv", ".csv.gz", ".tsv.gz", ".csv.zst", ".tsv.zst")


@dataclass(frozen=True)
class Query:
    """A query to judge: its id as in the rankings, and what an assessor reads about it.

    Attributes
    ----------
    text
        What is shown as the query, where the id itself is no text.
    intent
        What the user who asked wanted, in a sentence.

    """

    query: str
    text: str | None = None
    intent: str | None = None


def read_queries(source: Any) -> list[Query]:
    """The queries of a table (query, and optionally text and intent) or of the lines of a text file."""
    name = str(source) if isinstance(source, str | Path) else "the query list"
    if isinstance(source, str | Path) and not name.lower().endswith(TABLES):
        queries = _lines(Path(source))
    else:
        columns = read_columns(
            source, what="the query list", required=("query",), optional=("text", "intent")
        )
        refuse_null(columns, ("query",), name)
        queries = [Query(**row) for row in columns.to_pylist()]
    if not queries:
        raise DataError(f"{name} is empty: it must name at least one query")
    _refuse_repeated(queries, name)
    return queries


def _lines(path: Path) -> list[Query]:
    try:
        content = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}: a list of queries must be UTF-8 text with one query on each line, or a table "
            f"that ends in .parquet or .csv ({error.reason} at byte {error.start:,})"
        ) from error
    except FileNotFoundError as error:
        raise DataError(f"{path}: there is no such file; check the path") from error
    return [Query(line) for line in content.split("\n") if line.strip()]


def _refuse_repeated(queries: list[Query], name: str) -> None:
    seen: set[str] = set()
    for number, entry in enumerate(queries, start=1):
        if entry.query in seen:
            raise DataError(
                f"{name}, query {number:,}: {entry.query!r} is there twice. Remedy: name it once"
            )
        seen.add(entry.query)
