"""A real S3 server on the loopback address: what tests know of it."""

from __future__ import annotations

import socket
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow.fs as pafs
import pytest


@dataclass(frozen=True)
class S3Server:
    """The server, a file system that may do everything there, and its bucket ``logs``."""

    port: int
    files: Any

    def uri(self, path: str, user: str = "key:secret", port: int | None = None) -> str:
        """The URI of a path in the bucket, with credentials and the address of the server in it."""
        address = f"127.0.0.1%3A{port or self.port}"
        options = f"?endpoint_override={address}&scheme=http&region=us-east-1"
        return f"s3://{user}@logs/{path}{options}"

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
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = module.ThreadedMotoServer("127.0.0.1", port, verbose=False)
    server.start()
    files = pafs.S3FileSystem(
        access_key="key", secret_key="secret", endpoint_override=f"127.0.0.1:{port}",  # noqa: S106
        scheme="http", region="us-east-1", allow_bucket_creation=True,
    )  # fmt: skip
    files.create_dir("logs")
    yield S3Server(port, files)
    server.stop()
