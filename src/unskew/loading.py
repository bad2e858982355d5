"""Loading: what any part of Unskew saved, by the kind its manifest names."""

from __future__ import annotations

from typing import Any

from unskew.errors import StoreError, UsageError
from unskew.places import PlaceLike, place_of
from unskew.registry import ranker_of_folder
from unskew.store import read_kind


def load(path: PlaceLike) -> Any:
    """Read a folder that ``save`` wrote: Impressions, whole or in parts, or a ranker.

    The folder is one of this machine, or a URI in object storage such as ``s3://bucket/parts``.
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
        f"{place_of(path)} holds {kind!r}, which this version does not know: upgrade with "
        "pip install -U unskew"
    )


def load_ranker(path: PlaceLike) -> Any:
    """Read the folder of a ranker; whatever else a folder may hold is refused."""
    ranker = load(path)
    if not hasattr(ranker, "predict"):
        raise UsageError(f"{place_of(path)} is not a model: it holds {type(ranker).__name__}")
    return ranker
