"""Where boosting begins: one relevance for all documents, and the curves that go with it.

With one relevance r, a model explains the clicks of a state by ``slope * r = CTR``. How much of it is
slope and how much is r no log can tell; the state with the highest CTR begins with a slope of 1.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit

from unskew.array_types import FloatArray
from unskew.clicks.fitting.affine import AffineLikelihood
from unskew.clicks.fitting.likelihood import ClickLikelihood, Evidence
from unskew.rankers.click_model.objective import Objective

# How many impressions the CTR of its position is worth to a state, so that none begins at 0 or 1.
PSEUDO_IMPRESSIONS = 10.0
# The share of its CTR that a position's clicks without relevance begin with.
TRUST_SHARE = 0.1
# Newton steps of the one relevance, with EM between them, and the largest step of its logit.
WARM_UP, LARGEST_STEP = 10, 2.0
LOWEST, HIGHEST = 0.001, 0.9


def start_curves(likelihood: ClickLikelihood) -> float:
    """Set the curves by the CTR of each state relative to the highest; returns that as a logit.

    Chains find their parameters from any start: theirs stay, and the logit is that of one half.
    """
    if not isinstance(likelihood, AffineLikelihood):
        return 0.0
    ctr = _state_ctr(likelihood)
    highest = float(np.clip(ctr.max(), LOWEST, HIGHEST))
    if likelihood.with_base:
        likelihood.base = TRUST_SHARE * ctr
    shared = ctr - likelihood.base * (1.0 - highest)
    likelihood.slope = np.clip(shared / highest, 0.0, 1.0)
    return float(logit(highest))


def _state_ctr(likelihood: AffineLikelihood) -> FloatArray:
    """Clicks per impression of each state, drawn towards those of its position and of the log."""
    at = likelihood.states.position - 1
    shown, clicks = likelihood.totals
    overall = clicks.sum() / shown.sum()
    place_shown, place_clicks = np.bincount(at, weights=shown), np.bincount(at, weights=clicks)
    pseudo = PSEUDO_IMPRESSIONS
    place = (place_clicks + pseudo * overall) / (place_shown + pseudo)
    ctr: FloatArray = (clicks + pseudo * place[at]) / (shown + pseudo)
    return ctr


def starting_offset(objective: Objective, n_documents: int, start: float) -> float:
    """The logit of the one relevance that explains clicks or labels best, from a start."""
    offset = start
    for _ in range(WARM_UP):
        relevance = np.full(n_documents, expit(offset))
        objective.update(relevance, 1)
        offset += _newton_step(objective.evidence(relevance))
    return offset


def _newton_step(evidence: Evidence) -> float:
    information = evidence.information.sum()
    if not information > 0:
        return 0.0
    return float(np.clip(evidence.gradient.sum() / information, -LARGEST_STEP, LARGEST_STEP))
