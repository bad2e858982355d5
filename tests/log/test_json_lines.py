"""JSON is read as it is written: no id is rewritten, no file is taken for a pattern."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import unskew
from unskew import DataError

KEYS: dict[str, list[Any]] = {
    "dates": ["2024-1-5", "2024-01-05"],
    "times": ["2024-01-05T00:00:00", "2024-01-05 00:00:00"],
    "UUIDs": ["550E8400-E29B-41D4-A716-446655440000", "550e8400-e29b-41d4-a716-446655440000"],
    "zeros": ["0012", "12"],
    "long numbers": [12345678901234567890123, 12345678901234567890124],
    "20 digits": [18446744073709551614, 18446744073709551615],
    "texts and numbers": ["007", 7],
}


def rows(docs: list[Any]) -> list[dict[str, Any]]:
    """Two sessions over two documents."""
    return [
        {"session": s, "query": "a", "doc": doc, "position": k + 1, "click": int(s == k)}
        for s in range(2)
        for k, doc in enumerate(docs)
    ]


def write(objects: list[dict[str, Any]], file: Path) -> Path:
    """The objects, one a line, or as one array."""
    lines = "".join(json.dumps(row) + "\n" for row in objects)
    text = json.dumps(objects) if file.suffix == ".json" else lines
    file.write_bytes(gzip.compress(text.encode()) if file.suffix == ".gz" else text.encode())
    return file


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("name", ["log.ndjson", "log.json"])
def test_ids_stay_as_they_are_written(kind: str, name: str, tmp_path: Path) -> None:
    """Two ids that look alike to a reader of dates or numbers stay two, and keep their text."""
    data = unskew.read_log(write(rows(KEYS[kind]), tmp_path / name))
    assert sorted(map(str, data.documents.doc.tolist())) == sorted(map(str, KEYS[kind]))


def test_whole_floats_are_numbers(tmp_path: Path) -> None:
    """Ids that a data frame wrote as 1.0 and 2.0 are 1 and 2, as from every other source."""
    data = unskew.read_log(write(rows([1.0, 2.0]), tmp_path / "log.ndjson"))
    assert data.documents.doc.tolist() == [1, 2]


def test_a_name_that_exists_is_that_file(tmp_path: Path) -> None:
    """A name with brackets or a question mark is no pattern if there is a file of that name."""
    for name, other in (("log[1].ndjson", "log1.ndjson"), ("log?.ndjson.gz", "log2.ndjson.gz")):
        file = write(rows([10, 11]), tmp_path / name)
        write(rows([98, 99]), tmp_path / other)
        assert unskew.read_log(file).documents.doc.tolist() == [10, 11]


def test_keys_that_differ_by_case(tmp_path: Path) -> None:
    """`x` and `X` are refused; `x` beside `x_1` is not."""
    objects = [{**row, "x": 1.0, "X": 2.0} for row in rows([10, 11])]
    with pytest.raises(DataError, match=r"log\.ndjson: two columns are called 'X' and 'x'"):
        unskew.read_log(write(objects, tmp_path / "log.ndjson"))
    objects = [{**row, "x": 1.0, "x_1": 2.0} for row in rows([10, 11])]
    data = unskew.read_log(write(objects, tmp_path / "log.ndjson"))
    assert data.features.names == ("x", "x_1")


def test_a_wrong_checksum(tmp_path: Path) -> None:
    """A gzip file whose checksum is wrong is refused."""
    file = write(rows([10, 11]), tmp_path / "log.ndjson.gz")
    content = bytearray(file.read_bytes())
    content[-6] ^= 0xFF
    file.write_bytes(content)
    with pytest.raises(DataError, match=r"log\.ndjson\.gz: the compressed file is .*damaged"):
        unskew.read_log(file)
