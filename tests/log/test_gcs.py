"""Logs and saved folders in Google Cloud Storage, on a server that speaks its protocol."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import unskew
from gcs_server import GcsServer, gcs_server
from unskew.errors import DataError, StoreError
from unskew.log.merging import take_queries
from unskew.log.parts import parts_writer


@pytest.fixture(scope="module")
def gcs() -> Iterator[GcsServer]:
    """The server with an empty bucket."""
    with gcs_server() as server:
        yield server


@pytest.fixture(scope="module")
def clicks() -> pa.Table:
    """Sixty sessions of nine queries."""
    numbers = np.arange(240)
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "session": numbers // 4, "query": [f"q{k // 4 % 9}" for k in numbers],
            "doc": numbers % 4, "position": numbers % 4 + 1,
            "click": (rng.random(240) < 0.4).astype(np.int64),
            "x": numbers // 4 % 9 * 10 + numbers % 4 + 0.5,
        }
    )  # fmt: skip


def test_a_log_is_read(gcs: GcsServer, clicks: pa.Table) -> None:
    """A folder of Parquet in a bucket gives the Impressions of the same table here."""
    for k in range(2):
        pq.write_table(clicks.slice(120 * k, 120), f"logs/clicks/{k}.parquet", filesystem=gcs.files)
    assert unskew.read_log(gcs.uri("clicks")).equals(unskew.read_log(clicks))
    with pytest.raises(DataError, match=r"logs/elsewhere\?.*there is no such file or folder"):
        unskew.read_log(gcs.uri("elsewhere"))


def test_parts_are_written_and_read(gcs: GcsServer, clicks: pa.Table, tmp_path: Path) -> None:
    """Parts and models in a bucket are those of a folder, are replaced whole, and leave nothing."""
    data = unskew.read_log(clicks)
    parts = unskew.compact(clicks, gcs.uri("parts"), parts=3)
    unskew.compact(clicks, tmp_path / "parts", parts=3)
    here = unskew.Parts.open(tmp_path / "parts")
    assert all(parts[k].equals(here[k]) for k in range(3))
    assert unskew.load(gcs.uri("parts")).equals(data)
    few = take_queries(data, np.arange(3))
    few.save(gcs.uri("parts"), parts=1)
    assert unskew.load(gcs.uri("parts")).equals(few)
    assert len(gcs.names("parts")) == 1 + 5
    ranker = unskew.UnbiasedLambdaMART(n_estimators=2, verbose=0, min_sum_hessian_in_leaf=0.01)
    ranker.fit(data).save(gcs.uri("model"))
    assert np.array_equal(unskew.load(gcs.uri("model")).predict(data), ranker.predict(data))


def test_what_fails_leaves_nothing(gcs: GcsServer, clicks: pa.Table) -> None:
    """An interrupted writer, a bucket that is not there and a foreign folder: errors with the URI."""
    data = unskew.read_log(clicks)

    def interrupted() -> None:
        with parts_writer(gcs.uri("never")) as writer:
            writer.add(data)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert gcs.names("never") == []
    gcs.write("foreign/x.txt", b"of somebody else")
    with pytest.raises(StoreError, match=r"logs/foreign\?.* exists and was not saved by Unskew"):
        data.save(gcs.uri("foreign"), parts=1)
    nowhere = gcs.uri("x", bucket="nowhere")
    with pytest.raises(StoreError, match=r"@nowhere/x/.*that there is such a bucket"):
        data.save(nowhere, parts=1)
    with pytest.raises(StoreError, match=r"nowhere/x\?.* is not there"):
        unskew.load(nowhere)
