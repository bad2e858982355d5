"""The kernel that scores rows with a forest: plain arrays, one thread, no Python objects.

Trees are not walked. Each leaf of a tree is a bit, numbered from left to right. A split that sends
a row right rules out the leaves of its left branch; of the leaves that all splits of the tree
leave over, the row reaches the lowest (Lucchese et al., QuickScorer, SIGIR 2015). Every split then
is the same comparison for all rows, which the processor does for several rows at once and without
a branch to guess. Trees of more than 64 leaves are walked.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import njit
from numba.extending import intrinsic

from unskew.compiling import INNER
from unskew.export.trees import Forest, Node

# What a split compares: a number, where a missing value goes right or left, or categories.
_MISSING_RIGHT, _MISSING_LEFT, _CATEGORIES = 0, 1, 2
_BLOCK = 256
_MOST_LEAVES = 64


class FlatForest(NamedTuple):
    """A forest as arrays: the splits and leaves of each tree from ``splits[t]``, ``leaves[t]``.

    ``mask`` has a zero for every leaf that a row sent right cannot reach; ``left`` and ``right``
    are the branches of a split within its tree, ``~k`` for its leaf k. ``listed`` is a table of
    bits over category codes for each split of categories, from ``first_word`` on.
    """

    splits: npt.NDArray[np.int64]
    leaves: npt.NDArray[np.int64]
    feature: npt.NDArray[np.int64]
    threshold: npt.NDArray[np.floating]
    kind: npt.NDArray[np.int8]
    default_left: npt.NDArray[np.bool_]
    other_left: npt.NDArray[np.bool_]
    mask: npt.NDArray[np.unsignedinteger]
    left: npt.NDArray[np.int64]
    right: npt.NDArray[np.int64]
    listed: npt.NDArray[np.uint64]
    first_word: npt.NDArray[np.int64]
    value: npt.NDArray[np.floating]
    base: npt.NDArray[np.floating]


def flatten(forest: Forest) -> FlatForest:
    """The arrays of a forest, in the precision that it is to be scored in."""
    number = np.float32 if forest.single else np.float64
    flat = _Flattening()
    for root in forest.roots:
        flat.add_tree(root)
    most = max(np.diff(flat.leaves), default=1)
    bits = np.uint32 if most <= 32 else np.uint64
    masks = [mask & int(np.iinfo(bits).max) for mask in flat.mask]
    return FlatForest(
        splits=np.array(flat.splits),
        leaves=np.array(flat.leaves),
        feature=np.array(flat.feature, np.int64),
        threshold=np.array(flat.threshold, number),
        kind=np.array(flat.kind, np.int8),
        default_left=np.array(flat.default_left, np.bool_),
        other_left=np.array(flat.other_left, np.bool_),
        mask=np.array(masks, bits),
        left=np.array(flat.left, np.int64),
        right=np.array(flat.right, np.int64),
        listed=np.array(flat.listed, np.uint64),
        first_word=np.array([*flat.first_word, len(flat.listed)], np.int64),
        value=np.array(flat.value, number),
        base=np.array([forest.base], number),
    )


class _Flattening:
    """The lists that `flatten` fills, tree by tree."""

    def __init__(self) -> None:
        self.splits, self.leaves = [0], [0]
        self.feature: list[int] = []
        self.threshold: list[float] = []
        self.kind: list[int] = []
        self.default_left: list[bool] = []
        self.other_left: list[bool] = []
        self.mask: list[int] = []
        self.left: list[int] = []
        self.right: list[int] = []
        self.listed: list[int] = []
        self.first_word: list[int] = []
        self.value: list[float] = []

    def add_tree(self, root: Node) -> None:
        self._add(root)
        self.splits.append(len(self.feature))
        self.leaves.append(len(self.value))

    def _add(self, node: Node) -> int:
        """Add a node and all below; returns its place in the tree."""
        if node.is_leaf:
            self.value.append(node.value)
            return ~(len(self.value) - 1 - self.leaves[-1])
        at = len(self.feature)
        self._add_split(node)
        first = len(self.value)
        left, right = node.branches
        self.left[at] = self._add(left)
        gone = range(first - self.leaves[-1], len(self.value) - self.leaves[-1])
        self.mask[at] = ~sum(1 << leaf for leaf in gone)
        self.right[at] = self._add(right)
        return at - self.splits[-1]

    def _add_split(self, node: Node) -> None:
        kind = _CATEGORIES if node.categories is not None else int(node.default_left)
        self.kind.append(kind)
        self.feature.append(node.feature)
        self.threshold.append(node.threshold)
        self.default_left.append(node.default_left)
        self.other_left.append(node.other_left)
        for column in (self.mask, self.left, self.right):
            column.append(0)
        self.first_word.append(len(self.listed))
        words = [0] * (max(node.categories) // 64 + 1 if node.categories else 0)
        for code in node.categories or ():
            words[code // 64] |= 1 << (code % 64)
        self.listed.extend(words)


@intrinsic
def _lowest_bit(typing: Any, bits: Any) -> Any:
    """The place of the lowest bit that is set."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = arguments[0].type
        count = builder.module.declare_intrinsic(
            "llvm.cttz", [kind], ir.FunctionType(kind, [kind, ir.IntType(1)])
        )
        return builder.call(count, [arguments[0], ir.Constant(ir.IntType(1), 0)])

    return bits(bits), generate


