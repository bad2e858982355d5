"""A real Spark session: the tables and the models of one machine, and its messages."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from clicked_parts import SETTINGS, digest, trained
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from rows import Row, as_columns, logs

import unskew
from unskew.engines import Spark
from unskew.errors import DataError, EngineError, UsageError
from unskew.log.sources import connect, open_table

# Spark warns of every new version of pandas, which is not used here.
pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")

pytest.importorskip("pyspark", reason="the tests of Spark need the extra spark")
if shutil.which("java") is None:
    pytest.skip("the tests of Spark need Java 17 or newer on the PATH", allow_module_level=True)


@pytest.fixture(scope="module")
def spark(tmp_path_factory: Any) -> Iterator[Any]:
    """One session with four slots for all tests of this module."""
    from pyspark.sql import SparkSession

    before = {name: os.environ.get(name) for name in ("PYSPARK_PYTHON", "PYTHONPATH", "TMPDIR")}
    os.environ["TMPDIR"] = str(tmp_path_factory.mktemp("spark"))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    options = {
        "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2",
        "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    }  # fmt: skip
    builder = SparkSession.builder.master("local[4]").appName("unskew tests")
    for name, value in options.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    session.conf.set("unskew.folder", os.environ["TMPDIR"])
    yield session
    session.stop()
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _frame(spark: Any, table: pa.Table) -> Any:
    folder = Path(spark.conf.get("unskew.folder"))
    file = folder / f"{len(list(folder.iterdir()))}.parquet"
    pq.write_table(table, file)
    return spark.read.parquet(str(file))


@settings(
    max_examples=3,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(rows=logs(), n=st.integers(1, 3))
def test_random_logs_are_the_same(spark: Any, tmp_path: Path, rows: list[Row], n: int) -> None:
    """Whatever the keys, grades, weights and contexts: the tables of one machine."""
    table = pa.table(as_columns(rows))
    parts = unskew.compact(_frame(spark, table), tmp_path / "parts", parts=n)
    assert parts.whole().equals(unskew.read_log(table))
    shutil.rmtree(tmp_path / "parts")


def _clicks(n: int = 300, heavy: float = 0.5) -> pa.Table:
    """Sessions of which every second is of one heavy query, rows in no order."""
    rng = np.random.default_rng(0)
    query = np.where(rng.random(n) < heavy, 7, rng.integers(0, 30, n))
    rows = np.repeat(np.arange(n), 4)
    table = pa.table(
        {
            "s": rows,
            "query": [f"q{k:02d}" for k in query[rows]],
            "doc": np.concatenate([rng.permutation(6)[:4] for _ in range(n)]),
            "position": np.tile(np.arange(1, 5), n),
            "click": (rng.random(4 * n) < 0.3).astype(np.int64),
        }
    )
    return table.take(rng.permutation(4 * n))


def _features() -> pa.Table:
    query, doc = (grid.ravel() for grid in np.meshgrid(np.arange(30), np.arange(6)))
    rng = np.random.default_rng(1)
    return pa.table(
        {
            "query": [f"q{k:02d}" for k in query],
            "doc": doc,
            "price": rng.normal(size=len(query)).round(2),
            "odd `name`": rng.normal(size=len(query)).astype(np.float32),
            "colour": [("blue", "red", None)[k] for k in rng.integers(0, 3, len(query))],
        }
    )


def test_features_are_joined_on_the_cluster(spark: Any, tmp_path: Path) -> None:
    """A heavy query, a features table and categories give the tables of one machine."""
    clicks, features = _clicks(), _features()
    options: dict[str, Any] = {"session": "s", "categorical": ["colour"]}
    parts = unskew.compact(
        _frame(spark, clicks), tmp_path / "parts", parts=3, features=_frame(spark, features),
        **options,
    )  # fmt: skip
    assert len(parts) == 3
    assert parts.whole().equals(unskew.read_log(clicks, features=features, **options))


def test_the_yandex_log(spark: Any, tmp_path: Path, real_data: Path) -> None:
    """The real log of Yandex gives the tables of one machine."""
    folder = real_data / "yandex"
    with connect() as connection:
        table = open_table(str(folder), connection, what="the log")
        columns = set(table.columns)
    if not {"session", "query", "doc", "position", "click"} <= columns:
        pytest.skip(f"the columns of {folder} are {sorted(columns)}")
    frame = spark.read.parquet(str(folder))
    parts = unskew.compact(frame, tmp_path / "parts", parts=2)
    assert parts.whole().equals(unskew.read_log(folder))


@pytest.mark.parametrize("n_workers", [2, 4])
def test_training_gives_the_model_of_one_worker(spark: Any, parts: Path, n_workers: int) -> None:
    """A barrier stage of two or four workers gives the trees and biases of one, bit for bit."""
    ranker = unskew.UnbiasedLambdaMART(**SETTINGS).fit(
        parts, engine=Spark(session=spark, n_workers=n_workers, timeout=100)
    )
    assert digest(ranker) == digest(trained(unskew.UnbiasedLambdaMART(**SETTINGS), parts))


def test_a_killed_worker_is_an_error(spark: Any, parts: Path) -> None:
    """A worker that is killed under Spark ends the training with an error that says so."""
    folder = spark.conf.get("unskew.folder")

    def kill(now: Any) -> None:
        if now.number == 4:
            os.kill(_workers_below(folder)[-1], signal.SIGKILL)

    with pytest.raises(EngineError, match=r"worker \d of 2 (was ended by SIGKILL|failed: it lost)"):
        unskew.UnbiasedLambdaMART(**SETTINGS).fit(
            parts, engine=Spark(session=spark, n_workers=2, timeout=20), callbacks=[kill]
        )


def _workers_below(folder: str) -> list[int]:
    """The processes of workers whose files are in a folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                command = (entry / "cmdline").read_bytes().decode(errors="replace")
                if "unskew.engines.process" in command and folder in command:
                    found.append(int(entry.name))
    return found


