"""A file of feature names: what a model may use, written down once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from unskew.errors import DataError, StoreError, UsageError
from unskew.store import read_manifest


def feature_list(given: str | os.PathLike[str] | Sequence[str] | None) -> list[str] | None:
    """The names that a list gives, or a text file with one name a line, or a saved model's folder.

    In a file, empty lines and what follows ``#`` at the beginning of a line are left out.
    """
    if given is None:
        return None
    if isinstance(given, str | os.PathLike):
        names = _read(Path(given))
    else:
        names = list(given)
        if not all(isinstance(name, str) for name in names):
            raise UsageError(
                f"feature_names must be a list of names or a file of them, got {given!r}"
            )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataError(f"feature_names: {twice[0]!r} is given twice; each name stands once")
    if not names:
        raise DataError(f"feature_names: not a single feature is named in {given!r}")
    return names


def _read(path: Path) -> list[str]:
    if path.is_dir():
        return _of_model(path)
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file of feature names; check the path") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: this is not a text of feature names ({error})") from error
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def _of_model(path: Path) -> list[str]:
    try:
        names, why = read_manifest(path).get("feature_names"), ""
    except StoreError as error:
        names, why = None, f" ({error})"
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise DataError(
            f"{path}: the folder is not a saved model, whose features could be taken{why}. Remedy: "
            "give a file with one name a line, or the folder of a model."
        )
    return names
