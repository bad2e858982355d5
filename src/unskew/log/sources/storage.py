"""Tables in object storage and lakehouses: Parquet behind a URI, Delta tables, Iceberg tables.

Whatever Arrow's file systems open is a source: ``s3://``, ``gs://``, ``hdfs://``, ``abfss://`` and the
rest, with the credentials that their libraries find in the environment. A folder with a ``_delta_log``
is a Delta table; ``iceberg://catalog/namespace.table`` is a table of a catalogue of PyIceberg.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pyarrow.fs as pafs

from unskew.errors import DataError, MissingDependencyError, UsageError
from unskew.log.sources.kind import Request, SourceKind
from unskew.log.sources.table import SourceTable, dictionaries, first_line, opened
from unskew.places import (
    RemotePath,
    is_uri,
    open_file_system,
    scrubbed,
    telling,
    without_secrets,
)
from unskew.remote_writing import check_finished


def is_delta(path: str) -> bool:
    """Whether a folder of this machine is a Delta table."""
    return not is_uri(path) and (Path(path) / "_delta_log").is_dir()


def open_stored(uri: str, request: Request) -> SourceTable:
    """The table behind a URI or a Delta folder."""
    shown = without_secrets(uri)
    if uri.lower().startswith("iceberg://"):
        return _open_iceberg(_iceberg_table(uri), uri, request)
    if is_delta(uri):
        return _open_delta(_delta_table(uri), shown, request)
    with telling(uri):
        filesystem, path = open_file_system(uri)
        info = filesystem.get_file_info(path)
        log = filesystem.get_file_info(f"{path.rstrip('/')}/_delta_log")
    if log.type == pafs.FileType.Directory:
        return _open_delta(_delta_table(uri), shown, request)
    if info.type == pafs.FileType.NotFound:
        raise DataError(f"{shown}: there is no such file or folder; check the URI")
    if info.type == pafs.FileType.Directory:
        check_finished(RemotePath(uri))
    with telling(uri):
        data = ds.dataset(path, filesystem=filesystem, format=_format(path, filesystem))
        return _opened(data, shown, request)


def _format(path: str, filesystem: pafs.FileSystem) -> str:
    """Parquet, or CSV if the name says so."""
    name = path.lower()
    if name.endswith((".csv", ".csv.gz", ".tsv", ".json", ".jsonl")):
        raise UsageError(
            f"{path}: only Parquet is read from object storage; copy other files to this machine first"
        )
    return "parquet"


def _opened(data: Any, name: str, request: Request) -> SourceTable:
    if not data.schema.names:
        raise DataError(f"{name}: there is not a single column; is it the right folder?")
    request.connection.register("unskew_stored", data)
    return opened(
        request.connection, name, "unskew_stored", categorical=dictionaries(data.schema),
        n_rows=data.count_rows(),
    )  # fmt: skip


# Lakehouses -------------------------------------------------------------------------------------


def _delta_table(uri: str) -> Any:
    shown = without_secrets(uri)
    try:
        from deltalake import DeltaTable
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            "deltalake", "delta", f"{shown} is a Delta table and"
        ) from error
    try:
        return DeltaTable(uri)
    except Exception as error:
        reason = scrubbed(first_line(error), uri)
        raise DataError(f"{shown}: this Delta table cannot be opened ({reason})") from None


def _open_delta(table: Any, name: str, request: Request) -> SourceTable:
    try:
        data = table.to_pyarrow_dataset()
    except Exception as error:
        raise DataError(f"{name}: this Delta table cannot be read ({first_line(error)})") from error
    return _opened(data, name, request)


def _iceberg_table(uri: str) -> Any:
    found = re.fullmatch(r"iceberg://([^/]+)/(.+)", uri)
    if found is None:
        raise UsageError(f"{uri}: an Iceberg table is written iceberg://catalog/namespace.table")
    try:
        from pyiceberg.catalog import load_catalog
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            "PyIceberg", "iceberg", f"{uri} is an Iceberg table and"
        ) from error
    try:
        return load_catalog(found[1]).load_table(found[2])
    except Exception as error:
        raise DataError(
            f"{uri}: cannot be opened ({first_line(error)}). Catalogues are set up in .pyiceberg.yaml "
            "or by variables such as PYICEBERG_CATALOG__NAME__URI."
        ) from error


def _open_iceberg(table: Any, name: str, request: Request) -> SourceTable:
    try:
        reader = table.scan().to_arrow_batch_reader()
    except Exception as error:
        raise DataError(
            f"{name}: this Iceberg table cannot be read ({first_line(error)})"
        ) from error
    # A reader can be read once only; a temporary table spills to disk when memory is short.
    connection = request.connection
    connection.register("unskew_iceberg", reader)
    try:
        connection.execute("CREATE OR REPLACE TEMP TABLE unskew_lake AS FROM unskew_iceberg")
    finally:
        connection.unregister("unskew_iceberg")
    return opened(connection, name, "unskew_lake")


def _from(package: str, name: str) -> Callable[[Any], bool]:
    def accepts(source: Any) -> bool:
        kind = type(source)
        return kind.__module__.partition(".")[0] == package and kind.__name__ == name

    return accepts


DELTA = SourceKind(
    "delta",
    lambda request: _open_delta(request.source, f"{request.name} (Delta table)", request),
    accepts=_from("deltalake", "DeltaTable"),
    accepted="a Delta table",
)
ICEBERG = SourceKind(
    "iceberg",
    lambda request: _open_iceberg(request.source, f"{request.name} (Iceberg table)", request),
    accepts=_from("pyiceberg", "Table"),
    accepted="an Iceberg table",
)
