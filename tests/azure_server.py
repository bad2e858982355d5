"""A real server of Azure's protocol on the loopback address: what tests know of it."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pyarrow.fs as pafs
import pytest

from storage_server import StorageServer, free_port, server_process

# The account that the emulator has: both are public.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@dataclass(frozen=True)
class AzureServer(StorageServer):
    """The server, a file system there, and its container ``logs``."""

    def uri(self, path: str, bucket: str = "logs", user: str | None = None) -> str:
        """The URI of a path, with the account, its key and the address of the server in it."""
        user = f"{ACCOUNT}:{quote(KEY, safe='')}@" if user is None else user
        return f"abfs://{user}127.0.0.1:{self.port}/{bucket}/{path}?enable_tls=false"


@contextmanager
def azure_server() -> Iterator[AzureServer]:
    """Azurite as a process, with an empty container; the test skips where it is not installed."""
    program = shutil.which("azurite-blob")
    if program is None:
        pytest.skip("Azure needs Azurite to test: npm install --global azurite")
    if not hasattr(pafs, "AzureFileSystem"):
        pytest.skip("this Arrow was built without Azure")
    port, behind = free_port(), free_port()
    options = ["--silent", "--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry"]
    relay = [sys.executable, str(Path(__file__).with_name("whole_answers.py"))]
    with (
        server_process([program, "--blobPort", str(behind), *options], behind),
        server_process([*relay, str(port), str(behind)], port),
    ):
        address = f"127.0.0.1:{port}"
        files = pafs.AzureFileSystem(
            ACCOUNT, account_key=KEY, blob_storage_authority=address, blob_storage_scheme="http",
            dfs_storage_authority=address, dfs_storage_scheme="http",
        )  # fmt: skip
        files.create_dir("logs")
        yield AzureServer(port, files)
