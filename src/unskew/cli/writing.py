"""What commands write: never over their own input, never half, and over nothing foreign unasked.

A file counts as ours if it says so itself: Parquet in its metadata, HTML and JSON in their first
lines. A CSV file has no place to say it, so an existing one is only replaced with ``--overwrite``.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unskew.errors import UsageError
from unskew.places import Place, RemotePath, local_path, place_of
from unskew.remote_writing import check_writable
from unskew.store import check_replaceable, replace_file

if TYPE_CHECKING:
    import pyarrow as pa


Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace a file that Unskew did not write.")
]

# A folder to write: of this machine, or behind a URI.
FolderOut = Annotated[
    Any,
    typer.Option("--out", "-o", metavar="DIR", help="The folder or URI to write.", parser=place_of),
]

# The key in the metadata of a Parquet file, and what the first lines of other files hold.
_KEY = b"unskew"
MARKS = (b'<meta name="generator" content="unskew">', b'"written_by": "unskew"')
_FIRST_BYTES = 4096


def check_outputs(
    outputs: Mapping[str, Path | None], inputs: Iterable[str | Path | None], *, overwrite: bool
) -> None:
    """Refuse to write over an input, to one place twice, or over a file of somebody else.

    ``outputs`` has the option that names each file; what is None is not written or read.
    """
    places: dict[str, str] = {}
    wanted = {option: out for option, out in outputs.items() if out is not None}
    for option, out in wanted.items():
        local_path(out, option)
        for same in _identities(out):
            if same in places:
                raise UsageError(f"{places[same]} and {option} name the same file, {out}")
        places |= dict.fromkeys(_identities(out), option)
    _refuse_inputs(places, [str(source) for source in inputs if source is not None])
    for option, out in wanted.items():
        if out.is_dir():
            raise UsageError(f"{option}: {out} is a folder; give the name of a file")
        if out.exists() and not overwrite and not is_ours(out):
            raise UsageError(
                f"{option}: {out} exists and nothing in it says that Unskew wrote it: nothing was "
                "written; give another name, or --overwrite to replace it"
            )


def check_folder(
    option: str, out: Place, inputs: Iterable[str | Path | None], kind: str | None,
    old_kinds: Collection[str] = (),
) -> None:  # fmt: skip
    """Refuse a folder that is an input, holds one, or was saved as something else than ``kind``."""
    if not isinstance(out, RemotePath):
        _refuse_folder_of_inputs(option, out, inputs)
    if kind is not None:
        check_replaceable(out, kind, old_kinds)
    if isinstance(out, RemotePath):
        check_writable(out)


def _refuse_folder_of_inputs(option: str, out: Path, inputs: Iterable[str | Path | None]) -> None:
    place = os.path.realpath(out)
    for source in inputs:
        for file in () if source is None else _files(str(source), walk=False):
            if os.path.realpath(file) == place or place in map(str, Path(file).resolve().parents):
                raise UsageError(
                    f"{option}: {out} is read by the same command, and would be written over; give "
                    "another name"
                )


def is_ours(file: Path) -> bool:
    """Whether a file says that Unskew wrote it."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    try:
        with file.open("rb") as stream:
            first = stream.read(_FIRST_BYTES)
        if first.startswith(b"PAR1"):
            return any(key.startswith(_KEY) for key in parquet.read_schema(file).metadata or {})
    except (OSError, pa.ArrowException):
        return False
    return any(mark in first for mark in MARKS)


def _refuse_inputs(places: Mapping[str, str], inputs: Iterable[str]) -> None:
    for source in inputs:
        for file in _files(source):
            for same in _identities(Path(file)):
                if same in places:
                    raise UsageError(
                        f"{places[same]} would write over {file}, which the same command reads; "
                        "give another name"
                    )


def _files(source: str, *, walk: bool = True) -> Iterator[str]:
    """The files that an input names: itself, those in the folder, or those of the pattern."""
    from unskew.log.sources.files import walk as files_within

    found = [source] if os.path.lexists(source) else glob.glob(source, recursive=True)  # noqa: PTH207
    for name in found:
        yield name
        if walk and Path(name).is_dir():
            for folder, _, names in files_within(name):
                yield from (os.path.join(folder, one) for one in names)  # noqa: PTH118


def _identities(path: Path) -> tuple[str, ...]:
    """What two names of one file have in common: the place without links, and the file itself."""
    place = os.path.realpath(path)
    try:
        status = os.stat(place)  # noqa: PTH116
    except OSError:
        return (place,)
    return (place, f"{status.st_dev}:{status.st_ino}")


def marked(table: pa.Table) -> pa.Table:
    """The table with the mark of what Unskew writes in its metadata."""
    return table.replace_schema_metadata({**(table.schema.metadata or {}), _KEY: b"written"})


def check_table_output(
    out: Path | None, inputs: Iterable[str | Path | None], *, overwrite: bool
) -> None:
    """Refuse an ``--out``, if there is one, that is no table, or that `check_outputs` refuses."""
    if out is not None:
        if out.suffix.lower() not in {".parquet", ".csv"}:
            raise UsageError(f"--out must end in .parquet or .csv, got {str(out)!r}")
        check_outputs({"--out": out}, inputs, overwrite=overwrite)


def write_table(table: pa.Table, out: Path) -> None:
    """Write a table whose name was checked."""
    import pyarrow.csv as csv
    import pyarrow.parquet as parquet

    write = csv.write_csv if out.suffix.lower() == ".csv" else parquet.write_table
    replace_file(out, lambda file: write(marked(table), str(file)))
