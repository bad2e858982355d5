"""The losses of Dual Learning (Ai, Bi, Luo, Guo, Croft, 2018), by which both models unbias each other.

For a page with clicks c, scores f and one logit g per position, both softmaxed over the page,

    loss of the ranker      - sum over clicked i of  (g_1 / g_i) * log softmax(f)_i    inverse propensity
    loss of the propensity  - sum over clicked i of  (f_1 / f_i) * log softmax(g)_i    inverse relevance

and each is minimised with the other's weights held fixed. Both are linear in the clicks, so that a
page's click counts stand for all its sessions. The reference of the propensities is position 1,
that of the relevance the first result of the page.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from unskew.pairs.update import LIMIT
from unskew.position_bias import PositionBias

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
