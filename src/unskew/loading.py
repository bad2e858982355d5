"""Loading: what any part of Unskew saved, by the kind its manifest names."""

from __future__ import annotations

import os
from typing import Any

from unskew.errors import StoreError, UsageError
from unskew.registry import ranker_of_folder
from unskew.store import read_kind


def load(path: str | os.PathLike[str]) -> Any:
    """Read a folder that ``save`` wrote: Impressions, whole or in parts, or a ranker.

    Loading never runs code.

    Examples
    --------
    >>> import unskew
    >>> log = {
    ...     "session": [1, 1, 2, 2], "query": ["tea"] * 4, "doc": ["green", "black"] * 2,
    ...     "position": [1, 2, 1, 2], "click": [1, 0, 0, 1], "price": [3.0, 4.0, 3.0, 4.0],
    ... }
    >>> unskew.read_log(log).save("compact")
    >>> unskew.load("compact").n_sessions
    2

    """
    kind = read_kind(path)
    if kind in {"impressions", "impressions-parts"}:
        from unskew.log.parts import load as load_impressions

        return load_impressions(path)
    if ranker_of_folder(kind) is not None:
        from unskew.rankers.saving import load as load_saved

        return load_saved(path)
    raise StoreError(
        f"{os.fspath(path)} holds {kind!r}, which this version does not know: upgrade with "
        "pip install -U unskew"
    )


def load_ranker(path: str | os.PathLike[str]) -> Any:
    """Read the folder of a ranker; whatever else a folder may hold is refused."""
    ranker = load(path)
    if not hasattr(ranker, "predict"):
        raise UsageError(f"{os.fspath(path)} is not a model: it holds {type(ranker).__name__}")
    return ranker
