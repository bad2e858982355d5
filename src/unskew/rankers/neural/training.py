"""NeuralTraining: epochs over the pages of a log, and the bias that is learned with them."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray
from unskew.log.impressions import Impressions
from unskew.pairs.pair_losses import PairLosses
from unskew.pairs.statistic import Pairs
from unskew.position_bias import PositionBias
from unskew.rankers.neural.dual_losses import (
    bias_of_logits,
    inverse_propensity,
    inverse_relevance,
)
from unskew.rankers.neural.network import build, listwise_loss, pairwise_loss
from unskew.rankers.neural.page_batches import PageBatch, PageBatches
from unskew.rankers.neural.pytorch import pytorch

# The bound that the dual-learning code puts on the norm of a gradient.
_MOST_GRADIENT = 5.0
_ROWS = 1 << 16


@dataclass(frozen=True)
class NeuralSettings:
    """What the training needs to know beyond the data; see `NeuralRanker` for the meanings."""

    loss: str
    dual: bool = False
    hidden: Sequence[int] = (512, 256, 128)
    n_epochs: int = 30
    batch_pages: int = 256
    learning_rate: float = 1e-3
    propensity_learning_rate: float = 0.02
    sigma: float = 2.0
    p: float = 0.5
    sides: tuple[bool, bool] = (False, False)
    seed: int | None = None


class NeuralTraining:
    """A network in training on the statistics of a log.

    Each batch's loss is divided by the mean total weight of a batch, the same for all of them, so
    that its gradient is on average that of the whole log, however unevenly sessions fall on pages.
    A round is an epoch.
    """

    done_before = 0
    note = ""
    remarks = ()

    def __init__(
        self,
        data: Impressions,
        values: npt.NDArray[np.float32],
        pairs: Pairs,
        *,
        bias: PositionBias,
        settings: NeuralSettings,
        device: Any,
    ) -> None:
        torch = pytorch()
        self.settings, self.bias, self.device = settings, bias, device
        self.n_rounds, self.losses = settings.n_epochs, list[float]()
        pairwise = settings.loss == "pairwise"
        self.batches = PageBatches(
            data, pairs if pairwise else None, n_positions=len(bias), device=device
        )
        self._pairs = PairLosses.of(data.pages, pairs, len(bias)) if pairwise else None
        self._values = torch.as_tensor(values, device=device)
        self.network = build(values.shape[1], settings.hidden, seed=settings.seed).to(device)
        self._rng = np.random.default_rng(settings.seed)
        groups = [{"params": list(self.network.parameters()), "lr": settings.learning_rate}]
        self._logit = torch.zeros(len(bias), device=device, requires_grad=settings.dual)
        if settings.dual:
            groups.append({"params": [self._logit], "lr": settings.propensity_learning_rate})
        self._optimizer = torch.optim.Adam(groups)

    def step(self) -> bool:
        """One epoch, and its loss in `losses`."""
        self.losses.append(self.epoch())
        self.note = f"loss {self.losses[-1]:.4f}"
        return True

    def model(self) -> Any:
        """A copy of the network, on the CPU."""
        return deepcopy(self.network).to("cpu")

    def epoch(self) -> float:
        """One pass over all pages, then the bias; returns the mean loss by weight."""
        torch = pytorch()
        settings, batches = self.settings, self.batches
        self._inverse = [
            torch.as_tensor(1.0 / t, dtype=torch.float32, device=self.device)
            for t in (self.bias.t_plus, self.bias.t_minus)
        ]
        total = self._total_weight()
        per_batch = total * min(1.0, settings.batch_pages / len(batches))
        summed = torch.zeros((), device=self.device)
        for batch in batches.shuffled(settings.batch_pages, self._rng):
            loss = self.loss(batch)
            self._optimizer.zero_grad()
            (loss / per_batch).backward()
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), _MOST_GRADIENT)
            self._optimizer.step()
            summed += loss.detach()
        self._reestimate()
        return float(summed) / total

    def loss(self, batch: PageBatch) -> Any:
        """The loss of a batch; for Dual Learning the sum of both losses."""
        once = self.network(self._values.index_select(0, batch.distinct)).squeeze(1)
        score = once.index_select(0, batch.row)
        if self.settings.dual:
            clicks = batch.gain
            ranker = clicks * inverse_propensity(self._logit, batch.position)
            propensity = clicks * inverse_relevance(score, batch.first, batch.segment)
            logit = self._logit.index_select(0, batch.position)
            return listwise_loss(score, ranker, batch.segment, batch.n_pages) + listwise_loss(
                logit, propensity, batch.segment, batch.n_pages
            )
        plus, minus = self._inverse
        if not self.batches.pairs:
            weight = batch.gain * plus.index_select(0, batch.position)
            return listwise_loss(score, weight, batch.segment, batch.n_pages)
        weight = batch.weight * plus.index_select(0, batch.position.index_select(0, batch.i))
        weight = weight * minus.index_select(0, batch.position.index_select(0, batch.j))
        return pairwise_loss(score, batch.i, batch.j, weight, self.settings.sigma)

    def _total_weight(self) -> float:
        if self._pairs is not None:
            return float(self._pairs.debiased_weight(self.bias).sum())
        if self.settings.dual:
            return float(self.batches.gain.sum())
        plus = self._inverse[0].index_select(0, self.batches.position)
        return float((self.batches.gain * plus).sum())

    def _reestimate(self) -> None:
        if self.settings.dual:
            self.bias = bias_of_logits(self._logit)
        elif self._pairs is not None and any(self.settings.sides):
            loss = self._pairs.logistic(self.score(self._values), self.settings.sigma)
            self.bias = self._pairs.reestimated(
                loss, self.bias, p=self.settings.p, sides=self.settings.sides
            )

    def score(self, held_out: Any) -> FloatArray:
        """The present scores of standardised rows."""
        return scores(self.network, held_out, self.device)


def scores(network: Any, values: Any, device: Any) -> FloatArray:
    """The network's scores of standardised feature rows, block by block."""
    torch = pytorch()
    found = []
    with torch.inference_mode():
        for at in range(0, len(values), _ROWS):
            block = torch.as_tensor(values[at : at + _ROWS], dtype=torch.float32, device=device)
            found.append(network(block).squeeze(1).cpu().numpy())
    return np.concatenate(found).astype(np.float64)
