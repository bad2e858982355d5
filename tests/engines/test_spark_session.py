"""The session that Spark is asked for: masters that answer, and those that do not."""

from __future__ import annotations

import shutil
import socket
import time
from pathlib import Path

import pytest

from unskew.cli import main
from unskew.engines.spark_session import spark_session
from unskew.errors import EngineError

pytest.importorskip("pyspark", reason="the tests of Spark need the extra spark")
if shutil.which("java") is None:
    pytest.skip("the tests of Spark need Java 17 or newer on the PATH", allow_module_level=True)


@pytest.mark.parametrize("places", ["127.0.0.1:9", "127.0.0.1:9,[::1]:9", "127.0.0.1", ""])
def test_nobody_answers(places: str) -> None:
    """A standalone cluster that cannot be reached is an error that names it, at once."""
    began = time.monotonic()
    with pytest.raises(EngineError, match=r"no Spark master answers at spark://.*: check host and"):
        spark_session(None, f"spark://{places}")
    assert time.monotonic() - began < 30


def test_one_of_two_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark is asked if any master of the cluster takes a connection."""
    from pyspark.sql import SparkSession

    class Builder:
        def appName(self, name: str) -> Builder:  # noqa: N802
            return self

        def master(self, place: str) -> Builder:
            self.place = place
            return self

        def getOrCreate(self) -> str:  # noqa: N802
            return self.place

    monkeypatch.setattr(SparkSession, "builder", Builder())
    with socket.create_server(("127.0.0.1", 0)) as server:
        master = f"spark://127.0.0.1:9,127.0.0.1:{server.getsockname()[1]}"
        assert spark_session(None, master) == master
    assert spark_session(None, "yarn") == "yarn"


def test_the_command_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`unskew compact` ends with the message and without a folder."""
    out = tmp_path / "parts"
    given = ["compact", "--engine", "spark", "--master", "spark://127.0.0.1:9", "logs.clicks"]
    with pytest.raises(SystemExit, match="1"):
        main([*given, "-o", str(out)])
    assert "no Spark master answers at spark://127.0.0.1:9" in capsys.readouterr().err
    assert not out.exists()
