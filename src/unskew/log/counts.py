"""Counts of a click log: impressions and clicks, all that pointwise methods need."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray
from unskew.log.impressions import Impressions


@dataclass(frozen=True, eq=False)
class Counts:
    """Impressions of each page and clicks at each of its slots (aligned with `Pages.document`).

    Examples
    --------
    >>> import unskew
    >>> log = {"session": [1, 1], "query": ["tea"] * 2, "doc": ["green", "black"]}
    >>> data = unskew.read_log(log | {"position": [1, 2], "click": [0, 1]})
    >>> unskew.log.count_statistics(data).clicks.tolist()
    [0.0, 1.0]

    """

    impressions: FloatArray
    clicks: FloatArray


def count_statistics(data: Impressions, mass: FloatArray | None = None) -> Counts:
    """Impressions of every page and clicks at every slot.

    ``mass`` says how much each pattern counts, by default its sessions times their weight.

    Examples
    --------
    Two sessions saw the same page, and one of them clicked its second result:

    >>> import unskew
    >>> log = {"session": [1, 1, 2, 2], "query": ["tea"] * 4, "doc": ["green", "black"] * 2}
    >>> data = unskew.read_log(log | {"position": [1, 2] * 2, "click": [0, 1, 0, 0]})
    >>> counts = unskew.log.count_statistics(data)
    >>> counts.impressions.tolist(), counts.clicks.tolist()
    ([2.0], [0.0, 1.0])

    """
    pages, patterns = data.pages, data.patterns
    mass = patterns.mass if mass is None else mass
    per_click = np.repeat(mass, np.diff(patterns.offsets))
    entry = np.repeat(pages.offsets[patterns.page], np.diff(patterns.offsets)) + patterns.slot
    return Counts(
        impressions=sums(patterns.page, mass, len(pages)),
        clicks=sums(entry, per_click, len(pages.document)),
    )


def n_shown(data: Impressions, mass: FloatArray | None = None) -> float:
    """How many results were shown, in sessions times their weight or in ``mass`` of the patterns."""
    sizes = np.diff(data.pages.offsets)[data.patterns.page]
    return float(((data.patterns.mass if mass is None else mass) * sizes).sum())


def sums(index: npt.NDArray[np.integer], weights: FloatArray, n: int) -> FloatArray:
    """The sum of the weights of each index from 0 to ``n`` (excluded)."""
    return np.bincount(index, weights=weights, minlength=n).astype(np.float64)
