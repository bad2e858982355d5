"""What the servers of object storage on the loopback address share."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow.fs as pafs
import pytest


@dataclass(frozen=True)
class StorageServer:
    """A server, a file system that may do everything there, and its bucket ``logs``."""

    port: int
    files: Any

    def names(self, path: str) -> list[str]:
        """The objects below a path of the bucket, without the marks of empty folders."""
        found = self.files.get_file_info(
            pafs.FileSelector(f"logs/{path}", recursive=True, allow_not_found=True)
        )
        return sorted(one.path.removeprefix(f"logs/{path}/") for one in found if one.is_file)

    def write(self, path: str, content: bytes) -> None:
        """Put an object into the bucket."""
        with self.files.open_output_stream(f"logs/{path}") as stream:
            stream.write(content)

    def read(self, path: str) -> bytes:
        """What an object of the bucket holds."""
        with self.files.open_input_stream(f"logs/{path}") as stream:
            return bytes(stream.read())


def free_port() -> int:
    """A port of the loopback address that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@contextmanager
def server_process(command: Sequence[str], port: int) -> Iterator[None]:
    """A server as a process of its own, from when it answers until the end."""
    silent = subprocess.DEVNULL
    process = subprocess.Popen(command, stdout=silent, stderr=silent)
    try:
        _wait(process, port, command[0])
        yield
    finally:
        process.kill()
        process.wait()


def _wait(process: subprocess.Popen[bytes], port: int, name: str) -> None:
    for _ in range(1200):
        if process.poll() is not None:
            pytest.fail(f"{name} ended with {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    pytest.fail(f"{name} does not answer")
