"""A real server of Google Cloud Storage's protocol on the loopback address: what tests know of it."""

from __future__ import annotations

import importlib.util
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow.fs as pafs
import pytest


@dataclass(frozen=True)
class GcsServer:
    """The server, a file system there, and its bucket ``logs``."""

    port: int
    files: Any

    def uri(self, path: str, bucket: str = "logs") -> str:
        """The URI of a path, with the address of the server in it."""
        options = f"?endpoint_override=127.0.0.1%3A{self.port}&scheme=http&retry_limit_seconds=5"
        return f"gs://anonymous@{bucket}/{path}{options}"

    def names(self, path: str) -> list[str]:
        """The objects below a path of the bucket."""
        found = self.files.get_file_info(
            pafs.FileSelector(f"logs/{path}", recursive=True, allow_not_found=True)
        )
        return sorted(one.path.removeprefix(f"logs/{path}/") for one in found if one.is_file)

    def write(self, path: str, content: bytes) -> None:
        """Put an object into the bucket."""
        with self.files.open_output_stream(f"logs/{path}") as stream:
            stream.write(content)


@contextmanager
def gcs_server() -> Iterator[GcsServer]:
    """The emulator as a process, with an empty bucket; the test skips where it is not installed."""
    if importlib.util.find_spec("gcp_storage_emulator") is None:
        pytest.skip("Google Cloud Storage needs gcp-storage-emulator to test")
    if not hasattr(pafs, "GcsFileSystem"):
        pytest.skip("this Arrow was built without Google Cloud Storage")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    # A process of its own: Arrow asks for the size of a file while it holds the lock of Python.
    command = [sys.executable, "-m", "gcp_storage_emulator", "start", "--host=127.0.0.1"]
    options = [f"--port={port}", "--in-memory", "--default-bucket=logs"]
    silent = subprocess.DEVNULL
    process = subprocess.Popen([*command, *options], stdout=silent, stderr=silent)
    try:
        _wait(process, port)
        files, _ = pafs.FileSystem.from_uri(GcsServer(port, None).uri(""))
        yield GcsServer(port, files)
    finally:
        process.kill()
        process.wait()


def _wait(process: subprocess.Popen[bytes], port: int) -> None:
    """Until the server answers."""
    for _ in range(600):
        if process.poll() is not None:
            pytest.fail(f"gcp-storage-emulator ended with {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    pytest.fail("gcp-storage-emulator does not answer")