@njit(cache=True, nogil=True, inline="always")
def _category_left(flat, k, x):  # type: ignore[no-untyped-def]
    if np.isnan(x):
        return flat.default_left[k]
    other_left = flat.other_left[k]
    first, end = flat.first_word[k], flat.first_word[k + 1]
    listed = False
    if (x >= 0 or (not other_left and x > -1)) and x < 64 * (end - first):
        code = np.int64(x)
        listed = (flat.listed[first + code // 64] >> np.uint64(code % 64)) & np.uint64(1) != 0
    return listed != other_left


@njit(cache=True, nogil=True, inline="always")
def _goes_left(flat, k, x):  # type: ignore[no-untyped-def]
    if flat.kind[k] == _MISSING_LEFT:
        return not x > flat.threshold[k]
    if flat.kind[k] == _MISSING_RIGHT:
        return x <= flat.threshold[k]
    return _category_left(flat, k, x)


@njit(**INNER)
def _add_by_masks(flat, columns, rows, score):  # type: ignore[no-untyped-def]
    """Add every tree to the scores of a block of rows, whose values are given by columns."""
    every = ~(flat.mask[:1] & ~flat.mask[:1])[0] if len(flat.mask) else ~np.zeros(1, np.uint32)[0]
    open_leaves = np.empty(_BLOCK, flat.mask.dtype)
    for t in range(len(flat.splits) - 1):
        for i in range(rows):
            open_leaves[i] = every
        for k in range(flat.splits[t], flat.splits[t + 1]):
            mask, threshold, x = flat.mask[k], flat.threshold[k], columns[flat.feature[k]]
            if flat.kind[k] == _MISSING_LEFT:
                for i in range(rows):
                    open_leaves[i] &= mask if x[i] > threshold else every
            elif flat.kind[k] == _MISSING_RIGHT:
                for i in range(rows):
                    open_leaves[i] &= every if x[i] <= threshold else mask
            else:
                for i in range(rows):
                    open_leaves[i] &= every if _category_left(flat, k, x[i]) else mask
        first = flat.leaves[t]
        for i in range(rows):
            score[i] += flat.value[first + np.int64(_lowest_bit(open_leaves[i]))]


@njit(**INNER)
def _add_by_walking(flat, columns, rows, score):  # type: ignore[no-untyped-def]
    for t in range(len(flat.splits) - 1):
        first = flat.splits[t]
        for i in range(rows):
            k = 0 if flat.splits[t + 1] > first else -1
            while k >= 0:
                at = first + k
                left = _goes_left(flat, at, columns[flat.feature[at], i])
                k = flat.left[at] if left else flat.right[at]
            score[i] += flat.value[flat.leaves[t] + ~k]


@njit(cache=True, nogil=True)
def _score_rows(flat, values, walk):  # type: ignore[no-untyped-def]
    """The scores, and the place of the first infinite value, -1 if there is none."""
    n, width = values.shape
    score = np.full(n, flat.base[0], flat.base.dtype)
    columns = np.empty((width, min(n, _BLOCK)), flat.threshold.dtype)
    infinite = -1
    for begin in range(0, n, _BLOCK):
        rows = min(_BLOCK, n - begin)
        for i in range(rows):
            for k in range(width):
                columns[k, i] = values[begin + i, k]
                if np.isinf(columns[k, i]) and infinite < 0:
                    infinite = (begin + i) * width + k
        if walk:
            _add_by_walking(flat, columns, rows, score[begin : begin + rows])
        else:
            _add_by_masks(flat, columns, rows, score[begin : begin + rows])
    return score, infinite


def score_rows(
    flat: FlatForest, values: npt.NDArray[np.floating]
) -> tuple[npt.NDArray[np.float64], int]:
    """The scores of a C-contiguous matrix, and the place of its first infinite value, or -1."""
    walk = bool(np.diff(flat.leaves).max(initial=1) > _MOST_LEAVES)
    score, infinite = _score_rows(flat, values, walk)
    return score.astype(np.float64), int(infinite)
