"""Places: paths and URIs, and what messages show of them."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from s3_server import S3Server
from unskew.errors import StoreError, UsageError
from unskew.places import (
    RemotePath,
    absolute,
    is_saved,
    local_path,
    place_of,
    telling,
    without_secrets,
    without_secrets_in,
)


def test_a_path_stays_a_path(tmp_path: Path) -> None:
    """Paths of this machine, and file URIs, are paths; a URI that went through pathlib is a URI."""
    assert place_of("a/b") == Path("a/b")
    assert place_of(f"file://{tmp_path}/a%20b") == tmp_path / "a b"
    assert place_of(Path("s3://bucket/x")) == RemotePath("s3://bucket/x")
    assert absolute(Path("a")) == Path.cwd() / "a"
    assert not is_saved("iceberg://catalog/namespace.table")


def test_names_within_a_uri(s3: S3Server) -> None:
    """What lies in a folder behind a URI has a URI of its own, and goes to other processes."""
    folder = place_of(s3.uri("a/b/"))
    assert isinstance(folder, RemotePath)
    assert (folder / "c").uri == s3.uri("a/b/c")
    assert (folder / "c").name == "c"
    assert (folder / "c").parent == folder
    again = pickle.loads(pickle.dumps(folder / "c"))  # noqa: S301
    again.write_bytes(b"content")
    assert again == folder / "c"
    assert (folder / "c").read_bytes() == b"content"
    assert list(folder.listing()) == ["c"]
    folder.remove()
    folder.remove()
    assert not folder.exists()
    with pytest.raises(StoreError, match=r"s3://bucket: give a folder within it"):
        _ = RemotePath("s3://bucket").parent


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("s3://key:secret@bucket/x?region=eu", "s3://…@bucket/x?region=eu"),
        ("s3://key:sec/ret@bucket/x", "s3://…@bucket/x"),
        ("s3://bucket/a@b", "s3://bucket/a@b"),
        ("abfss://container@account.dfs.core.windows.net/x",) * 2,
        ("abfss://c:password@account.dfs.core.windows.net/x", "abfss://…@account.dfs.core.windows.net/x"),
        ("abfs://c/x?client_secret=abc&tls=1", "abfs://c/x?client_secret=…&tls=1"),
        ("folder/key:secret@x",) * 2,
    ],
)  # fmt: skip
def test_secrets_do_not_show(uri: str, shown: str) -> None:
    """Of a URI with credentials, only the place shows."""
    assert without_secrets(uri) == shown
    assert without_secrets_in(f'at "{uri}", twice: {uri}') == f'at "{shown}", twice: {shown}'
    if uri.partition(":")[0] in {"s3", "abfs", "abfss"}:
        assert str(RemotePath(uri)) == shown
        assert "secret@" not in repr(RemotePath(uri))


def test_libraries_may_quote_a_uri() -> None:
    """A message of Arrow that repeats the URI shows no more of it than ours do."""
    with pytest.raises(StoreError, match=r"^s3://…@bucket/x: cannot be opened .*'s3://…@bucket/x'"):
        RemotePath("s3://key:sec ret@bucket/x").exists()
    with pytest.raises(StoreError) as raised, telling("s3://a:pass%2Fword@b", "read", StoreError):
        raise OSError("pass/word and a:pass%2Fword are wrong")
    assert "pass" not in str(raised.value)


def test_what_must_lie_here_is_refused_elsewhere() -> None:
    """An output that only this machine can hold names the option and hides the credentials."""
    with pytest.raises(UsageError, match=r"--out must lie on this machine.* got s3://…@bucket/x"):
        local_path(Path("s3://key:secret@bucket/x"), "--out")
