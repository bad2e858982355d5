"""A table or view of a DuckDB database file."""

from __future__ import annotations

import duckdb

from unskew.errors import DataError, UsageError
from unskew.log.sources.kind import Request, SourceKind
from unskew.log.sources.table import SourceTable, first_line, literal, opened, quoted


def _open(request: Request) -> SourceTable:
    files, connection, table = request.source, request.connection, request.table
    if len(files) > 1:
        raise UsageError(f"give one database file, got {len(files)}")
    file = files[0]
    try:
        connection.execute(f"ATTACH {literal(file)} AS source (READ_ONLY)")
        found = connection.execute(
            "SELECT schema_name || '.' || name, name, schema_name FROM ("
            "SELECT schema_name, table_name AS name, database_name FROM duckdb_tables() UNION ALL "
            "SELECT schema_name, view_name, database_name FROM duckdb_views() WHERE NOT internal"
            ") WHERE database_name = 'source' ORDER BY ALL"
        ).fetchall()
    except duckdb.Error as error:
        raise DataError(f"{file}: this is not a DuckDB database ({first_line(error)})") from error
    names = {full: (schema, name) for full, name, schema in found}
    names |= {name: (schema, name) for _, name, schema in found if schema == "main"}
    if table is None or table not in names:
        wanted = "say which table with table=" if table is None else f"there is no table {table!r}"
        raise UsageError(f"{file}: {wanted}; it has {sorted(names) or 'none'}")
    schema, name = names[table]
    shown = f"{file}, table {table!r}"
    # A view of the database could read any file of this machine. What is attached stays readable.
    connection.execute("SET enable_external_access = false")
    try:
        return opened(connection, shown, f"source.{quoted(schema)}.{quoted(name)}")
    except DataError as error:
        if not isinstance(error.__cause__, duckdb.PermissionException):
            raise
        raise DataError(
            f"{shown}: this is a view that reads something outside of the database, which is not "
            "allowed. Remedy: make it a table, or name the files that it reads."
        ) from error


DATABASE = SourceKind("database", _open, endings=(".duckdb", ".ddb", ".db"), in_folders=False)
