"""A real server of Google Cloud Storage's protocol on the loopback address: what tests know of it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow.fs as pafs
import pytest

from storage_server import StorageServer, free_port, server_process


@dataclass(frozen=True)
class GcsServer(StorageServer):
    """The server, a file system there, and its bucket ``logs``."""

    def uri(self, path: str, bucket: str = "logs") -> str:
        """The URI of a path, with the address of the server in it."""
        options = f"?endpoint_override=127.0.0.1%3A{self.port}&scheme=http&retry_limit_seconds=5"
        return f"gs://anonymous@{bucket}/{path}{options}"


@contextmanager
def gcs_server() -> Iterator[GcsServer]:
    """The emulator as a process, with an empty bucket; the test skips where it is not installed."""
    if importlib.util.find_spec("gcp_storage_emulator") is None:
        pytest.skip("Google Cloud Storage needs gcp-storage-emulator to test")
    if not hasattr(pafs, "GcsFileSystem"):
        pytest.skip("this Arrow was built without Google Cloud Storage")
    port = free_port()
    # A process of its own: Arrow asks for the size of a file while it holds the lock of Python.
    command = [sys.executable, "-m", "gcp_storage_emulator", "start", "--host=127.0.0.1"]
    with server_process([*command, f"--port={port}", "--in-memory", "--default-bucket=logs"], port):
        files, _ = pafs.FileSystem.from_uri(GcsServer(port, None).uri(""))
        yield GcsServer(port, files)
