"""ClickLikelihood: a click model on one log, seen from the relevance of its documents.

A click model has parameters of its own (examination, continuation, satisfaction) and one relevance
per document. Whoever holds the relevance (a table, boosted trees) asks the likelihood what the clicks
say about it and lets the model take its own EM step; neither knows the other's inside.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray
from unskew.clicks.fitting.log_clicks import LogClicks
from unskew.log.impressions import Impressions
from unskew.position_bias import PositionBias


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the clicks of a log say about the relevance of each document, at its present value.

    Attributes
    ----------
    log_likelihood
        The log-likelihood of all clicks.
    trials, successes
        The E-step: of so many expected trials of the document so many were relevant. The M-step of a
        free relevance is ``successes / trials``.
    gradient
        The derivative of the log-likelihood in the logit of the relevance.
    information
        Fisher's expected information about that logit, never negative. Chain models give what it
        would be if examination were known, which is more.

    """

    log_likelihood: float
    trials: FloatArray
    successes: FloatArray
    gradient: FloatArray
    information: FloatArray


@dataclass(frozen=True, eq=False)
class Prediction:
    """P(click) of every result of every pattern: given the clicks above it, and without them.

    One entry per pattern and slot; ``mass`` says how often, ``position`` where, ``clicked`` whether.
    """

    position: npt.NDArray[np.integer]
    clicked: npt.NDArray[np.bool_]
    mass: FloatArray
    conditional: FloatArray
    marginal: FloatArray


class ClickLikelihood(Protocol):
    """A click model on the clicks of one log."""

    clicks: LogClicks

    @property
    def n_documents(self) -> int:
        """How many documents have a relevance."""

    def evidence(self, relevance: FloatArray, *, whole: bool = True) -> Evidence:
        """What the clicks say about these relevances, by the model's present parameters.

        With ``whole=False`` the log-likelihood is NaN, which saves the time of its logarithms.
        """

    def maximise(self, evidence: Evidence, prior: FloatArray, strength: float) -> FloatArray:
        """The M-step of a free relevance under a beta prior of that mean and so many trials."""

    def settle(self) -> bool:
        """Find the model's own parameters without any relevance; returns whether that is possible."""

    def estimate_strengths(self) -> None:
        """Estimate how strongly the model's own parameters are drawn to their means, if they are."""

    def step(self) -> None:
        """The M-step of the model's own parameters, by the E-step of the latest `evidence`."""

    def add_profiles(
        self, relevance: FloatArray, first: int, values: FloatArray, log: FloatArray
    ) -> None:
        """Add to ``log`` how likely the clicks are as a function of single relevances.

        Row i of ``values`` has relevances to try for the document ``first + i``, while all others keep
        their ``relevance``. What does not depend on the one relevance is left out.
        """

    def own(self) -> FloatArray:
        """The model's own parameters, all of them probabilities, in one array."""

    def set_own(self, values: FloatArray) -> None:
        """Take over parameters in the order of `own`."""

    def on(
        self,
        data: Impressions,
        mass: FloatArray | None = None,
        *,
        known: npt.NDArray[np.int64] | None = None,
    ) -> ClickLikelihood:
        """The same parameters on other clicks of the same documents, or on other documents.

        ``known`` says which document of the present log each document of ``data`` is, -1 for none.
        """

    def predict(self, relevance: FloatArray) -> Prediction:
        """P(click) of every result."""

    def parameters(self) -> dict[str, Any]:
        """The model's own parameters by name, as arrays and numbers."""

    def examination(self, relevance: FloatArray) -> dict[str, Any]:
        """The chance to be examined with what it depends on, as the columns of a table."""

    def unlinked_positions(self) -> list[int]:
        """Positions that no document compares with the topmost one, if the model needs that."""

    def position_bias(self, context: Any = None) -> PositionBias:
        """How examination falls with the position, as a bias of the clicked side."""
