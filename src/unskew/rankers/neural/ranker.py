"""NeuralRanker: a feed-forward network that learns from clicks, on PyTorch."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.errors import UsageError
from unskew.log.features import Features
from unskew.log.impressions import Impressions
from unskew.log.labelled import LabelledData
from unskew.position_bias import PositionBias
from unskew.progress import progress_bar
from unskew.rankers.base import Ranker
from unskew.rankers.bias_history import BiasHistory
from unskew.rankers.inputs import pairs_of
from unskew.rankers.labels import label_impressions
from unskew.rankers.neural.pytorch import device_of, pytorch, pytorch_threads
from unskew.rankers.neural.training import NeuralSettings, NeuralTraining, scores
from unskew.rankers.settings import check_settings, seed_of, starting_bias
from unskew.rankers.standardizer import Standardizer
from unskew.rankers.validation import Validation, best_round

__all__ = ["DUAL", "NeuralRanker"]

FloatArray = npt.NDArray[np.float64]

DUAL = "dual-learning"
# The loss that each learned bias needs; anything else goes with both.
_LOSS_OF = {"pairwise": "pairwise", "clicked": "pairwise", DUAL: "listwise"}


class NeuralRanker(Ranker):
    """A network of three hidden layers, by default that of the dual-learning code.

    Features are standardised; the hidden layers (ELU) normalise what they pass on. It is trained by
    Adam on batches of distinct pages whose clicks are counts: an epoch costs the same however many
    sessions the log has. Needs PyTorch.

    Parameters
    ----------
    debias
        ``"pairwise"`` learns both bias curves by Pairwise Debiasing, re-estimated after every
        epoch, ``"clicked"`` `t_plus` alone, ``"dual-learning"`` the propensities by Dual Learning;
        ``None`` takes the clicks as they are. A `PositionBias`, an array of examination
        probabilities or an estimator with ``fit(Impressions)`` gives a bias that is held fixed.
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
    p, sigma
        Regularisation of a learned bias and steepness of the pairwise loss.
    missing
        ``"impute"`` replaces a missing value by the mean and adds an indicator column for each
        feature that has gaps in training, ``"refuse"`` makes it an error.
    n_positions
        The length of the bias curves; positions beyond it share the last entry.
    early_stopping_rounds
        End the training if the validation data of `fit` saw no better epoch for so long, and keep
        the best one.
    ndcg_at
        The k of the NDCG@k on validation labels and of `score`.
    device
        ``"auto"`` (a GPU if there is one), ``"cpu"`` or ``"cuda"``.
    random_state
        Seed of the initial weights and of the batches. On a CPU it decides the model.
    n_jobs
        Threads on the CPU; None leaves PyTorch's own number. Another number may change the last
        digits.
    verbose
        0 is silent, 1 shows a progress bar.

    Attributes
    ----------
    network_
        The PyTorch module, on the CPU.
    position_bias_, t_plus_, t_minus_, bias_history_
        The bias after the last epoch, and after every epoch.
    loss_history_
        The mean training loss of every epoch, by weight.
    validation_history_, best_epoch_
        The validation measure of every epoch (clicks judge all by the bias of the last one
        trained), and the epoch that early stopping kept, or None.

    """

    network_: Any
    standardizer_: Standardizer
    loss_history_: list[float]
    validation_history_: list[float]
    best_epoch_: int | None

    def __init__(
        self,
        *,
        debias: Any = "pairwise",
        loss: str = "auto",
        hidden: Sequence[int] = (512, 256, 128),
        n_epochs: int = 30,
        batch_pages: int = 256,
        learning_rate: float = 1e-3,
        propensity_learning_rate: float = 0.02,
        p: float = 0.5,
        sigma: float = 2.0,
        missing: str = "impute",
        n_positions: int | None = None,
        early_stopping_rounds: int | None = None,
        ndcg_at: int = 10,
        device: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 1,
    ) -> None:
        self.debias = debias
        self.loss = loss
        self.hidden = hidden
        self.n_epochs = n_epochs
        self.batch_pages = batch_pages
        self.learning_rate = learning_rate
        self.propensity_learning_rate = propensity_learning_rate
        self.p = p
        self.sigma = sigma
        self.missing = missing
        self.n_positions = n_positions
        self.early_stopping_rounds = early_stopping_rounds
        self.ndcg_at = ndcg_at
        self.device = device
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        click: Any = None,
        *,
        session: Any = None,
        query: Any = None,
        position: Any = None,
        doc: Any = None,
        weight: Any = None,
        context: Any = None,
        validation: LabelledData | Impressions | None = None,
    ) -> NeuralRanker:
        """Learn from clicks: from `Impressions`, or from one row per result of every session."""
        self._check()
        data = self._clicks(
            X, click, session=session, query=query, position=position, doc=doc, weight=weight,
            context=context,
        )  # fmt: skip
        n_positions = min(self.n_positions or data.max_position, data.max_position)
        return self._learn(data, self.debias, n_positions, validation)

    def fit_labels(
        self,
        X: Any,
        relevance: Any = None,
        *,
        query: Any = None,
        validation: LabelledData | Impressions | None = None,
    ) -> NeuralRanker:
        """Learn from relevance labels, which have no position bias: `debias` does not matter."""
        self._check()
        labels = self._labels(X, relevance, query)
        return self._learn(label_impressions(labels), None, 1, validation)

    def _check(self) -> None:
        pytorch()
        check_settings(self)
        needed = _LOSS_OF.get(self.debias) if isinstance(self.debias, str) else None
        if self.loss != "auto" and needed not in {None, self.loss}:
            raise UsageError(
                f'debias="{self.debias}" needs loss="{needed}", got loss="{self.loss}": the '
                'pairwise loss goes with "pairwise" and "clicked", the listwise one with '
                f'"{DUAL}", both with None, a PositionBias, propensities and estimators'
            )

    def _learn(
        self,
        data: Impressions,
        debias: Any,
        n_positions: int,
        validation: LabelledData | Impressions | None,
    ) -> NeuralRanker:
        device, pairs = device_of(self.device), pairs_of(data)
        dual = isinstance(debias, str) and debias == DUAL
        bias, sides = starting_bias(
            None if dual else debias, n_positions, data=data, ranker="dnn", n_jobs=self.n_jobs
        )
        watch = self._watch(
            validation, n_positions=len(bias), sigma=self.sigma, k=self.ndcg_at,
            patience=self.early_stopping_rounds,
        )  # fmt: skip
        self.standardizer_ = Standardizer.of(data.features, missing=self.missing)
        values = self._inputs(data.features)
        auto = _LOSS_OF.get(debias, "listwise") if isinstance(debias, str) else "listwise"
        settings = NeuralSettings(
            loss=auto if self.loss == "auto" else self.loss, dual=dual, hidden=tuple(self.hidden),
            batch_pages=self.batch_pages, learning_rate=self.learning_rate,
            propensity_learning_rate=self.propensity_learning_rate, sigma=self.sigma, p=self.p,
            sides=sides, seed=seed_of(self.random_state),
        )  # fmt: skip
        training = NeuralTraining(data, values, pairs, bias=bias, settings=settings, device=device)
        with pytorch_threads(self.n_jobs):
            self._epochs(training, watch)
        return self

    def _epochs(self, training: NeuralTraining, watch: Validation | None) -> None:
        """Train, look at held-out data after every epoch, and keep what is asked for."""
        biases: list[PositionBias] = []
        losses: list[float] = []
        measures: list[float] = []
        networks: list[Any] = []
        best: int | None = None
        held_out = None if watch is None else self._inputs(watch.features)
        with progress_bar("training", self.n_epochs, show=self.verbose > 0) as advance:
            try:
                for number in range(1, self.n_epochs + 1):
                    losses.append(training.epoch())
                    biases.append(training.bias)
                    note = f"loss {losses[-1]:.4f}"
                    if watch is not None:
                        watch.look(training.score(held_out))
                        measures = watch.measures(training.bias).tolist()
                        note += f"  {watch.name} {measures[-1]:.4f}"
                    advance(1, note)
                    if watch is None or self.early_stopping_rounds is None:
                        continue
                    # As the bias moves, an earlier epoch may turn out to be the best one.
                    networks.append(deepcopy(training.network).to("cpu"))
                    best = best_round(watch, np.array(measures))
                    if number - best >= self.early_stopping_rounds:
                        break
            except KeyboardInterrupt:
                if not biases:
                    raise
                warnings.warn(
                    f"training was interrupted: the model keeps the {len(biases)} epochs that "
                    "were complete, and part of the next",
                    stacklevel=4,
                )
        last = best or len(biases)
        kept = training.network if best is None else networks[best - 1]
        self.network_ = kept.to("cpu").eval()
        self.position_bias_ = biases[last - 1]
        self.bias_history_ = BiasHistory.of(biases[:last], n_positions=len(training.bias))
        self.loss_history_, self.validation_history_ = losses, measures
        self.best_epoch_ = best

    def _inputs(self, features: Features) -> npt.NDArray[np.float32]:
        """The network's inputs: standardised, in single precision."""
        values = self.standardizer_.apply(features.values, features.names)
        return values.astype(np.float32)

    def _predict(self, values: npt.NDArray[np.floating]) -> FloatArray:
        return scores(self.network_, self._inputs(Features(values, self.feature_names_)), "cpu")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the ranker into a folder, which `unskew.load` reads; never half of it."""
        from unskew.rankers.neural.folder import save

        save(self, path)
