"""Places of saved folders: of this machine, or behind a URI that Arrow's file systems open.

A place of this machine is a `pathlib.Path`. One behind a URI is a `RemotePath`, which has the methods of
a path that reading a saved folder needs, and a few by which one is written. Credentials come from the
environment or stand in the URI; no message shows them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from unskew.azure import is_azure, open_azure
from unskew.errors import DataError, StoreError, UnskewError, UsageError

# The file that says what a saved folder holds.
MANIFEST = "unskew.json"

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_IN_TEXT = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://[^\s\"']+")
# What pathlib makes of a URI.
_FLATTENED = re.compile(r"\A(abfss?|file|gc?s|hdfs|s3|viewfs):/(?!/)", re.IGNORECASE)
_SECRET_OPTION = re.compile(
    r"([?&][^=&]*(?:secret|token|key|sig|pass|cred)[^=&]*=)([^&]*)", re.IGNORECASE
)
_SECRET_USER = re.compile(r"://([^?]*:[^?]*|[^/@?]*)@")
_HINTS = {
    "s3": "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION, or endpoint_override=HOST in the "
    "URI for another server",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "gcs": "GOOGLE_APPLICATION_CREDENTIALS",
    "hdfs": "HADOOP_HOME, JAVA_HOME and CLASSPATH of a Hadoop client",
    **dict.fromkeys(
        ("abfs", "abfss"),
        "AZURE_STORAGE_ACCOUNT, and AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN or a credential that "
        "Azure's library finds",
    ),
}


# URIs -------------------------------------------------------------------------------------------


def is_uri(path: str) -> bool:
    """Whether this is a URI and no path of this machine."""
    return _URI.match(path) is not None


def without_secrets(uri: str) -> str:
    """A path or URI as messages show it: without the user, the password and secret options."""
    if not is_uri(uri):
        return uri
    shown = _SECRET_OPTION.sub(r"\1…", uri)
    if is_azure(uri) and ":" not in _user(uri):
        return shown  # before the @ stands the container
    return _SECRET_USER.sub("://…@", shown, count=1)


def _user(uri: str) -> str:
    """What stands before the @."""
    found = _SECRET_USER.search(uri)
    return "" if found is None else found[1]


def scrubbed(text: str, uri: str) -> str:
    """A message of a library without the secrets of the URI that it is about."""
    user = _user(uri)
    secrets = [uri, user if ":" in user else "", user.partition(":")[2]]
    secrets += [value for _, value in _SECRET_OPTION.findall(uri)]
    for secret in (one for raw in secrets for one in (raw, unquote(raw)) if one):
        text = text.replace(secret, without_secrets(uri) if secret == uri else "…")
    return text


def without_secrets_in(text: str) -> str:
    """A text in which every URI stands as messages show it."""
    return _IN_TEXT.sub(lambda found: without_secrets(found[0]), text)


def open_file_system(uri: str) -> tuple[Any, str]:
    """The file system of Arrow behind a URI, and the path in it."""
    import pyarrow.fs as pafs

    return open_azure(uri) if is_azure(uri) else pafs.FileSystem.from_uri(uri)


@contextmanager
def telling(
    uri: str, what: str = "opened", error_type: type[DataError] = DataError
) -> Iterator[None]:
    """Errors of a file system as a `DataError` that names the URI and the setting."""
    import pyarrow as pa

    try:
        yield
    except UnskewError:
        raise
    except (OSError, pa.ArrowException, ValueError) as error:
        hint = _HINTS.get(uri.partition("://")[0].lower())
        more = f" Credentials and addresses come from the environment: {hint}." if hint else ""
        told = str(error).lower()
        place = "container" if is_azure(uri) else "bucket"
        if what == "written" and (isinstance(error, FileNotFoundError) or place in told):
            more = f" Check that there is such a {place}, as none is made.{more}"
        if "unrecognized" in told:
            more = " Arrow knows file, s3, gs, hdfs, abfs and abfss; others are not supported."
        reason = scrubbed((str(error).strip().splitlines() or [type(error).__name__])[0][:300], uri)
        raise error_type(f"{without_secrets(uri)}: cannot be {what} ({reason}).{more}") from None


# Places -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Listed:
    """What a listing says of a file; a folder has neither."""

    size: int | None
    changed: datetime | None


class RemotePath:
    """A file or folder behind a URI.

    The file system is opened when it is first used, once for a folder and what lies in it.
    """

    def __init__(self, uri: str) -> None:
        address, mark, options = uri.partition("?")
        scheme, slashes, rest = address.partition("://")
        self._address, self._options = f"{scheme}{slashes}{rest.strip('/')}", mark + options

    @property
    def uri(self) -> str:
        """The URI with whatever secrets it has."""
        return self._address + self._options

    @cached_property
    def _opened(self) -> tuple[Any, str]:
        """The file system, and the path in it."""
        with telling(self.uri, error_type=StoreError):
            files, path = open_file_system(self.uri)
            return files, path.rstrip("/")

    def __truediv__(self, name: str) -> RemotePath:
        below = RemotePath(f"{self._address}/{name}{self._options}")
        files, path = self._opened
        below.__dict__["_opened"] = files, f"{path}/{name}"
        return below

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self._address.rpartition("/")[2]

    @property
    def parent(self) -> RemotePath:
        """The folder that this lies in."""
        above = self._address.rpartition("/")[0]
        if above.endswith("/"):
            raise StoreError(f"{self}: give a folder within it")
        return RemotePath(above + self._options)

    def absolute(self) -> RemotePath:
        """The URI itself, as it names the same place for everyone."""
        return self

    resolve = absolute

    # Looking and reading --------------------------------------------------------------------------

    def _kind(self) -> str:
        files, path = self._opened
        with telling(self.uri, error_type=StoreError):
            return str(files.get_file_info(path).type.name)

    def exists(self) -> bool:
        """Whether there is a file or folder."""
        return self._kind() != "NotFound"

    def is_file(self) -> bool:
        """Whether there is a file."""
        return self._kind() == "File"

    def is_dir(self) -> bool:
        """Whether there is a folder: in object storage, anything whose name begins like this."""
        return self._kind() == "Directory"

    def listing(self, *, folders: bool = True) -> Mapping[str, Listed]:
        """What lies in the folder, by name; without ``folders`` only the files in it are certain.

        In some stores folders show by what lies in them alone, so that they take a listing of that.
        """
        import pyarrow.fs as pafs

        files, path = self._opened
        with telling(self.uri, error_type=StoreError):
            wanted = pafs.FileSelector(path, allow_not_found=True, recursive=folders)
            everything = files.get_file_info(wanted)
        found: dict[str, Listed] = {}
        for one in everything:
            name, inside, _ = one.path[len(path) :].strip("/").partition("/")
            is_file = one.type.name == "File" and not inside
            found.setdefault(name, Listed(one.size, one.mtime) if is_file else Listed(None, None))
        return found

    def read_bytes(self) -> bytes:
        """The content; a FileNotFoundError if there is none."""
        files, path = self._opened
        with (
            telling(self.uri, "read", StoreError),
            suppress(FileNotFoundError),
            files.open_input_stream(path) as stream,
        ):
            return bytes(stream.read())
        raise FileNotFoundError(str(self))

    def fetch(self, copy: Path) -> None:
        """Copy the file to a place of this machine."""
        import pyarrow.fs as pafs

        files, path = self._opened
        with telling(self.uri, "read", StoreError):
            pafs.copy_files(
                path, str(copy), source_filesystem=files,
                destination_filesystem=pafs.LocalFileSystem(),
            )  # fmt: skip

    # Writing --------------------------------------------------------------------------------------

    def write_bytes(self, content: bytes) -> None:
        """Write the file; nobody sees half of it."""
        files, path = self._opened
        with telling(self.uri, "written", StoreError), files.open_output_stream(path) as stream:
            stream.write(content)

    def upload(self, file: Path) -> None:
        """Write what a file of this machine holds."""
        import pyarrow.fs as pafs

        files, path = self._opened
        with telling(self.uri, "written", StoreError):
            pafs.copy_files(
                str(file), path, source_filesystem=pafs.LocalFileSystem(),
                destination_filesystem=files,
            )  # fmt: skip

    def remove(self) -> None:
        """Remove the file, or the folder with all that lies in it, if it is there."""
        files, path = self._opened
        with telling(self.uri, "removed", StoreError), suppress(FileNotFoundError):
            if self.is_dir():
                files.delete_dir(path)
            else:
                files.delete_file(path)

    # What Python asks for -------------------------------------------------------------------------

    def __str__(self) -> str:
        return without_secrets(self.uri)

    def __repr__(self) -> str:
        return f"RemotePath({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemotePath) and self.uri == other.uri

    def __hash__(self) -> int:
        return hash(self.uri)

    def __reduce__(self) -> tuple[type[RemotePath], tuple[str]]:
        return RemotePath, (self.uri,)  # each process opens the file system itself


Place: TypeAlias = Path | RemotePath
PlaceLike: TypeAlias = str | os.PathLike[str] | RemotePath


def place_of(path: PlaceLike) -> Place:
    """The place that a path or a URI names, also one that went through pathlib."""
    if isinstance(path, RemotePath):
        return path
    text = _FLATTENED.sub(r"\1://", os.fspath(path), count=1)
    if not is_uri(text):
        return Path(path)
    if text.lower().startswith("file://"):
        return Path(url2pathname(urlsplit(text).path))
    return RemotePath(text)


def absolute(place: Place) -> Place:
    """The place as processes with another working folder find it."""
    return place if isinstance(place, RemotePath) else Path(os.path.abspath(place))  # noqa: PTH100


def local_path(path: PlaceLike, what: str) -> Path:
    """A path of this machine; a URI is refused, as nobody writes ``what`` there."""
    place = place_of(path)
    if isinstance(place, RemotePath):
        raise UsageError(f"{what} must lie on this machine, not behind a URI: got {place}")
    return place


def is_saved(path: PlaceLike) -> bool:
    """Whether Unskew saved a folder there."""
    if isinstance(path, str) and path.lower().startswith("iceberg://"):
        return False
    return (place_of(path) / MANIFEST).is_file()
