"""`unskew export`: a model in another system's format, and a check of what was exported."""

from __future__ import annotations

from typing import Annotated

import typer

from unskew.cli.console import output
from unskew.cli.writing import check_folder
from unskew.registry import EXPORTS

_FORMATS = ", ".join(EXPORTS)


def run(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help="A folder that train wrote; with --check alone, an export's."
        ),
    ],
    to: Annotated[
        str | None, typer.Option(metavar="FORMAT", help=f"The format: {_FORMATS}.")
    ] = None,
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="DIR", help="The folder to write.")
    ] = None,
    version: Annotated[
        str | None,
        typer.Option(metavar="V", help="The version of the other system; the newest by default."),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(help="What the model is called there; the folder's name by default."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Score the samples of the export and compare.")
    ] = False,
) -> None:
    """Write a model in another system's format, with samples to check it by.

    The folder holds what the other system reads, and samples.json: rows with missing, extreme and
    borderline values and their scores. --check scores them with the exported files, by the other
    system itself where it is a Python package, else by its rules.
    """
    from unskew.errors import UsageError
    from unskew.export.exporting import export_model
    from unskew.loading import load
    from unskew.places import local_path

    if to is None:
        if not check or out is not None or version is not None or name is not None:
            raise UsageError(
                f"--to is needed: one of {_FORMATS}; an export is checked with unskew export DIR --check"
            )
        _check(model)
        return
    if out is None:
        raise UsageError("--out is needed: the folder to write")
    check_folder("--out", local_path(out, "--out"), [model], None)
    folder = export_model(load(model), to, out, version=version, name=name)
    output.print(f"exported to {folder}", highlight=False, soft_wrap=True)
    if check:
        _check(out)


def _check(path: str) -> None:
    from unskew.errors import DataError
    from unskew.export.exporting import check_export

    found = check_export(path)
    title = EXPORTS[found.format].title + (f" {found.version}" if found.version else "")
    text = (
        f"{found.rows} samples scored as {title} does: largest difference {found.difference:.2g}, "
        f"largest score {found.scale:.3g}"
    )
    if not found.agrees:
        raise DataError(
            f"{text}: the export does not give the scores of the model; export it again"
        )
    output.print(text, highlight=False, soft_wrap=True)
