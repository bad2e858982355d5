"""A bias as a file: JSON that `unskew bias -o` writes and train, evaluate and bias read."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from unskew.array_types import FloatArray
from unskew.errors import StoreError, UsageError
from unskew.position_bias import PositionBias
from unskew.store import replace_file

BIAS_KIND = "position-bias"
VERSION = 1
# Curves have a few hundred entries at most: a file beyond this size is something else.
MOST_BYTES = 10_000_000


def save_bias(
    path: str | os.PathLike[str],
    bias: PositionBias,
    *,
    method: str | None = None,
    notes: Iterable[str] = (),
) -> None:
    """Write a bias with the method that found it and what to know about it, whole or not at all.

    Examples
    --------
    >>> import numpy as np, unskew
    >>> bias = unskew.PositionBias(np.array([1.0, 0.5]), np.ones(2))
    >>> unskew.bias.save_bias("bias.json", bias, method="relative-ctr")
    >>> len(unskew.bias.load_bias("bias.json"))
    2

    """
    content = {
        "written_by": "unskew", "kind": BIAS_KIND, "version": VERSION, "method": method,
        **bias.to_dict(), "notes": [*notes] or [*bias.notes],
    }  # fmt: skip
    file = Path(path)
    if file.is_dir():
        raise StoreError(f"{file} is a folder: give the name of a file, such as bias.json")
    file.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(content, indent=2) + "\n"
    replace_file(file, lambda new: new.write_text(text, encoding="utf-8"))


def load_bias(path: str | os.PathLike[str]) -> PositionBias:
    """The bias in a file that `save_bias` wrote, or in any JSON object with t_plus or propensity.

    Examples
    --------
    >>> import numpy as np, unskew
    >>> unskew.bias.save_bias("bias.json", unskew.PositionBias(np.array([1.0, 0.5]), np.ones(2)))
    >>> unskew.bias.load_bias("bias.json").t_plus.tolist()
    [1.0, 0.5]

    """
    file = Path(path)
    content = _content(file)
    if content.get("kind", BIAS_KIND) != BIAS_KIND:
        raise StoreError(f"{file} holds {content['kind']!r}, not a position bias")
    version = content.get("version", VERSION)
    if not isinstance(version, int) or version > VERSION:
        raise StoreError(
            f"{file} was saved by a newer Unskew (format {version}; this one reads up to {VERSION}): "
            "upgrade with pip install -U unskew"
        )
    if "t_plus" in content and "t_minus" not in content:
        content = {**content, "t_minus": [1.0] * len(_listed(content["t_plus"]))}
    try:
        if "propensity" in content and "t_plus" not in content:
            return PositionBias.from_propensities(content["propensity"])
        return PositionBias.from_dict(content)
    except UsageError as error:
        raise StoreError(f"{file} is no position bias: {error}") from error


def load_propensities(path: str | os.PathLike[str]) -> FloatArray:
    """The propensities in a file: as they are under ``propensity``, else the ``t_plus`` of its bias."""
    bias, content = load_bias(path), _content(Path(path))
    if "t_plus" in content:
        return bias.t_plus
    return np.asarray(content["propensity"], dtype=np.float64)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _content(file: Path) -> Mapping[str, Any]:
    if not file.is_file():
        what = "a folder" if file.is_dir() else "not there"
        raise StoreError(f"{file} is {what}: give the file that unskew bias -o wrote")
    if file.stat().st_size > MOST_BYTES:
        raise StoreError(f"{file} is too large for a position bias ({file.stat().st_size:,} bytes)")
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise StoreError(
            f"{file} is no JSON ({error}): give the file that unskew bias -o wrote"
        ) from error
    if not isinstance(content, dict):
        raise StoreError(
            f"{file} holds a {type(content).__name__}, not the t_plus or propensity of a position bias"
        )
    return content
