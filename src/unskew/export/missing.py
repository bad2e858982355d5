"""Missing values in engines that have no direction for them on each split."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from unskew.errors import UsageError
from unskew.export.rounding import LARGEST
from unskew.export.trees import Forest, Node

# How many times larger trees may become when they are rewritten.
MOST_GROWTH = 5

# Every value that an engine can have goes left of it.
_PRESENT = float(np.nextafter(np.float32(LARGEST), np.float32(0)))


def require_missing_as_zero(forest: Forest, engine: str, remedy: str) -> None:
    """Refuse a model whose missing values go elsewhere than 0, for an engine that reads them as 0."""
    wrong = [node for node in forest.splits() if node.default_left != (node.threshold >= 0)]
    if wrong:
        total = sum(1 for _ in forest.splits())
        name = forest.names[wrong[0].feature]
        raise UsageError(
            f"{engine} reads a missing value as 0, but the model sends it elsewhere on {len(wrong):,} "
            f"of its {total:,} splits, the first on feature {name!r}: {remedy}, or fill missing values "
            "with 0 before training"
        )


def missing_goes_right(forest: Forest) -> Forest | None:
    """The same scores from trees in which a missing value goes right on every split.

    A split that sends it left gets another before it, which only a missing value fails: right of
    that stands the left branch once more. Below, the feature is known to be there, or known to be
    missing. Trees of many such splits would grow beyond measure: None if they have more than
    `MOST_GROWTH` times as many splits.
    """
    rewriting = _Rewriting(MOST_GROWTH * sum(1 for _ in forest.splits()))
    try:
        roots = tuple(rewriting.node(root, frozenset(), frozenset()) for root in forest.roots)
    except _TooLargeError:
        return None
    return forest.with_roots(roots)


class Filled(NamedTuple):
    """A forest that reads some features twice: as they are, and with 0 where they are missing.

    ``filled`` are the features that the columns after the model's own repeat, in their order.
    """

    forest: Forest
    filled: tuple[int, ...]


def missing_filled(forest: Forest) -> Filled | None:
    """The same scores where a missing value goes right, with a second column for some features.

    The second column has 0 for a missing value. A split that sends missing values left at a threshold
    from 0 on compares that column: 0 goes left there. Splits below 0 are rewritten as by
    `missing_goes_right`; None if they make the trees too large.
    """
    rewriting = _Rewriting(MOST_GROWTH * sum(1 for _ in forest.splits()), len(forest.names))
    try:
        roots = tuple(rewriting.node(root, frozenset(), frozenset()) for root in forest.roots)
    except _TooLargeError:
        return None
    filled = tuple(rewriting.filled)
    names = forest.names + _filled_names(forest.names, filled)
    return Filled(forest.with_roots(roots, names=names), filled)


def _filled_names(names: tuple[str, ...], filled: tuple[int, ...]) -> tuple[str, ...]:
    """A name for each second column that no feature has."""
    ending = "_or_0"
    while any(f"{names[k]}{ending}" in names for k in filled):
        ending = f"_{ending}"
    return tuple(f"{names[k]}{ending}" for k in filled)


def missing_split_off(forest: Forest, largest: float = LARGEST) -> Forest:
    """The same scores where no number exceeds a threshold, for an engine that tests ``x < t``.

    LightGBM tells missing values from all others by a threshold beyond every value. A number that
    exceeds the ``largest`` one of the engine cannot be written, so the branches are exchanged: no
    value goes left of the smallest one, and a missing value goes left by its direction.
    """
    return forest.with_roots(tuple(_split_off(root, largest) for root in forest.roots))


def _split_off(node: Node, largest: float) -> Node:
    if node.is_leaf:
        return node
    left, right = (_split_off(branch, largest) for branch in node.branches)
    if node.categories is not None or node.threshold < largest:
        return replace(node, left=left, right=right)
    if node.default_left:
        return left
    return Node(feature=node.feature, threshold=-np.inf, default_left=True, left=right, right=left)


class _TooLargeError(Exception):
    """The trees have grown beyond what is allowed."""


class _Rewriting:
    """Rewrites trees as long as there are splits left to spend.

    With ``fill_from``, features may be read a second time with 0 for a missing value, from that
    column on; ``filled`` has those that are, with the column of each.
    """

    def __init__(self, allowed: int, fill_from: int | None = None) -> None:
        self._left = allowed
        self._fill_from = fill_from
        self.filled: dict[int, int] = {}

    def node(self, node: Node, present: frozenset[int], missing: frozenset[int]) -> Node:
        """A node below splits that tell which features are present and which are missing."""
        if node.is_leaf:
            return node
        left, right = node.branches
        feature = node.feature
        if feature in missing:
            return self.node(left if node.default_left else right, present, missing)
        if not self._left:
            raise _TooLargeError
        self._left -= 1
        here = present | {feature}
        if feature in present or not node.default_left:
            return replace(
                node,
                default_left=False,
                left=self.node(left, here, missing),
                right=self.node(right, present, missing),
            )
        if self._fill_from is not None and node.threshold >= 0:
            second = self.filled.setdefault(feature, self._fill_from + len(self.filled))
            return replace(
                node,
                feature=second,
                default_left=False,
                left=self.node(left, present, missing),
                right=self.node(right, here, missing),
            )
        return Node(
            feature=feature,
            threshold=_PRESENT,
            left=self.node(node, here, missing),
            right=self.node(left, present, missing | {feature}),
        )
