"""The Spark session that an engine or a compaction uses."""

from __future__ import annotations

import os
import re
import shutil
import socket
import sys
from contextlib import suppress
from typing import Any

from unskew.errors import DataError, EngineError, MissingDependencyError

# Spark itself tries for a minute to reach a master, and then says that a context was stopped.
_SECONDS_TO_ANSWER = 10.0


def spark_session(session: Any = None, master: str | None = None) -> Any:
    """The given session, the active one, or a new one that runs on ``master``."""
    try:
        from pyspark.sql import SparkSession
    except ModuleNotFoundError as error:
        raise MissingDependencyError("PySpark", "spark", 'engine="spark"') from error
    if session is not None:
        return session
    active = SparkSession.getActiveSession()
    if active is not None and master is None:
        return active
    if shutil.which("java") is None:
        raise EngineError(
            "Spark needs Java 17 or newer, and there is no java on the PATH: install it, or set "
            "JAVA_HOME and PATH"
        )
    if master is not None and master.startswith("spark://"):
        _refuse_silent(master)
    # Workers run the same Python as this program, not whichever is first on the PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("unskew").master(master or "local[*]")
    try:
        return builder.getOrCreate()
    except Exception as error:
        raise EngineError(
            f"no Spark session could be started on {master or 'local[*]'} ({spark_reason(error)}): "
            "check the master and that Java 17 or newer is installed"
        ) from error


def _refuse_silent(master: str) -> None:
    """Refuse a standalone cluster if no master of ``spark://host:port,host:port`` takes a connection."""
    for place in master.removeprefix("spark://").split(","):
        host, _, port = place.rpartition(":")
        with suppress(OSError, ValueError):
            socket.create_connection((host.strip("[]"), int(port)), _SECONDS_TO_ANSWER).close()
            return
    raise EngineError(
        f"no Spark master answers at {master}: check host and port (7077 unless it was set), and that "
        "this machine may reach it"
    )


def read_frame(session: Any, source: str) -> Any:
    """A table of Spark's catalogue by its name, or Parquet files by their path."""
    try:
        if re.fullmatch(r"\w+(\.\w+)*", source) and session.catalog.tableExists(source):
            return session.table(source)
        return session.read.parquet(source)
    except Exception as error:
        raise DataError(
            f"{source} is neither a table of Spark nor a path that it reads as Parquet "
            f"({spark_reason(error)})"
        ) from error


def spark_reason(error: BaseException) -> str:
    """The line of a Spark error that says what went wrong: Python's own, then Java's."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    python = [line for line in lines if re.match(r"[\w.]*(Error|Exception): ", line)]
    java = [line.removeprefix(": ") for line in lines if line.startswith(": ")]
    return (python or java or lines or [type(error).__name__])[0][:300]
