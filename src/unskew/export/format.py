"""What an export format is: it writes a model into files, and scores rows with them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from unskew.array_types import FloatArray
from unskew.errors import UsageError
from unskew.export.kernels import flatten, score_rows
from unskew.export.trees import Forest

Scores = Mapping[str, FloatArray]


# The file of sample rows and expected scores that is beside every export.
SAMPLES = "samples.json"


@dataclass(frozen=True)
class Exportable:
    """A model to export.

    Attributes
    ----------
    name
        What the model is called in the other system.
    ranker
        The fitted ranker.
    forest
        Its trees; None for a ranker without trees.
    version
        The version of the other system whose rules hold, empty if the format has no versions.

    """

    name: str
    ranker: Any
    forest: Forest | None
    version: str

    @property
    def trees(self) -> Forest:
        """The trees of a model that has some."""
        if self.forest is None:
            raise UsageError(f"{type(self.ranker).__name__} has no trees")
        return self.forest

    @property
    def names(self) -> tuple[str, ...]:
        """The features in the order of the training."""
        return tuple(self.ranker.feature_names_)


class ExportFormat(Protocol):
    """A format: what it writes, and what its reader makes of that."""

    def files(self, model: Exportable) -> Mapping[str, bytes]:
        """The files of the model by name; raises UsageError for what the format cannot express."""

    def score(self, files: Mapping[str, Path], values: FloatArray, version: str) -> Scores:
        """The scores of rows by each model file, read by its reader or by its reader's rules."""


def as_json(content: Any) -> bytes:
    """JSON in which every double survives."""
    return (json.dumps(content, indent=1, allow_nan=False) + "\n").encode()


def from_json(path: Path) -> Any:
    """The content of a JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))


def single(value: float) -> float:
    """A number in single precision."""
    return float(np.float32(value))


def score_forest(forest: Forest, values: FloatArray) -> FloatArray:
    """The scores of rows by a forest."""
    return score_rows(flatten(forest), np.ascontiguousarray(values))[0]


def refuse_categories(forest: Forest, engine: str) -> None:
    """Refuse a model with splits of categories, for an engine that knows numbers only."""
    for node in forest.splits():
        if node.categories is not None:
            raise UsageError(
                f"the model splits the categories of feature {forest.names[node.feature]!r}, and "
                f"{engine} compares numbers only: train with that feature as numbers (one column per "
                "category), or export to treelite, c, or the booster's own format"
            )
