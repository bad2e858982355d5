"""SharedGrower: XGBoost trees that grow on the documents of all workers.

Whoever holds which document, the same trees grow, bit for bit:

- All workers have the same bin edges.
- Derivatives are rounded to multiples of a power of two that is so large that sums of them are exact,
  and so do not depend on the order in which they are added up. The rounding is a 2 ** -50th of the sum
  of all derivatives.
- Which documents and features a tree sees is drawn by a hash of the seed, the round and the document
  or feature. XGBoost is given weights by which it can choose no other features.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xgboost

from unskew.array_types import FloatArray, IntArray
from unskew.engines.edges import edge_matrix, edges, points_for, summaries
from unskew.engines.group import Group
from unskew.errors import DataError
from unskew.log.features import Features
from unskew.mixing import GOLDEN, mix, shuffled_keys
from unskew.trees.boosters import TreeByTree, Trees, allowed_names, xgboost_allows
from unskew.trees.xgboost_trees import XGBoostTrees

_DEFAULT_BINS = 256
_EXACT_BITS = 50


@dataclass(frozen=True, eq=False)
class PartFeatures:
    """The feature rows of this worker's parts, loaded one part at a time."""

    numbers: Sequence[int]
    n_parts: int
    names: tuple[str, ...]
    categories: dict[str, tuple[str, ...]]
    load: Any

    def __iter__(self) -> Iterator[Features]:
        return (self.load(number) for number in self.numbers)


@dataclass(frozen=True)
class Sampling:
    """Which share of the documents and of the features a tree sees, and the seed."""

    documents: float
    features: float
    seed: int

    def kept(self, key: npt.NDArray[np.uint64], number: int) -> npt.NDArray[np.bool_]:
        """Which documents the tree of that number sees."""
        # The upper 53 bits, as a number from 0 up to 1.
        return np.asarray((self._drawn(key, number) >> np.uint64(11)) * 2.0**-53 < self.documents)

    def count(self, n_features: int) -> int:
        """How many features a tree sees."""
        return max(1, int(self.features * n_features))

    def chosen(self, n_features: int, number: int) -> npt.NDArray[np.intp]:
        """Which features the tree of that number sees."""
        order = np.argsort(self._drawn(shuffled_keys(n_features), number), kind="stable")
        return np.sort(order[: self.count(n_features)])

    def _drawn(self, key: npt.NDArray[np.uint64], number: int) -> npt.NDArray[np.uint64]:
        start = np.array([self.seed * 2**32 + number], dtype=np.uint64)
        return np.asarray(mix.py_func(key ^ mix.py_func(start * GOLDEN)))


