"""The commands that compact into parts and train with several workers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import unskew
from unskew.cli import main


@pytest.fixture
def clicks(tmp_path: Path) -> Path:
    """A log with two features."""
    rng = np.random.default_rng(0)
    n = 240
    query = np.repeat(np.arange(n // 4) % 15, 4)
    pq.write_table(
        pa.table(
            {
                "session": np.repeat(np.arange(n // 4), 4), "query": query,
                "doc": np.tile(np.arange(4), n // 4), "position": np.tile(np.arange(1, 5), n // 4),
                "click": (rng.random(n) < 0.4).astype(int), "a": (query * 7) % 5 + 0.5,
                "b": np.tile(np.arange(4), n // 4) * 1.0,
            }
        ),
        tmp_path / "clicks.parquet",
    )  # fmt: skip
    return tmp_path / "clicks.parquet"


def run(*arguments: Any) -> int:
    """The exit code of a command."""
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def test_parts_are_read_by_every_command(
    clicks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Unskew compact --parts writes what inspect, bias and train read like any log."""
    assert run("compact", clicks, "-o", tmp_path / "parts", "--parts", 4, "-q") == 0
    assert "in 4 parts" in capsys.readouterr().out
    assert unskew.load(tmp_path / "parts").equals(unskew.read_log(clicks))
    assert run("inspect", tmp_path / "parts", "--json") == 0
    assert json.loads(capsys.readouterr().out)["sessions"] == 60
    assert run("bias", tmp_path / "parts", "--method", "relative-ctr") == 0
    train = ("train", tmp_path / "parts", "-o", tmp_path / "model", "--ranker", "lambdamart")
    assert run(*train, "--n-estimators", 2, "-q") == 0
    capsys.readouterr()
    assert run("compact", tmp_path / "parts", "-o", tmp_path / "again") == 2
    assert "is compact already" in capsys.readouterr().err


def test_training_with_workers(
    clicks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Unskew train --workers trains over parts and saves a model that scores."""
    pytest.importorskip("xgboost")
    run("compact", clicks, "-o", tmp_path / "parts", "--parts", 2, "-q")
    train = ["train", tmp_path / "parts", "-o", tmp_path / "model", "--n-estimators", 2, "-q"]
    assert run(*train, "--workers", 1, "--min-sum-hessian-in-leaf", 0.01) == 0
    assert "with the engine local" in capsys.readouterr().out
    assert unskew.load(tmp_path / "model").trees_.n_rounds == 2
    wrong = {
        ("--engine", "ray"): "--engine must be one of local, dask, spark, got 'ray'",
        ("--address", "tcp://x:1"): "--address goes with --engine dask",
        ("--workers", 1, "--labels"): "go without an engine",
        ("--workers", 1, "--booster", "lightgbm"): "booster must be 'xgboost' with an engine",
    }
    for options, message in wrong.items():
        assert run(*train, *options) == 2
        assert message in " ".join(capsys.readouterr().err.split())
    assert run("compact", clicks, "-o", tmp_path / "x", "--engine", "dask") == 2
    assert "--engine must be spark" in capsys.readouterr().err


TRAIN = ("--n-estimators", 2, "--min-sum-hessian-in-leaf", 0.01, "-q")


def _model(folder: Path) -> tuple[bytes, list[float]]:
    """The trees and the bias of a saved model."""
    ranker: Any = unskew.load(folder)
    return bytes(ranker.trees_.raw.save_raw("json")), ranker.t_plus_.tolist()


# Closing a cluster leaves sockets to the garbage collector.
@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"
)
def test_training_on_dask_and_two_processes(
    clicks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A Dask scheduler by its address and --workers 2 give one model, which remembers its log."""
    pytest.importorskip("xgboost")
    distributed = pytest.importorskip("distributed")
    run("compact", clicks, "-o", tmp_path / "parts", "--parts", 3, "-q")
    train = ("train", tmp_path / "parts", "-o")
    assert run(*train, tmp_path / "processes", "--workers", 2, *TRAIN) == 0
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        dashboard_address=None,
        silence_logs=50,
        scheduler_kwargs={"dashboard_address": ":0"},
    ) as cluster:
        where = ("--engine", "dask", "--address", cluster.scheduler_address)
        assert run(*train, tmp_path / "dask", *where, *TRAIN) == 0
    assert "with the engine dask" in capsys.readouterr().out
    assert _model(tmp_path / "dask") == _model(tmp_path / "processes")
    assert run("inspect", clicks, "--against", tmp_path / "dask", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["compared"] is True
    assert run(*train, tmp_path / "none", "--engine", "dask", "--address", "tcp://127.0.0.1:9",
               "--timeout", 1, *TRAIN) == 1  # fmt: skip
    message = " ".join(capsys.readouterr().err.split())
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in message
    assert not (tmp_path / "none").exists()


def test_compacting_and_training_on_spark(clicks: Path, tmp_path: Path) -> None:
    """Unskew compact and train with --engine spark, as programs of their own, from table to model."""
    pytest.importorskip("xgboost")
    pytest.importorskip("pyspark", reason="the extra spark")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java 17 or newer on the PATH")
    spark = ("--engine", "spark", "--master", "local[2]")
    paths = os.pathsep.join(path for path in sys.path if path)
    # Spark's default of 200 partitions would start as many Python tasks.
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text(
        "spark.sql.shuffle.partitions 2\nspark.ui.enabled false\n"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path), "SPARK_LOCAL_IP": "127.0.0.1",
                   "PYTHONPATH": paths, "SPARK_CONF_DIR": str(tmp_path / "conf")}  # fmt: skip

    def program(*arguments: Any) -> str:
        command = [sys.executable, "-m", "unskew", *map(str, arguments)]
        done = subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    parts = tmp_path / "parts"
    program("compact", clicks, "-o", parts, "--parts", 2, *spark)
    assert unskew.load(parts).equals(unskew.read_log(clicks))
    told = program("train", parts, "-o", tmp_path / "spark", "--workers", 2, *spark, *TRAIN)
    assert "with the engine spark" in told
    assert run("train", parts, "-o", tmp_path / "here", "--workers", 1, *TRAIN) == 0
    assert _model(tmp_path / "spark") == _model(tmp_path / "here")
