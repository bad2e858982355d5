"""TreeRanker: what rankers of boosted trees share, whatever loss the trees are grown on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray
from unskew.errors import UsageError
from unskew.log.features import Features
from unskew.rankers.base import Ranker
from unskew.rankers.ranking import Explanation
from unskew.rankers.settings import ABOVE_ZERO, COUNT, SHARE, Constraint, optional, whole
from unskew.rankers.sizes import TreeSizes
from unskew.registry import BOOSTERS
from unskew.trees.boosters import Grower, Trees, TreeSettings, library

# The settings of trees, beside the fewest documents in a leaf.
TREES: Mapping[str, Constraint] = {
    "n_estimators": COUNT,
    "learning_rate": ABOVE_ZERO,
    "num_leaves": optional(whole(2, 131_072)),  # LightGBM's own limit
    "feature_fraction": SHARE,
    "bagging_fraction": SHARE,
    "min_sum_hessian_in_leaf": ABOVE_ZERO,
    "booster": Constraint(f"one of {sorted(BOOSTERS)}", lambda value: value in [*BOOSTERS]),
}


@dataclass(kw_only=True, eq=False, repr=False)
class TreeRanker(Ranker):
    """A ranker whose scores are the sum of boosted trees.

    The ``__init__`` of a ranker takes any further parameter of the booster beside these settings, and
    keeps it in `_booster_params`.
    """

    n_estimators: int | None = None
    learning_rate: float = 0.05
    num_leaves: int | None = None
    feature_fraction: float = 0.9
    bagging_fraction: float = 0.9
    min_data_in_leaf: int | None = None
    min_sum_hessian_in_leaf: float = 2.5
    booster: str = "lightgbm"
    _booster_params: dict[str, Any] = field(default_factory=dict)

    trees_: Trees = field(init=False)
    sizes_: TreeSizes = field(init=False)

    # Parameters ---------------------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Every parameter, those for the booster included."""
        return {**super().get_params(deep=deep), **self._booster_params}

    def set_params(self, **params: Any) -> Self:
        """Change parameters; a name that is not one of ours goes to the booster."""
        ours = self._get_param_names()
        for name, value in params.items():
            if name in ours:
                setattr(self, name, value)
            else:
                self._booster_params = {**self._booster_params, name: value}
        return self

    # Learning -----------------------------------------------------------------------------------

    def _sizes(self, n_documents: int, n_rows: int) -> TreeSizes:
        """The sizes of the trees for so many documents, shown in so many rows of a log."""
        raise NotImplementedError

    def _documents_in_bin(self, n_documents: int, n_rows: int) -> int:
        """The fewest documents in a bin of feature values."""
        raise NotImplementedError

    def _tree_settings(self, n_documents: int, n_rows: int, seed: int | None) -> TreeSettings:
        """How the trees are grown on so many documents; their sizes are settled by it."""
        self.sizes_ = self._sizes(n_documents, n_rows)
        return TreeSettings(
            learning_rate=self.learning_rate,
            num_leaves=self.sizes_.num_leaves,
            feature_fraction=self.feature_fraction,
            bagging_fraction=self.bagging_fraction,
            min_data_in_leaf=self.sizes_.min_data_in_leaf,
            min_data_in_bin=self._documents_in_bin(n_documents, n_rows),
            min_sum_hessian_in_leaf=self.min_sum_hessian_in_leaf,
            seed=seed,
            n_jobs=self.n_jobs,
            extra=self._booster_params,
        )

    def _start_trees(
        self, rows: Features, n_rows: int, seed: int | None, before: Self | None
    ) -> tuple[Grower, int]:
        """The trees before the first round, and how many there are already."""
        earlier = None if before is None else before.trees_
        settings = self._tree_settings(len(rows), n_rows, seed)
        grower = library(self.booster).start(rows, settings, earlier)
        return grower, 0 if earlier is None else earlier.n_rounds

    def _check_continues(self, before: Ranker) -> None:
        mine = next(kind for kind in type(self).__mro__ if TreeRanker in kind.__bases__)
        if not isinstance(before, TreeRanker) or not isinstance(before, mine):
            article = "an" if mine.__name__[0] in "AEIOU" else "a"
            raise UsageError(
                f"init_model must be {article} {mine.__name__}, got a {type(before).__name__}"
            )
        if before.booster != self.booster:
            raise UsageError(
                f"init_model was grown by {before.booster}, this ranker uses {self.booster}"
            )

    # Using --------------------------------------------------------------------------------------

    def _predict(self, values: npt.NDArray[np.floating]) -> FloatArray:
        return self.trees_.predict(values)

    def explain(self, X: Any) -> Explanation:
        """What each feature adds to the score of every row, by the booster's own contributions."""
        self._check_fitted()
        parts = self.trees_.contributions(self._values(X))
        return Explanation(self.feature_names_, parts[:, :-1], float(parts[0, -1]))

    @property
    def feature_importances_(self) -> FloatArray:
        """How much each feature improved the loss, as a share of all."""
        self._check_fitted()
        gain = self.trees_.importances("gain")
        total = gain.sum()
        share: FloatArray = gain / total if total > 0 else gain
        return share

    @property
    def n_estimators_(self) -> int:
        """The most trees that training would have grown: the setting, or what followed the data."""
        return self.sizes_.n_estimators

    @property
    def num_leaves_(self) -> int:
        """The most leaves of a tree: the setting, or what followed the data."""
        return self.sizes_.num_leaves

    @property
    def min_data_in_leaf_(self) -> int:
        """The fewest documents in a leaf: the setting, or what followed the data."""
        return self.sizes_.min_data_in_leaf

    # On disk ------------------------------------------------------------------------------------

    def _model_files(self) -> dict[str, Callable[[Path], None]]:
        return {library(self.booster).file_name: self.trees_.write}

    def _fitted_numbers(self) -> dict[str, int]:
        return asdict(self.sizes_) if hasattr(self, "sizes_") else {}

    def _restore_numbers(self, numbers: Mapping[str, int]) -> None:
        names = [field.name for field in fields(TreeSizes)]
        if numbers:
            self.sizes_ = TreeSizes(*(int(numbers[name]) for name in names))
        elif all(isinstance(getattr(self, name, None), int) for name in names):
            # A folder of an earlier version, whose settings say it all.
            self.sizes_ = TreeSizes(*(getattr(self, name) for name in names))

    def _restore(self, files: Mapping[str, Path]) -> None:
        backend = library(self.booster)
        self.trees_ = backend.read(files[backend.file_name], len(self.feature_names_))