class SharedGrower:
    """An XGBoost booster in training, on the documents of this worker among others."""

    def __init__(
        self,
        group: Group,
        features: PartFeatures,
        parameters: dict[str, Any],
        *,
        sampling: Sampling,
        continued: bytes | None = None,
        cache: Path | None = None,
    ) -> None:
        self._group, self._n_parts, self._numbers = group, features.n_parts, features.numbers
        self._sampling = sampling
        n = len(features.names)
        if sampling.count(n) < n:
            # Half a feature more, so that rounding down gives their number.
            parameters = {**parameters, "colsample_bytree": (sampling.count(n) + 0.5) / n}
        self._names = allowed_names(features.names, xgboost_allows, "f{}".format)
        self._types = ["c" if name in features.categories else "q" for name in features.names]
        self._bins = int(parameters.get("max_bin", _DEFAULT_BINS))
        self._data, self._offsets = self._matrix(features, cache)
        self._key = _document_keys(self._numbers, self._offsets)
        model = None if continued is None else bytearray(continued)
        self._booster = xgboost.Booster(parameters, [self._data], model_file=model)
        self._booster.set_param(parameters)
        # A matrix without rows forgets them.
        self._booster.feature_names, self._booster.feature_types = self._names, self._types
        self._held_out = TreeByTree(self._one_tree)
        self._held_out_rows: xgboost.DMatrix | None = None

    # The documents --------------------------------------------------------------------------------

    def _matrix(
        self, features: PartFeatures, cache: Path | None
    ) -> tuple[xgboost.DMatrix, IntArray]:
        """The documents of this worker in the shared bins, and where those of each part begin."""
        points = points_for(features.n_parts)
        told, sizes = {}, []
        blocks: list[npt.NDArray[np.floating]] = []
        for number, part in zip(features.numbers, features, strict=True):
            told[number] = summaries(part, points)
            sizes.append(len(part))
            if cache is None:
                blocks.append(part.values)
        n = len(features.names)
        reference = self._reference(
            self._group.matrix(told, features.n_parts, (n, 2, points)), features
        )
        offsets = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64))).astype(np.int64)
        if cache is not None and len(features.numbers):
            source = _PartIterator(features, self._names, self._types, cache)
            return xgboost.ExtMemQuantileDMatrix(
                source, ref=reference, max_bin=self._bins, enable_categorical=True
            ), offsets
        values = np.concatenate(blocks) if blocks else np.empty((0, n), dtype=np.float32)
        return xgboost.QuantileDMatrix(
            values, ref=reference, max_bin=self._bins, feature_names=self._names,
            feature_types=self._types, enable_categorical=True,
        ), offsets  # fmt: skip

    def _reference(self, told: FloatArray, features: PartFeatures) -> xgboost.QuantileDMatrix:
        """A matrix whose bins are the shared ones."""
        most = self._bins
        columns = [edges(told[:, k], most) for k in range(told.shape[1])]
        sizes = [len(features.categories.get(name, ())) for name in features.names]
        if not any(len(c) > 1 or n > 1 for c, n in zip(columns, sizes, strict=True)):
            raise DataError("every feature has the same value in all documents: nothing to rank by")
        return xgboost.QuantileDMatrix(
            edge_matrix(columns, sizes), max_bin=most, feature_names=self._names,
            feature_types=self._types, enable_categorical=True,
        )  # fmt: skip

    @property
    def offsets(self) -> IntArray:
        """Where the documents of each of this worker's parts begin, and the number of them."""
        return self._offsets

    # Growing --------------------------------------------------------------------------------------

    @property
    def score(self) -> FloatArray:
        """The present score of every document of this worker."""
        return np.asarray(self._booster.predict(self._data, output_margin=True), np.float64)

    def grow(self, gradient: FloatArray, hessian: FloatArray) -> bool:
        """Add the tree that these derivatives ask for; False if no split was possible."""
        number = self._booster.num_boosted_rounds()
        self._choose_features(number)
        if self._sampling.documents < 1.0:
            kept = self._sampling.kept(self._key, number)
            gradient, hessian = np.where(kept, gradient, 0.0), np.where(kept, hessian, 0.0)
        rounded = [self._exact(values) for values in (gradient, hessian)]
        self._booster.boost(self._data, number, grad=rounded[0], hess=rounded[1])
        return "split" in self._booster[number : number + 1].get_dump(dump_format="json")[0]

    def _choose_features(self, number: int) -> None:
        n = len(self._names)
        if self._sampling.count(n) == n:
            return
        # XGBoost draws so many features by log(u) / weight: a ratio of 1e30 leaves it no choice.
        weight = np.full(n, 1e-6, dtype=np.float32)
        weight[self._sampling.chosen(n, number)] = 1e24
        self._data.set_info(feature_weights=weight)

    def _exact(self, values: FloatArray) -> npt.NDArray[np.float32]:
        """The values rounded so that any sum of them is exact in double precision."""
        ends = self._offsets
        mine = {
            number: np.abs(values[ends[k] : ends[k + 1]]).sum()
            for k, number in enumerate(self._numbers)
        }
        total = float(self._group.add(mine, self._n_parts))
        single = values.astype(np.float32)
        if not total > 0:
            return single
        step = 2.0 ** (np.ceil(np.log2(total)) - _EXACT_BITS)
        return np.asarray(np.round(single.astype(np.float64) / step) * step, dtype=np.float32)

    def held_out_score(self, values: npt.NDArray[np.floating]) -> FloatArray:
        """The present score of rows that are not trained on, the same ones in every call."""
        return self._held_out.score(values, self._booster.num_boosted_rounds())

    def _one_tree(self, values: npt.NDArray[np.floating], number: int) -> FloatArray:
        if self._held_out_rows is None:
            self._held_out_rows = xgboost.DMatrix(
                values, feature_names=self._names, feature_types=self._types,
                enable_categorical=True,
            )  # fmt: skip
        found = self._booster.predict(
            self._held_out_rows, output_margin=True, iteration_range=(number, number + 1)
        )
        return np.asarray(found, dtype=np.float64)

    def finish(self, n_rounds: int) -> Trees:
        """The first ``n_rounds`` trees, without the training data."""
        return XGBoostTrees(self._booster[:n_rounds])

    def raw(self, n_rounds: int) -> bytes:
        """The first ``n_rounds`` trees as XGBoost's JSON."""
        return bytes(self._booster[:n_rounds].save_raw("json"))


class _PartIterator(xgboost.DataIter):
    """Parts as XGBoost's external memory reads them: one at a time, as often as it likes."""

    def __init__(
        self, features: PartFeatures, names: list[str], types: list[str], cache: Path
    ) -> None:
        self._features, self._names, self._types, self._at = features, names, types, 0
        super().__init__(cache_prefix=str(cache / "pages"))

    def next(self, input_data: Any) -> bool:
        """Hand over the next part that has documents; False after the last one."""
        while self._at < len(self._features.numbers):
            part = self._features.load(self._features.numbers[self._at])
            self._at += 1
            if len(part):
                input_data(data=part.values, feature_names=self._names, feature_types=self._types)
                return True
        return False

    def reset(self) -> None:
        """Begin again."""
        self._at = 0


def _document_keys(numbers: Sequence[int], offsets: IntArray) -> npt.NDArray[np.uint64]:
    """A hash of every document of this worker by its part and its row there."""
    keys = [
        mix.py_func((np.arange(end - start, dtype=np.uint64) + np.uint64(number << 40)) * GOLDEN)
        for number, start, end in zip(numbers, offsets[:-1], offsets[1:], strict=True)
    ]
    return np.concatenate(keys) if keys else np.empty(0, dtype=np.uint64)
