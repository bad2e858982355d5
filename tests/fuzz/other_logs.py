"""Logs in JSON and in DuckDB databases, and logs whose clicks stand in a table of their own."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import unskew
from fuzz.mutations import mutated_bytes
from fuzz.oracle import Kind, main
from fuzz.slow_reading import Row, UnreadableError, key, number, read_rows, sessions, whole
from fuzz.tables import (
    ENDINGS,
    _column,
    _compare,
    check_feature_names,
    damaged_rows,
    found_sessions,
    log_rows,
    write_rows,
)


def attempt_events(sample: Path, case: int, place: Path) -> str | None:
    """Impressions and the clicks on them, one of the two tables damaged."""
    rng = np.random.default_rng([case, 17])
    log = log_rows(rng)
    shown = [{name: v for name, v in row.items() if name != "click"} for row in log]
    events = [
        {"session": row["session"], "doc": row["doc"], "click": row["click"]}
        for row in log
        if row["click"]
    ]
    if rng.random() < 0.5:
        shown = damaged_rows(shown, rng)
    else:
        events = damaged_rows(events, rng)
    one, two = (place / f"{n}{ENDINGS[rng.integers(len(ENDINGS))]}" for n in ("shown", "clicks"))
    write_rows(shown, one, rng)
    write_rows(events, two, rng)
    data = unskew.read_log(one, events=two)
    try:
        return _compare(found_sessions(data), _slow_join(one, two, data))
    except UnreadableError as error:
        return f"read, but slowly: {error}"


def _slow_join(one: Path, two: Path, data: unskew.Impressions) -> Counter[Any]:
    """Every impression with the highest grade of its events; events of others count for nothing."""
    grades: dict[tuple[str, str], int] = {}
    clicks = read_rows([two])
    by = "doc" if not clicks or "doc" in clicks[0] else "position"
    for row in clicks:
        grade = number(row["click"]) if "click" in row else 1
        if row["session"] is None or row[by] is None or grade is None:
            continue
        pair = key(row["session"]), key(row[by])
        grades[pair] = max(grades.get(pair, 0), whole(grade))
    rows = read_rows([one])
    check_feature_names(rows, data)
    for row in rows:
        row["click"] = grades.get((key(row["session"]), key(row[by])), 0)
    return sessions(rows, data.features.names, frozenset(data.features.categories))


def attempt_other(sample: Path, case: int, place: Path) -> str | None:
    """A log in JSON, one object a line, or in a table of a DuckDB database."""
    rng = np.random.default_rng([case, 18])
    rows = damaged_rows(log_rows(rng), rng)
    file = place / ("log.jsonl" if case % 2 else "log.duckdb")
    _write(rows, file, rng)
    if rng.random() < 0.3:
        file.write_bytes(mutated_bytes(file.read_bytes(), rng))
    data = unskew.read_log(file, table=None if case % 2 else "log")
    try:
        found = _slow_rows(file)
        check_feature_names(found, data)
        slow = sessions(found, data.features.names, frozenset(data.features.categories))
        return _compare(found_sessions(data), slow)
    except UnreadableError as error:
        return f"read, but slowly: {error}"


def _write(rows: list[Row], file: Path, rng: np.random.Generator) -> None:
    if file.suffix == ".jsonl":
        lines = [json.dumps(row, ensure_ascii=bool(rng.random() < 0.5)) for row in rows]
        file.write_bytes("\n".join(lines).encode("utf-8", "replace"))
        return
    names = list(rows[0]) if rows else ["session"]
    columns = [_column([row[name] for row in rows], rng) for name in names]
    written = pa.table(columns, names=names)
    with duckdb.connect(str(file)) as connection:
        connection.register("written", written)
        try:
            connection.execute("CREATE TABLE log AS SELECT * FROM written")
        except duckdb.Error:  # names that a table cannot have
            connection.execute("CREATE TABLE log AS SELECT 1 AS session")


def _slow_rows(file: Path) -> list[Row]:
    if file.suffix == ".duckdb":
        try:
            with duckdb.connect(str(file), read_only=True) as connection:
                return connection.sql("SELECT * FROM log").to_arrow_table().to_pylist()
        except (duckdb.Error, pa.ArrowException) as error:
            raise UnreadableError(str(error)) from error
    rows = []
    for line in file.read_bytes().split(b"\n"):
        if line.strip():
            try:
                text = line.decode("utf-8")
                # Infinity is an id as it is written.
                found = json.loads(
                    text, object_pairs_hook=_once, parse_constant=str, parse_float=_Written
                )
                rows.append(found)
            except (ValueError, RecursionError) as error:
                raise UnreadableError(str(error)) from error
    if not all(isinstance(row, dict) for row in rows):
        raise UnreadableError("a line is no object")
    names = dict.fromkeys(name for row in rows for name in row)
    filled = [{name: row.get(name) for name in names} for row in rows]
    for name in {"session", "query", "doc"} & set(names):
        if len({_kind(row[name]) for row in filled} - {"null"}) > 1:
            # Ids of several kinds are texts, as they are written.
            for row in filled:
                row[name] = _as_written(row[name])
    return filled


class _Written(float):
    """A number with its text."""

    text: str

    def __new__(cls, text: str) -> _Written:
        """The number that the text means."""
        made = super().__new__(cls, text)
        made.text = text
        return made


def _kind(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return "null" if value is None else "bool"
    if isinstance(value, int) and abs(value) >= 2**63:
        return "large"
    return "number" if isinstance(value, int | float) else "text"


def _as_written(value: Any) -> Any:
    if isinstance(value, _Written):
        return value.text
    return json.dumps(value) if isinstance(value, bool | int) else value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) != len(pairs):
        raise UnreadableError("a key stands twice")
    return dict(pairs)


def _nothing(folder: Path) -> None:
    """Cases make their own files."""


KINDS = (
    Kind("clicks apart", ("shown",), _nothing, attempt_events),
    Kind("JSON and databases", ("log",), _nothing, attempt_other),
)

if __name__ == "__main__":
    main(KINDS)
