"""NeuralRanker: a feed-forward network that learns from clicks, on PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray
from unskew.errors import UsageError
from unskew.log.impressions import Impressions
from unskew.pairs.statistic import Pairs
from unskew.rankers.base import Ranker
from unskew.rankers.debias import Debiasing
from unskew.rankers.neural.network import restored
from unskew.rankers.neural.pytorch import device_of, pytorch_threads, safetensors
from unskew.rankers.neural.training import NeuralSettings, NeuralTraining, scores
from unskew.rankers.saving import numbers, read_json, write_json
from unskew.rankers.settings import ABOVE_ZERO, COMMON, COUNT, LAYERS, Constraint, one_of, seed_of
from unskew.rankers.standardizer import Standardizer
from unskew.registry import METHODS


@dataclass(kw_only=True, eq=False, repr=False)
class NeuralRanker(Ranker):
    """A network of three hidden layers, by default that of the dual-learning code.

    Features are standardised; the hidden layers (ELU) normalise what they pass on. It is trained by
    Adam on batches of distinct pages whose clicks are counts: an epoch costs the same however many
    sessions the log has. Needs PyTorch.

    Parameters
    ----------
    debias, p, n_positions, early_stopping_rounds, ndcg_at, verbose
        As for every `Ranker`; a round is an epoch. ``debias="dual-learning"`` learns the
        propensities by Dual Learning.
    loss
        ``"listwise"``: softmax cross-entropy over a page, clicks weighted by 1 / t_plus (t_minus
        has no part in it). ``"pairwise"``: logistic loss over pairs, weighted by
        1 / (t_plus * t_minus). ``"auto"``: the one that `debias` needs, else listwise.
    hidden
        The widths of the hidden layers.
    n_epochs, batch_pages, learning_rate
        Passes over the pages, pages in a batch, and Adam's rate.
    propensity_learning_rate
        Adam's rate for the propensities of Dual Learning.
    sigma
        Steepness of the pairwise loss.
    missing
        ``"impute"`` replaces a missing value by the mean and adds an indicator column for each
        feature that has gaps in training, ``"refuse"`` makes it an error.
    device
        ``"auto"`` (a GPU if there is one), ``"cpu"`` or ``"cuda"``.
    random_state
        Seed of the initial weights and of the batches. On a CPU it decides the model.
    n_jobs
        Threads on the CPU; None leaves PyTorch's own number. Another number may change the last
        digits.

    Attributes
    ----------
    position_bias_, t_plus_, t_minus_, bias_history_, validation_history_, best_round_
        As for every `Ranker`.
    network_
        The PyTorch module, on the CPU.
    loss_history_
        The mean training loss of every epoch, by weight.

    Examples
    --------
    >>> import unskew
    >>> from unskew.datasets.tables import features_table
    >>> labels = unskew.datasets.make_search_dataset(n_queries=60, n_features=16, seed=0)
    >>> log = unskew.simulate.sample(labels, sessions=2_000, seed=0)
    >>> data = unskew.read_log(log, features=features_table(labels))
    >>> ranker = unskew.NeuralRanker(hidden=(8,), n_epochs=2, random_state=0, verbose=0).fit(data)
    >>> ranker.predict(labels).shape == (len(labels),)
    True

    """

    constraints: ClassVar[Mapping[str, Constraint]] = {
        **COMMON,
        "loss": one_of("auto", "listwise", "pairwise"),
        "hidden": LAYERS,
        "n_epochs": COUNT,
        "batch_pages": COUNT,
        "learning_rate": ABOVE_ZERO,
        "propensity_learning_rate": ABOVE_ZERO,
        "sigma": ABOVE_ZERO,
        "missing": one_of("impute", "refuse"),
    }

    loss: str = "auto"
    hidden: Sequence[int] = (512, 256, 128)
    n_epochs: int = 30
    batch_pages: int = 256
    learning_rate: float = 1e-3
    propensity_learning_rate: float = 0.02
    sigma: float = 2.0
    missing: str = "impute"
    device: str = "auto"

    network_: Any = field(init=False)
    standardizer_: Standardizer = field(init=False)
    loss_history_: list[float] = field(init=False)

    def _check(self) -> None:
        super()._check()
        device_of(self.device)
        needed = METHODS[self.debias].loss if isinstance(self.debias, str) else None
        if self.loss != "auto" and needed not in {None, self.loss}:
            raise UsageError(
                f'debias="{self.debias}" needs loss="{needed}", got loss="{self.loss}": leave '
                'loss="auto", or give a debias that both losses go with, which are None, a '
                "PositionBias, propensities and estimators"
            )

    def _begin(
        self, data: Impressions, pairs: Pairs, debias: Debiasing, before: Self | None
    ) -> NeuralTraining:
        self.standardizer_ = Standardizer.of(data.features, missing=self.missing)
        auto = "listwise" if debias.learned is None else METHODS[debias.learned].loss
        settings = NeuralSettings(
            loss=str(auto) if self.loss == "auto" else self.loss,
            dual=debias.learned == "dual-learning", hidden=tuple(self.hidden),
            n_epochs=self.n_epochs, batch_pages=self.batch_pages, learning_rate=self.learning_rate,
            propensity_learning_rate=self.propensity_learning_rate, sigma=self.sigma, p=self.p,
            sides=debias.sides, seed=seed_of(self.random_state),
        )  # fmt: skip
        return NeuralTraining(
            data, self._rows(data.features.values), pairs, bias=debias.bias, settings=settings,
            device=device_of(self.device),
        )  # fmt: skip

    def _rows(self, values: npt.NDArray[np.floating]) -> npt.NDArray[np.float32]:
        return self.standardizer_.apply(values, self.feature_names_).astype(np.float32)

    def _threads(self) -> AbstractContextManager[None]:
        return pytorch_threads(self.n_jobs)

    def _keep(self, training: NeuralTraining, model: Any) -> None:
        self.network_, self.loss_history_ = model.eval(), training.losses

    def _predict(self, values: npt.NDArray[np.floating]) -> FloatArray:
        return scores(self.network_, self._rows(values), "cpu")

    def _model_files(self) -> dict[str, Callable[[Path], None]]:
        tensors = safetensors()
        state = {name: tensor.contiguous() for name, tensor in self.network_.state_dict().items()}
        model = {
            "standardizer": self.standardizer_.to_dict(),
            "loss_history": self.loss_history_,
        }
        return {
            "network.safetensors": lambda file: _write(file, tensors.save(state)),
            "model.json": lambda file: write_json(file, model),
        }

    def _restore(self, files: Mapping[str, Path]) -> None:
        model = read_json(files["model.json"])
        self.standardizer_ = Standardizer.from_dict(model["standardizer"])
        self.standardizer_.check(self.feature_names_, self.categories_)
        self.network_ = restored(files["network.safetensors"], len(self.standardizer_), self.hidden)
        self.loss_history_ = numbers(model["loss_history"], "loss_history").tolist()
        if "best_epoch" in model:  # 0.1.0 kept both here
            self.best_round_ = model["best_epoch"]
            self.validation_history_ = model["validation_history"]


def _write(file: Path, content: bytes) -> None:
    file.write_bytes(content)
