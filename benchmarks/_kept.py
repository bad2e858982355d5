"""`unskew.fit` with the search that it made, to look at what it did not choose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unskew.choose.blend import blend_weights
from unskew.choose.candidates import LARGER, RAW
from unskew.choose.ranker import AutoRanker


class Kept(AutoRanker):
    """The ranker with its search."""

    search: Any

    def _watched(self, search: Any) -> None:
        self.search = search

    def blends(self, shares: Sequence[float]) -> list[dict[str, float]]:
        """The weights of the parts that it has, by the share of the debiased half."""
        more = [part for part in (RAW, LARGER) if self.search.found.of(part)]
        return [blend_weights(share, more) for share in shares]
