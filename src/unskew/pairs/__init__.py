"""The objective of the paper: pairs of results, their loss, and the update of both biases."""

from typing import TYPE_CHECKING

from unskew.lazy import lazy_names

if TYPE_CHECKING:
    from unskew.pairs.statistic import Pairs as Pairs
    from unskew.pairs.statistic import pair_statistics as pair_statistics

__all__, __getattr__, __dir__ = lazy_names(__name__)
