"""The order of keys and of ragged sequences within buckets, sorted by several threads.

Buckets divide the work: each thread sorts some of them, and the order does not depend on how many
threads there are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from unskew.array_types import FloatArray, IntArray
from unskew.compiling import INNER
from unskew.threads import share

_SHORT = 24
# More threads wait for the memory.
_MOST_THREADS = 8


@njit(**INNER)
def _precedes(offsets, sequence, a, b):  # type: ignore[no-untyped-def]
    """Whether item ``a`` comes before or equals item ``b`` in lexicographic order."""
    i, j = offsets[a], offsets[b]
    while i < offsets[a + 1] and j < offsets[b + 1]:
        if sequence[i] != sequence[j]:
            return sequence[i] < sequence[j]
        i += 1
        j += 1
    return offsets[a + 1] - offsets[a] <= offsets[b + 1] - offsets[b]


@njit(**INNER)
def merge_sort(items, spare, first, end, offsets, sequence):  # type: ignore[no-untyped-def]
    """Sort ``items[first:end]``; item ``k`` is ``sequence[offsets[k]:offsets[k + 1]]``."""
    width = 1
    while width < end - first:
        for low in range(first, end, 2 * width):
            middle, high = min(low + width, end), min(low + 2 * width, end)
            i, j = low, middle
            for k in range(low, high):
                if j >= high or (i < middle and _precedes(offsets, sequence, items[i], items[j])):
                    spare[k] = items[i]
                    i += 1
                else:
                    spare[k] = items[j]
                    j += 1
        for k in range(first, end):
            items[k] = spare[k]
        width *= 2


@njit(cache=True, nogil=True)
def _fill_buckets(bucket, free, order):  # type: ignore[no-untyped-def]
    """Write every index into its bucket's room, which begins at ``free[bucket]``."""
    for k in range(len(bucket)):
        order[free[bucket[k]]] = k
        free[bucket[k]] += 1


@njit(cache=True, nogil=True)
def _sort_buckets(order, spare, starts, first, end, offsets, sequence):  # type: ignore[no-untyped-def]
    """Sort the ragged items of the buckets ``first:end``."""
    for b in range(first, end):
        if starts[b + 1] - starts[b] > 1:
            merge_sort(order, spare, starts[b], starts[b + 1], offsets, sequence)


@njit(cache=True, nogil=True)
def _sort_keys(order, key, spare, spare_key, starts, first, end):  # type: ignore[no-untyped-def]
    """Sort the items of the buckets ``first:end`` by the keys that stand beside them."""
    for b in range(first, end):
        low, high = starts[b], starts[b + 1]
        for chunk in range(low, high, _SHORT):
            _insertion_sort(order, key, chunk, min(chunk + _SHORT, high))
        width = _SHORT
        while width < high - low:
            for begin in range(low, high, 2 * width):
                middle, stop = min(begin + width, high), min(begin + 2 * width, high)
                _merge(order, key, spare, spare_key, begin, middle, stop)
            width *= 2


@njit(**INNER)
def _insertion_sort(order, key, low, high):  # type: ignore[no-untyped-def]
    for k in range(low + 1, high):
        x, item = key[k], order[k]
        at = k
        while at > low and key[at - 1] > x:
            key[at], order[at] = key[at - 1], order[at - 1]
            at -= 1
        key[at], order[at] = x, item


@njit(cache=True, nogil=True)
def _merge(order, key, spare, spare_key, low, middle, high):  # type: ignore[no-untyped-def]
    """Merge two sorted runs; the first one is moved out of the way and comes back."""
    if middle >= high or key[middle - 1] <= key[middle]:
        return
    n = middle - low
    for k in range(n):
        spare[low + k], spare_key[low + k] = order[low + k], key[low + k]
    i, j, to = low, middle, low
    while i < middle:
        if j < high and key[j] < spare_key[i]:
            order[to], key[to] = order[j], key[j]
            j += 1
        else:
            order[to], key[to] = spare[i], spare_key[i]
            i += 1
        to += 1


def in_buckets(bucket: IntArray, n_buckets: int) -> tuple[IntArray, IntArray]:
    """Where each bucket begins, with the end at the end; and the items, bucket by bucket."""
    starts = np.zeros(n_buckets + 1, dtype=np.int64)
    np.cumsum(np.bincount(bucket, minlength=n_buckets), out=starts[1:])
    order = np.empty(len(bucket), dtype=np.int64)
    _fill_buckets(bucket, starts[:-1].copy(), order)
    return starts, order


def order_ragged(
    bucket: IntArray, n_buckets: int, offsets: IntArray, sequence: IntArray
) -> IntArray:
    """The order of ragged integer sequences by bucket, then lexicographically."""
    starts, order = in_buckets(bucket, n_buckets)
    spare = np.empty(len(bucket), dtype=np.int64)
    offsets, sequence = read_only(offsets), read_only(sequence)
    share(
        starts,
        lambda first, end: _sort_buckets(order, spare, starts, first, end, offsets, sequence),
        most=_MOST_THREADS,
    )
    return order


def order_keys(bucket: IntArray, n_buckets: int, key: IntArray) -> IntArray:
    """The order of single keys by bucket, then by key, then as they come."""
    starts, order = in_buckets(bucket, n_buckets)
    _sort_beside(order, key[order], starts)
    return order


def order_scores(score: FloatArray, offsets: IntArray) -> IntArray:
    """The order of scores within ``offsets[q]:offsets[q + 1]``, highest first, equal as they come.

    A NaN is lower than every number.
    """
    order = np.arange(len(score))
    # The bits of a float, read as an integer, have its order; those of a negative one the opposite.
    bits = (np.where(np.isnan(score), -np.inf, score) + 0.0).view(np.int64)
    _sort_beside(order, ~(bits ^ ((bits >> 63) & np.iinfo(np.int64).max)), np.array(offsets))
    return order


def _sort_beside(order: IntArray, key: IntArray, starts: IntArray) -> None:
    """Sort the items of each bucket by their keys."""
    spare, spare_key = np.empty_like(order), np.empty_like(key)
    share(
        starts,
        lambda first, end: _sort_keys(order, key, spare, spare_key, starts, first, end),
        most=_MOST_THREADS,
    )


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A view that cannot be written: Numba compiles a kernel once for each kind of array."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view
