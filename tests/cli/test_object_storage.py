"""The commands from a log to a model with everything in object storage, on a real S3 server."""

from __future__ import annotations

import json
import os
import re
import shlex
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
from s3_server import S3Server
from unskew.cli import main

TRAIN = ("--n-estimators", 2, "--min-sum-hessian-in-leaf", 0.01, "-q")


@pytest.fixture(scope="module")
def clicks(s3: S3Server, tmp_path_factory: Any) -> Path:
    """A log with two features, here and in the bucket."""
    rng = np.random.default_rng(0)
    n = 240
    query = np.repeat(np.arange(n // 4) % 15, 4)
    table = pa.table(
        {
            "session": np.repeat(np.arange(n // 4), 4), "query": query,
            "doc": np.tile(np.arange(4), n // 4), "position": np.tile(np.arange(1, 5), n // 4),
            "click": (rng.random(n) < 0.4).astype(int), "a": (query * 7) % 5 + 0.5,
            "b": np.tile(np.arange(4), n // 4) * 1.0,
        }
    )  # fmt: skip
    file: Path = tmp_path_factory.mktemp("log") / "clicks.parquet"
    pq.write_table(table, file)
    pq.write_table(table, "logs/cli/clicks/0.parquet", filesystem=s3.files)
    return file


@pytest.fixture(autouse=True)
def _environment(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    s3.in_environment(monkeypatch)


def run(*arguments: Any) -> int:
    """The exit code of a command."""
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def _model(place: Any) -> tuple[bytes, list[float]]:
    """The trees and the bias of a saved model."""
    ranker: Any = unskew.load(place)
    return bytes(ranker.trees_.raw.save_raw("json")), ranker.t_plus_.tolist()


def _told(capsys: pytest.CaptureFixture[str]) -> str:
    """What a command wrote to the two streams."""
    return " ".join("".join(capsys.readouterr()).split())


def test_a_log_becomes_a_model_in_the_bucket(
    clicks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Compact, inspect, bias, train, rank and evaluate take URIs as they take folders."""
    parts, model = "s3://logs/cli/parts", "s3://logs/cli/model"
    assert run("compact", "s3://logs/cli/clicks", "-o", parts, "--parts", 4, "-q") == 0
    assert f"saved to {parts} in 4 parts" in _told(capsys)
    assert len(unskew.Parts.open(parts)) == 4
    assert unskew.load(parts).equals(unskew.read_log(clicks))
    assert run("inspect", parts, "--json") == 0
    assert json.loads(capsys.readouterr().out)["sessions"] == 60
    assert run("bias", parts, "--method", "relative-ctr") == 0
    train = ("--ranker", "lambdamart", *TRAIN)
    assert run("train", parts, "-o", model, *train) == 0
    assert f"saved to {model}" in _told(capsys)
    assert run("compact", clicks, "-o", tmp_path / "parts", "--parts", 4, "-q") == 0
    assert run("train", tmp_path / "parts", "-o", tmp_path / "model", *train) == 0
    data = unskew.read_log(clicks)
    assert np.array_equal(
        unskew.load(model).predict(data), unskew.load(tmp_path / "model").predict(data)
    )
    assert run("rank", model, clicks, "-o", tmp_path / "ranked.csv") == 0
    assert run("evaluate", model, "--log", parts) == 0
    assert "model" in _told(capsys)


def test_the_recipes_of_the_guide(s3: S3Server, clicks: Path) -> None:
    """The commands and the code of the guide under "Save there" run as they stand."""
    pytest.importorskip("xgboost")
    guide = Path(__file__).parents[2] / "docs" / "how-to" / "object-storage.md"
    section = guide.read_text(encoding="utf-8").partition("## Save there")[2]
    commands, code = (
        re.search(rf"```{kind}\n(.*?)```", section, re.DOTALL) for kind in ("console", "python")
    )
    assert commands is not None
    assert code is not None
    s3.files.create_dir("bucket")
    pq.write_table(pq.read_table(clicks), "bucket/clicks/0.parquet", filesystem=s3.files)
    lines = commands[1].splitlines()
    assert len(lines) == 4
    for line in lines:
        words = shlex.split(line)
        assert words[:2] == ["$", "unskew"]
        few = [*TRAIN, "--ranker", "lambdamart"] if words[2] == "train" else []
        assert run(*words[2:], *few) == 0, line
    exec(code[1], {"unskew": unskew})  # noqa: S102
    data = unskew.read_log(clicks)
    assert unskew.load("s3://bucket/parts").equals(data)
    assert len(unskew.load("s3://bucket/lambdamart").predict(data)) == data.n_documents


def test_workers_read_their_own_parts(
    s3: S3Server, clicks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two processes over parts behind a URI give the model of the same parts in a folder."""
    pytest.importorskip("xgboost")
    data = unskew.read_log(clicks)
    data.save("s3://logs/cli/for-workers", parts=3)
    data.save(tmp_path / "parts", parts=3)
    train = ("--workers", 2, "--checkpoints", "s3://logs/cli/kept", "--checkpoint-every", 1, *TRAIN)
    assert run("train", "s3://logs/cli/for-workers", "-o", "s3://logs/cli/by-workers", *train) == 0
    assert "with the engine local" in _told(capsys)
    assert "unskew.json" in s3.names("cli/kept")
    assert run("train", tmp_path / "parts", "-o", tmp_path / "here", "--workers", 1, *TRAIN) == 0
    assert _model("s3://logs/cli/by-workers") == _model(tmp_path / "here")


# Closing a cluster leaves sockets to the garbage collector.
@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"
)
def test_training_on_dask(clicks: Path, tmp_path: Path) -> None:
    """Workers of a Dask cluster read the parts behind a URI, and the model is that of a folder."""
    pytest.importorskip("xgboost")
    distributed = pytest.importorskip("distributed", reason="the extra dask")
    data = unskew.read_log(clicks)
    data.save("s3://logs/cli/for-dask", parts=3)
    data.save(tmp_path / "parts", parts=3)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50,
        scheduler_kwargs={"dashboard_address": ":0"},
    ) as cluster:  # fmt: skip
        where = ("--engine", "dask", "--workers", 2, "--address", cluster.scheduler_address)
        train = ("train", "s3://logs/cli/for-dask", "-o", tmp_path / "dask")
        assert run(*train, *where, *TRAIN) == 0
    assert run("train", tmp_path / "parts", "-o", tmp_path / "here", "--workers", 1, *TRAIN) == 0
    assert _model(tmp_path / "dask") == _model(tmp_path / "here")


def test_compacting_and_training_on_spark(s3: S3Server, clicks: Path, tmp_path: Path) -> None:
    """Executors write their parts into the bucket, and workers read them from there."""
    pytest.importorskip("xgboost")
    pytest.importorskip("pyspark", reason="the extra spark")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java 17 or newer on the PATH")
    spark = ("--engine", "spark", "--master", "local[2]")
    # Spark's default of 200 partitions would start as many Python tasks.
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text(
        "spark.sql.shuffle.partitions 2\nspark.ui.enabled false\n"
    )
    paths = os.pathsep.join(path for path in sys.path if path)
    environment = {**os.environ, "TMPDIR": str(tmp_path), "SPARK_LOCAL_IP": "127.0.0.1",
                   "PYTHONPATH": paths, "SPARK_CONF_DIR": str(tmp_path / "conf")}  # fmt: skip

    def program(*arguments: Any) -> tuple[int, str]:
        command = [sys.executable, "-m", "unskew", *map(str, arguments)]
        done = subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True
        )
        return done.returncode, done.stdout + done.stderr

    parts = "s3://logs/cli/by-spark"
    code, told = program("compact", clicks, "-o", parts, "--parts", 2, *spark)
    assert code == 0, told
    assert unskew.load(parts).equals(unskew.read_log(clicks))
    assert len(s3.names("cli/by-spark")) == 1 + 2 * 5
    code, told = program("train", parts, "-o", tmp_path / "spark", "--workers", 2, *spark, *TRAIN)
    assert code == 0, told
    assert "with the engine spark" in told
    assert run("train", parts, "-o", tmp_path / "here", "--workers", 1, *TRAIN) == 0
    assert _model(tmp_path / "spark") == _model(tmp_path / "here")


def test_what_goes_wrong_is_told(
    s3: S3Server, clicks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is in the way, no such bucket, and a writer that was ended: the URI and a remedy."""

    def refused(*arguments: Any) -> str:
        assert run(*arguments) == 1
        return _told(capsys)

    compact = ("compact", clicks, "--parts", 2, "-q", "-o")
    s3.write("cli/foreign/theirs.txt", b"of somebody else")
    told = refused(*compact, "s3://logs/cli/foreign")
    assert "s3://logs/cli/foreign exists and was not saved by Unskew" in told
    assert "give a new path" in told
    assert s3.names("cli/foreign") == ["theirs.txt"]
    for command in ((*compact,), ("train", clicks, *TRAIN, "-o")):
        told = refused(*command, "s3://nowhere/x")
        assert "s3://nowhere/x" in told
        assert "AWS_ACCESS_KEY_ID" in told
    s3.write("cli/half/.unskew-0123abcd", b"")
    pq.write_table(
        pq.read_table(clicks), "logs/cli/half/part-00000-0123abcd/pages.parquet",
        filesystem=s3.files,
    )  # fmt: skip
    train = ("train", "-o", tmp_path / "x")
    for command in (("inspect",), train, (*train, "--workers", 2)):
        told = refused(*command, "s3://logs/cli/half")
        assert "s3://logs/cli/half is not complete: it has no unskew.json" in told
    told = refused("inspect", "s3://logs/cli/nothing-here")
    assert "s3://logs/cli/nothing-here: there is no such file or folder" in told
    secret = s3.uri("cli/foreign")
    told = refused(*compact, secret)
    assert "s3://…@logs/cli/foreign" in told
    assert "key:secret" not in told
