"""PageBatches: the pages of a log on a device, cut into random batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray
from unskew.log.grades import gain
from unskew.log.impressions import Impressions
from unskew.pairs.statistic import Pairs
from unskew.rankers.neural.pytorch import pytorch


def clicked_gain(data: Impressions) -> FloatArray:
    """What the clicks on every place of every page are worth: sessions times gain of the grade.

    For plain clicks this is the click count. It is aligned with ``data.pages.document``.
    """
    pages, patterns = data.pages, data.patterns
    clicks = np.diff(patterns.offsets)
    entry = np.repeat(pages.offsets[patterns.page], clicks) + patterns.slot
    worth = np.repeat(patterns.mass, clicks) * gain(patterns.grade, data.gains)
    return np.bincount(entry, weights=worth, minlength=len(pages.document)).astype(np.float64)


@dataclass(frozen=True, eq=False)
class PageBatch:
    """Some pages: tensors over their results, and over their pairs by place in the batch.

    ``distinct`` holds the documents of the batch once each, ``row`` each result's place in it.
    """

    n_pages: int
    distinct: Any
    row: Any
    document: Any
    position: Any
    gain: Any
    segment: Any
    first: Any
    i: Any
    j: Any
    weight: Any


class PageBatches:
    """The pages that have something to learn from, as tensors.

    With ``pairs`` these are the pages with pairs, and batches have pairs; without, the pages with
    clicks.
    """

    def __init__(
        self, data: Impressions, pairs: Pairs | None, *, n_positions: int, device: Any
    ) -> None:
        torch = pytorch()
        pages, worth = data.pages, clicked_gain(data)
        sizes = np.diff(pages.offsets)
        self.device = device
        self.pairs = pairs is not None
        if pairs is not None:
            kept = np.flatnonzero(np.diff(pairs.offsets))
        else:
            per_page = np.add.reduceat(worth, pages.offsets[:-1])
            kept = np.flatnonzero((per_page > 0) & (sizes > 1))
        self._kept, self._sizes, self._query = kept, sizes, pages.query[kept]
        self._n_pairs = np.zeros(len(pages), dtype=np.int64)

        def put(values: npt.NDArray[Any], kind: Any) -> Any:
            return torch.as_tensor(values, dtype=kind, device=device)

        self.gain = put(worth, torch.float32)
        self.document = put(pages.document, torch.int64)
        self.position = put(np.minimum(pages.position, n_positions) - 1, torch.int64)
        self._start = put(pages.offsets[:-1], torch.int64)
        self._size = put(sizes, torch.int64)
        if pairs is not None:
            self._n_pairs = np.diff(pairs.offsets)
            self._pair_start = put(pairs.offsets[:-1], torch.int64)
            self._pair_size = put(self._n_pairs, torch.int64)
            self._slot_i = put(pairs.slot_i, torch.int64)
            self._slot_j = put(pairs.slot_j, torch.int64)
            self._weight = put(pairs.weight, torch.float32)

    def __len__(self) -> int:
        return len(self._kept)

    def shuffled(self, batch_pages: int, rng: np.random.Generator) -> Iterator[PageBatch]:
        """All pages once, the queries in random order and so the pages of each.

        The pages of a query share documents, which are scored once in a batch.
        """
        query = rng.permutation(self._query.max() + 1)[self._query]
        order = self._kept[np.lexsort((rng.random(len(self._kept)), query))]
        for at in range(0, len(order), batch_pages):
            yield self.batch(order[at : at + batch_pages])

    def batch(self, pages: npt.NDArray[np.intp]) -> PageBatch:
        """The given pages."""
        torch = pytorch()
        chosen = torch.as_tensor(pages, device=self.device)
        # Totals are known here: the device need not be asked.
        size = self._size.index_select(0, chosen)
        local = size.cumsum(0) - size
        segment, entry = self._ranges(
            self._start.index_select(0, chosen), size, int(self._sizes[pages].sum())
        )
        i = j = weight = None
        if self.pairs:
            page, pair = self._ranges(
                self._pair_start.index_select(0, chosen),
                self._pair_size.index_select(0, chosen),
                int(self._n_pairs[pages].sum()),
            )
            start = local.index_select(0, page)
            i = start + self._slot_i.index_select(0, pair)
            j = start + self._slot_j.index_select(0, pair)
            weight = self._weight.index_select(0, pair)
        document = self.document.index_select(0, entry)
        distinct, row = torch.unique(document, return_inverse=True)
        return PageBatch(
            len(pages), distinct, row, document, self.position.index_select(0, entry),
            self.gain.index_select(0, entry), segment, local, i, j, weight,
        )  # fmt: skip

    def _ranges(self, start: Any, size: Any, total: int) -> tuple[Any, Any]:
        """For consecutive ranges, which one each element belongs to, and the elements."""
        torch = pytorch()
        which = torch.arange(len(size), device=self.device)
        which = torch.repeat_interleave(which, size, output_size=total)
        shift = start - (size.cumsum(0) - size)
        return which, torch.arange(total, device=self.device) + shift.index_select(0, which)
