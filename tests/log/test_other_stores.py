"""Logs and saved folders in Google Cloud Storage and in Azure, on servers that speak their protocols."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import unskew
from azure_server import ACCOUNT, KEY, AzureServer, azure_server
from gcs_server import gcs_server
from unskew.azure import ACCOUNT as ACCOUNT_NAMES
from unskew.azure import AzurePlace, open_azure
from unskew.errors import DataError, StoreError, UsageError
from unskew.log.merging import take_queries
from unskew.log.parts import parts_writer


@pytest.fixture(scope="module", params=["gcs", "azure"])
def store(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A server with an empty bucket, of each kind in turn."""
    with {"gcs": gcs_server, "azure": azure_server}[request.param]() as server:
        yield server


@pytest.fixture(scope="module")
def azure() -> Iterator[AzureServer]:
    """Azure's server with an empty container."""
    with azure_server() as server:
        yield server


@pytest.fixture(scope="module")
def clicks() -> pa.Table:
    """Sixty sessions of nine queries."""
    numbers = np.arange(240)
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "session": numbers // 4, "query": [f"q{k // 4 % 9}" for k in numbers],
            "doc": numbers % 4, "position": numbers % 4 + 1,
            "click": (rng.random(240) < 0.4).astype(np.int64),
            "x": numbers // 4 % 9 * 10 + numbers % 4 + 0.5,
        }
    )  # fmt: skip


def test_a_log_is_read(store: Any, clicks: pa.Table) -> None:
    """A folder of Parquet in a bucket gives the Impressions of the same table here."""
    for k in range(2):
        pq.write_table(
            clicks.slice(120 * k, 120), f"logs/clicks/{k}.parquet", filesystem=store.files
        )
    assert unskew.read_log(store.uri("clicks")).equals(unskew.read_log(clicks))
    with pytest.raises(DataError, match=r"logs/elsewhere\?.*there is no such file or folder"):
        unskew.read_log(store.uri("elsewhere"))


def test_parts_are_written_and_read(store: Any, clicks: pa.Table, tmp_path: Path) -> None:
    """Parts and models in a bucket are those of a folder, are replaced whole, and leave nothing."""
    data = unskew.read_log(clicks)
    parts = unskew.compact(clicks, store.uri("parts"), parts=3)
    unskew.compact(clicks, tmp_path / "parts", parts=3)
    here = unskew.Parts.open(tmp_path / "parts")
    assert all(parts[k].equals(here[k]) for k in range(3))
    assert unskew.load(store.uri("parts")).equals(data)
    few = take_queries(data, np.arange(3))
    few.save(store.uri("parts"), parts=1)
    assert unskew.load(store.uri("parts")).equals(few)
    assert len(store.names("parts")) == 1 + 5
    ranker = unskew.UnbiasedLambdaMART(n_estimators=2, verbose=0, min_sum_hessian_in_leaf=0.01)
    ranker.fit(data).save(store.uri("model"))
    assert np.array_equal(unskew.load(store.uri("model")).predict(data), ranker.predict(data))


def test_what_fails_leaves_nothing(store: Any, clicks: pa.Table) -> None:
    """An interrupted writer, a bucket that is not there and a foreign folder: errors with the URI."""
    data = unskew.read_log(clicks)

    def interrupted() -> None:
        with parts_writer(store.uri("never")) as writer:
            writer.add(data)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert store.names("never") == []
    store.write("foreign/x.txt", b"of somebody else")
    with pytest.raises(StoreError, match=r"logs/foreign\?.* exists and was not saved by Unskew"):
        data.save(store.uri("foreign"), parts=1)
    nowhere = store.uri("x", bucket="nowhere")
    with pytest.raises(
        StoreError, match=r"[@/]nowhere/x/.*that there is such a (bucket|container)"
    ):
        data.save(nowhere, parts=1)
    with pytest.raises(StoreError, match=r"nowhere/x\?.* is not there"):
        unskew.load(nowhere)


# Azure ------------------------------------------------------------------------------------------


def _account_token() -> str:
    """A shared access signature that may do everything with blobs until 2100."""
    values = {
        "sv": "2021-08-06",
        "ss": "b",
        "srt": "sco",
        "sp": "rwdlac",
        "se": "2100-01-01T00:00:00Z",
    }
    signed = [ACCOUNT, values["sp"], values["ss"], values["srt"], "", values["se"], "", "",
              values["sv"], "", ""]  # fmt: skip
    digest = hmac.new(base64.b64decode(KEY), "\n".join(signed).encode(), "sha256").digest()
    return urlencode({**values, "sig": base64.b64encode(digest).decode()})


@pytest.mark.parametrize("name", ["AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN"])
def test_azure_takes_what_the_environment_says(
    azure: AzureServer, clicks: pa.Table, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Account, and key or token, are those of Azure's variables; a wrong one is told."""
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT", ACCOUNT)
    monkeypatch.setenv(name, KEY if name == "AZURE_STORAGE_KEY" else _account_token())
    plain = azure.uri(name.lower(), user="")
    data = unskew.read_log(clicks)
    data.save(plain)
    assert unskew.load(plain).equals(data)
    monkeypatch.setenv(name, base64.b64encode(b"wrong").decode())
    with pytest.raises(
        StoreError, match=r"AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN or"
    ) as raised:
        unskew.load(plain)
    assert KEY not in str(raised.value)


@pytest.mark.parametrize(
    ("uri", "account", "path", "server"),
    [
        ("abfss://logs@acc.dfs.core.windows.net/a/b", "acc", "logs/a/b", None),
        ("abfs://acc.blob.core.windows.net/logs/a/", "acc", "logs/a", None),
        ("abfss://logs/a", "", "logs/a", None),
        ("abfss://acc:k%2Fy@logs/a", "acc", "logs/a", None),
        ("abfs://acc@127.0.0.1:10000/logs/a", "acc", "logs/a", "127.0.0.1:10000"),
        ("abfs://acc@store.example/logs", "acc", "logs", "store.example"),
    ],
)
def test_what_a_uri_of_azure_names(uri: str, account: str, path: str, server: str | None) -> None:
    """Account, path and server are found in every form, as Arrow finds them."""
    place = AzurePlace.of(uri)
    assert (place.account, place.path, place.server) == (account, path, server)
    assert place.password == ("k/y" if "k%2Fy" in uri else "")


def test_azure_without_an_account(monkeypatch: pytest.MonkeyPatch) -> None:
    """A URI without an account takes that of the environment; without both, an error names it."""
    for name in (*ACCOUNT_NAMES, "AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(
        DataError, match=r"abfss://logs/a: cannot be opened .*AZURE_STORAGE_ACCOUNT"
    ):
        unskew.read_log("abfss://logs/a")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT", "acc")
    _, path = open_azure("abfss://logs/a?credential_kind=anonymous")
    assert path == "logs/a"


def test_an_arrow_that_takes_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Arrow was built without Azure, or takes no token, the error says so."""
    monkeypatch.delattr("pyarrow.fs.AzureFileSystem", raising=False)
    monkeypatch.setenv("AZURE_STORAGE_KEY", KEY)
    with pytest.raises(UsageError, match="this version of Arrow cannot open Azure"):
        open_azure("abfss://acc@logs/a")
