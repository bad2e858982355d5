"""The commands that compact into parts and train with several workers."""

from __future__ import annotations

import json
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
