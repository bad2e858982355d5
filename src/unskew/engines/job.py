"""Job: all that a worker needs to know to train, and what it gives back."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from unskew.array_types import FloatArray
from unskew.errors import EngineError
from unskew.log.parts import Parts
from unskew.places import Place
from unskew.position_bias import PositionBias
from unskew.rankers.click_model.preparation import ClickSettings


@dataclass(frozen=True)
class Progress:
    """A training up to some round: enough to go on as if it had never stopped.

    ``looks`` is what the held-out parts said about each round; ``models`` are the models of the
    rounds that may still prove the best: how many trees, and the click model if there is one.
    ``documents`` is what the click model learned of each document of all parts, if it does (dbn).
    """

    n_trees: int
    trees: bytes
    t_plus: FloatArray
    t_minus: FloatArray
    looks: FloatArray
    models: Sequence[Any]
    offset: float | None = None
    without_a_tree: float | None = None
    documents: FloatArray | None = None


@dataclass(frozen=True)
class Job:
    """A training over parts: the same for every worker.

    Attributes
    ----------
    parts, held_out
        What to learn from, and what ends the training.
    ranker
        ``"lambdamart"`` or ``"click-model"``.
    parameters, bagging_fraction, feature_fraction, seed
        The trees, as XGBoost takes them, and the share of documents and features that each sees.
    bias, sides, p, sigma
        The bias to start from and which of its curves are learned, of the pairwise objective.
    click
        The same of the click model.
    n_rounds, patience
        The most rounds, and how many may pass without a better one.
    trees, done_before
        An earlier model that is continued, and its rounds.
    progress
        Where this training stopped before, if it did.
    checkpoints, checkpoint_every
        The folder or URI for that, and after how many rounds it is written.
    external_memory
        A folder for the binned features, if they are to stay on disk.
    key
        Tells one training from another: a checkpoint fits if it has the same.

    """

    parts: Parts
    held_out: Parts | None
    ranker: str
    parameters: Mapping[str, Any]
    bagging_fraction: float
    feature_fraction: float
    seed: int
    bias: PositionBias
    sides: tuple[bool, bool]
    p: float
    sigma: float
    click: ClickSettings | None
    n_rounds: int
    patience: int | None
    key: str
    trees: bytes | None = None
    done_before: int = 0
    progress: Progress | None = None
    checkpoints: Place | None = None
    checkpoint_every: int = 50
    external_memory: Path | None = None
    report: Mapping[str, Any] | None = None
    versions: Mapping[str, str] = field(default_factory=lambda: versions())


@dataclass(frozen=True)
class Outcome:
    """What a training gave: the model, its rounds, and what the user is to be told."""

    trees: bytes
    model: Any
    biases: Sequence[PositionBias]
    measures: Sequence[float]
    best: int | None
    bias: PositionBias
    shown: FloatArray
    offset: float | None
    remarks: Sequence[str]
    bytes_shared: int = 0


def versions() -> dict[str, str]:
    """The versions on which a model depends, of this process."""
    import xgboost

    from unskew import __version__

    return {
        "unskew": __version__, "xgboost": xgboost.__version__, "numpy": np.__version__,
        "python": ".".join(platform.python_version_tuple()[:2]),
    }  # fmt: skip


def check_versions(wanted: Mapping[str, str], worker: str) -> None:
    """Refuse to train beside workers of another version."""
    mine = versions()
    for name in ("unskew", "xgboost"):
        if wanted.get(name) != mine[name]:
            raise EngineError(
                f"{worker} has {name} {mine[name]}, and this program {wanted.get(name)}: install "
                "the same version everywhere"
            )


def shares(parts: Parts, n_workers: int) -> list[list[int]]:
    """Which parts each worker holds, with about as many documents and pages each.

    The largest part goes first, always to the worker that has the least.
    """
    size = [
        entry.counts["documents"] + entry.counts["pages"] + entry.counts["patterns"]
        for entry in parts.entries
    ]
    held: list[list[int]] = [[] for _ in range(n_workers)]
    load = [0] * n_workers
    for number in sorted(range(len(size)), key=lambda k: (-size[k], k)):
        worker = load.index(min(load))
        held[worker].append(number)
        load[worker] += size[number] + 1
    return [sorted(numbers) for numbers in held]
