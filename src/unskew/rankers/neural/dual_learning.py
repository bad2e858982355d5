"""Dual Learning: propensities and a ranker that unbias each other (Ai, Bi, Luo, Guo, Croft, 2018).

For a page with clicks c, scores f and one logit g per position, both softmaxed over the page,

    loss of the ranker      - sum over clicked i of  (g_1 / g_i) * log softmax(f)_i    inverse propensity
    loss of the propensity  - sum over clicked i of  (f_1 / f_i) * log softmax(g)_i    inverse relevance

and each is minimised with the other's weights held fixed. Both are linear in the clicks, so that a
page's click counts stand for all its sessions. The reference of the propensities is position 1,
that of the relevance the first result of the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unskew.log.impressions import Impressions
from unskew.pairs.update import LIMIT
from unskew.position_bias import PositionBias

__all__ = ["DualLearning", "bias_of_logits", "inverse_propensity", "inverse_relevance"]

# A weight beyond this bound would let a single click decide a whole batch.
_LOG_LIMIT = float(np.log(LIMIT))


def inverse_propensity(logit: Any, position: Any) -> Any:
    """g_1 / g_i for results at these positions (counted from 0), without gradient."""
    fixed = logit.detach()
    gap = (fixed[0] - fixed.index_select(0, position)).clamp(-_LOG_LIMIT, _LOG_LIMIT)
    return gap.exp()


def inverse_relevance(score: Any, first: Any, segment: Any) -> Any:
    """f_1 / f_i for each result, ``first`` being where each page begins, without gradient."""
    fixed = score.detach()
    top = fixed.index_select(0, first).index_select(0, segment)
    return (top - fixed).clamp(-_LOG_LIMIT, _LOG_LIMIT).exp()


def bias_of_logits(logit: Any) -> PositionBias:
    """The bias that the propensity model stands for: the clicked side alone."""
    values = np.asarray(logit.detach().cpu().numpy(), dtype=np.float64)
    gap = np.clip(values - values[0], -_LOG_LIMIT, _LOG_LIMIT)
    return PositionBias.from_propensities(np.exp(gap))


@dataclass(frozen=True)
class DualLearning:
    """Position bias by Dual Learning; the ranker learned beside it is thrown away.

    To keep that ranker, use ``NeuralRanker(debias="dual-learning")``, of which these are the
    settings. Needs PyTorch.
    """

    hidden: Sequence[int] = (512, 256, 128)
    n_epochs: int = 30
    batch_pages: int = 256
    learning_rate: float = 1e-3
    propensity_learning_rate: float = 0.02
    n_positions: int | None = None
    missing: str = "impute"
    device: str = "auto"
    random_state: Any = 0
    n_jobs: int | None = None

    def fit(self, data: Impressions) -> PositionBias:
        """The propensities of a log relative to position 1, as a bias of the clicked side."""
        # The ranker is to the right of the biases: only this method needs it, and only here.
        from unskew.rankers.neural.ranker import NeuralRanker

        ranker = NeuralRanker(
            debias="dual-learning", hidden=self.hidden, n_epochs=self.n_epochs,
            batch_pages=self.batch_pages, learning_rate=self.learning_rate,
            propensity_learning_rate=self.propensity_learning_rate, missing=self.missing,
            n_positions=self.n_positions, device=self.device, random_state=self.random_state,
            n_jobs=self.n_jobs, verbose=0,
        )  # fmt: skip
        return ranker.fit(data).position_bias_