def test_more_workers_than_slots_are_refused(spark: Any, parts: Path) -> None:
    """A barrier stage that can never start is refused instead of waited for."""
    with pytest.raises(UsageError, match="Spark can run 4 tasks at once"):
        unskew.UnbiasedLambdaMART(**SETTINGS).fit(parts, engine=Spark(session=spark, n_workers=5))


def test_problems_are_told_as_for_a_file(spark: Any, tmp_path: Path) -> None:
    """Missing columns, wrong types and wrong rows have the messages of any log, and write nothing."""
    clicks = _clicks(20)

    def refused(table: pa.Table, match: str, **options: Any) -> None:
        with pytest.raises(DataError, match=match):
            unskew.compact(
                _frame(spark, table), tmp_path / "parts", parts=2, **{"session": "s", **options}
            )
        assert list(tmp_path.iterdir()) == []

    refused(clicks, "there is no column 'user'", session="user")
    text = clicks.append_column("note", pa.array(["red"] * clicks.num_rows))
    refused(text, r"the log \(Spark DataFrame\): column 'note' holds text \('red'\)")
    position = clicks["position"].to_pylist()
    wrong = clicks.set_column(3, "position", pa.array([-3, *position[1:]]))
    refused(wrong, r"session \d+, position -3\): column 'position' is below 1")
    queries = clicks["query"].to_pylist()
    two = clicks.set_column(1, "query", pa.array(["other", *queries[1:]]))
    refused(two, "column 'query' changes within a session")
    silent = clicks.set_column(4, "click", pa.array([0] * clicks.num_rows))
    refused(silent, "holds not a single click")
    few = _features().slice(0, 20).drop_columns(["colour"])
    refused(clicks, "has no row of features", features=_frame(spark, few))
    with pytest.raises(UsageError, match="features must be a Spark DataFrame like the log"):
        unskew.compact(_frame(spark, clicks), tmp_path / "p", session="s", features=few)
