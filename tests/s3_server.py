"""A real S3 server on the loopback address: what tests know of it."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow.fs as pafs
import pytest

from storage_server import StorageServer, free_port


@dataclass(frozen=True)
class S3Server(StorageServer):
    """The server, a file system that may do everything there, and its bucket ``logs``."""

    def uri(self, path: str, user: str = "key:secret", port: int | None = None) -> str:
        """The URI of a path in the bucket, with credentials and the address of the server in it."""
        address = f"127.0.0.1%3A{port or self.port}"
        options = f"?endpoint_override={address}&scheme=http&region=us-east-1"
        return f"s3://{user}@logs/{path}{options}"

    def in_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Credentials and address as the libraries look for them, so that plain URIs work."""
        for name, value in {
            "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ALLOW_HTTP": "true", "AWS_EC2_METADATA_DISABLED": "true",
        }.items():  # fmt: skip
            monkeypatch.setenv(name, value)

    @contextmanager
    def checking_credentials(self) -> Iterator[None]:
        """Meanwhile the server refuses users that it does not know: all of them."""
        self._check_after(b"0")
        try:
            yield
        finally:
            self._check_after(b"inf")

    def _check_after(self, requests: bytes) -> None:
        address = f"http://127.0.0.1:{self.port}/moto-api/reset-auth"
        kind = {"Content-Type": "text/plain"}
        request = urllib.request.Request(address, requests, kind, method="POST")
        urllib.request.urlopen(request).close()  # noqa: S310


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """Moto's server in a thread, with an empty bucket; the test skips without moto."""
    module = pytest.importorskip("moto.server", reason="object storage needs moto to test")
    port = free_port()
    server = module.ThreadedMotoServer("127.0.0.1", port, verbose=False)
    server.start()
    files = pafs.S3FileSystem(
        access_key="key", secret_key="secret", endpoint_override=f"127.0.0.1:{port}",  # noqa: S106
        scheme="http", region="us-east-1", allow_bucket_creation=True,
    )  # fmt: skip
    files.create_dir("logs")
    yield S3Server(port, files)
    server.stop()
