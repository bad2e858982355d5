"""Azure: the storage account that a URI and the environment name, and its file system.

Arrow opens Azure's URIs with whatever its library finds for a person or a machine that has signed in.
The keys and tokens of a storage account, which many clusters have instead, it takes only from a program:
here they come from the variables that Azure's own command line reads.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit, urlunsplit

from unskew.errors import UsageError

ACCOUNT = ("AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_ACCOUNT_NAME")
KEY = ("AZURE_STORAGE_KEY", "AZURE_STORAGE_ACCOUNT_KEY")
TOKEN = ("AZURE_STORAGE_SAS_TOKEN",)

_BLOB, _DFS = ".blob.core.windows.net", ".dfs.core.windows.net"


@dataclass(frozen=True)
class AzurePlace:
    """What a URI says: the account, if it names one, the server, if it is not Azure's, and the path."""

    account: str
    password: str
    path: str
    server: str | None
    options: dict[str, str]

    @classmethod
    def of(cls, uri: str) -> AzurePlace:
        """The parts of a URI in any of the forms that Arrow knows."""
        parts = urlsplit(uri)
        user, host = unquote(parts.username or ""), parts.hostname or ""
        password, below = unquote(parts.password or ""), unquote(parts.path)
        server = None
        if host.endswith(_BLOB):
            account, path = host.removesuffix(_BLOB), below
        elif host.endswith(_DFS):
            account, path = host.removesuffix(_DFS), f"{user}{below}"
        elif "." in host or parts.port is not None:
            account, path, server = user, below, parts.netloc.rpartition("@")[2]
        else:
            account, path = user, f"{host}{below}"
        options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        return cls(account, password, path.strip("/"), server, options)


def is_azure(uri: str) -> bool:
    """Whether a URI names a place in Azure."""
    return uri.lower().startswith(("abfs://", "abfss://"))


def open_azure(uri: str) -> tuple[Any, str]:
    """The file system behind a URI of Azure, and the path in it."""
    import pyarrow.fs as pafs

    place = AzurePlace.of(uri)
    account = place.account or _environment(*ACCOUNT)
    key, token = place.password or _environment(*KEY), _environment(*TOKEN)
    if not account or "credential_kind" in place.options or not (key or token):
        return pafs.FileSystem.from_uri(_with_account(uri, place, account))  # type: ignore[no-any-return]
    # Arrow puts the token behind the address as it is.
    settings = {"account_key": key} if key else {"sas_token": f"?{token.removeprefix('?')}"}
    if place.server is not None:
        scheme = "http" if place.options.get("enable_tls") == "false" else "https"
        for service in ("blob", "dfs"):
            settings[f"{service}_storage_authority"] = place.server
            settings[f"{service}_storage_scheme"] = scheme
    try:
        return pafs.AzureFileSystem(account, **settings), place.path
    except (AttributeError, TypeError):
        raise UsageError(
            "this version of Arrow cannot open Azure with a key or token of the account; "
            "pip install --upgrade pyarrow"
        ) from None


def _environment(*names: str) -> str:
    return next((os.environ[name] for name in names if os.environ.get(name)), "")


def _with_account(uri: str, place: AzurePlace, account: str) -> str:
    """The URI with the account of the environment, where it names none."""
    if place.account or not account:
        return uri
    parts = urlsplit(uri)
    return urlunsplit(parts._replace(netloc=f"{account}@{parts.netloc}"))
