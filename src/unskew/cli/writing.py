"""Writing a table for every command: Parquet or CSV, by the ending of its name, and never half."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from unskew.errors import UsageError
from unskew.store import replace_file

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["check_table_path", "write_table"]


def check_table_path(out: Path) -> None:
    """Refuse a name by whose ending no kind of table can be told."""
    if out.suffix.lower() not in {".parquet", ".csv"}:
        raise UsageError(f"--out must end in .parquet or .csv, got {str(out)!r}")


def write_table(table: pa.Table, out: Path) -> None:
    """Write a table whose name was checked."""
    import pyarrow.csv as csv
    import pyarrow.parquet as parquet

    out.parent.mkdir(parents=True, exist_ok=True)
    write = csv.write_csv if out.suffix.lower() == ".csv" else parquet.write_table
    replace_file(out, lambda file: write(table, str(file)))
