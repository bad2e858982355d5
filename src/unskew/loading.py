"""Loading: what any part of Unskew saved, by the kind its manifest names."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from unskew.errors import StoreError
from unskew.store import read_kind

__all__ = ["load"]

# Each kind of folder and the module whose function ``load`` reads it.
_LOADERS = {
    "impressions": "unskew.log.saved",
    "UnbiasedLambdaMART": "unskew.rankers.lambdamart.folder",
    "ranksvm": "unskew.rankers.ranksvm.folder",
    "neural": "unskew.rankers.neural.folder",
}


def load(path: str | os.PathLike[str]) -> Any:
    """Read a folder that ``save`` wrote: Impressions or a model. Loading never runs code."""
    kind = read_kind(path)
    if kind not in _LOADERS:
        raise StoreError(
            f"{os.fspath(path)} holds {kind!r}, which this version does not know: upgrade with "
            "pip install -U unskew"
        )
    return import_module(_LOADERS[kind]).load(path)
