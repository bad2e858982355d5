"""What the trees are grown on: the likelihood of clicks, or of relevance labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from unskew.array_types import FloatArray
from unskew.clicks.fitting.likelihood import ClickLikelihood, Evidence
from unskew.errors import DataError
from unskew.log.grades import gain
from unskew.log.impressions import Impressions
from unskew.log.labelled import LabelledData
from unskew.position_bias import PositionBias
from unskew.rankers.click_model.learned import LearnedClickModel, follow, tempered

_TINY = 1e-12


class Objective(Protocol):
    """Clicks or labels, seen from the relevance of every document."""

    @property
    def bias(self) -> PositionBias:
        """How examination falls with the position."""

    def evidence(self, relevance: FloatArray) -> Evidence:
        """What clicks or labels say about these relevances, if not how likely they are."""

    def update(self, relevance: FloatArray, n_steps: int | None = None) -> None:
        """Re-estimate how clicks come about, given these relevances, in so many steps."""

    def learned(self) -> LearnedClickModel | None:
        """The present click model, as something that later updates do not change."""


class ClickObjective:
    """The log-likelihood of the clicks of a log by a click model that is learned meanwhile.

    Parameters
    ----------
    likelihood
        The click model on the clicks to learn from.
    name, n_positions
        The model's name in the registry, and how many positions it tells apart.
    p
        The trees see the examination to the power of ``1 / (p + 1)``.
    em_steps
        EM steps in every update.
    held
        A position bias that is held: there are no updates.

    """

    def __init__(
        self,
        likelihood: ClickLikelihood,
        *,
        name: str,
        n_positions: int,
        p: float = 0.0,
        em_steps: int = 3,
        held: PositionBias | None = None,
    ) -> None:
        self.likelihood, self._name, self._n_positions = likelihood, name, n_positions
        self._p, self._em_steps, self._held = p, em_steps, held
        self._bias: PositionBias | None = held

    @property
    def learns(self) -> bool:
        """Whether updates change the click model."""
        return self._held is None

    @property
    def bias(self) -> PositionBias:
        """How examination falls with the position, averaged over what else it depends on."""
        if self._bias is None:
            self._bias = self.likelihood.position_bias()
        return self._bias

    def evidence(self, relevance: FloatArray) -> Evidence:
        """What the clicks say about these relevances."""
        return tempered(self.likelihood, self._p).evidence(relevance, whole=False)

    def update(self, relevance: FloatArray, n_steps: int | None = None) -> None:
        """So many EM steps of the click model, by default those of a round."""
        if not self.learns:
            return
        for _ in range(self._em_steps if n_steps is None else n_steps):
            self.likelihood.evidence(relevance, whole=False)
            self.likelihood.step()
        self._bias = None

    def learned(self) -> LearnedClickModel:
        """The present click model."""
        return LearnedClickModel.of(self._name, self.likelihood, self._n_positions)

    def held_out(self, data: Impressions, mass: FloatArray | None) -> Callable[[], ClickLikelihood]:
        """Gives other clicks with the present parameters, whenever it is called."""
        other = self.learned().on(data, mass)

        def present() -> ClickLikelihood:
            follow(other, self.likelihood)
            return tempered(other, self._p)

        return present


def relevance_of(labels: LabelledData) -> FloatArray:
    """The relevance between 0 and 1 that each grade stands for: its gain over the highest one's."""
    grade = np.asarray(labels.relevance, dtype=np.float64)
    bad = np.flatnonzero(~(grade >= 0))
    if len(bad):
        raise DataError(
            f"relevance must be 0 or higher to train on: row {bad[0] + 1} has {grade[bad[0]]:g}"
        )
    if not grade.max(initial=0.0) > grade.min(initial=np.inf):
        raise DataError(
            "there is nothing to learn from: every document has the same relevance. Give labels "
            "that differ"
        )
    share: FloatArray = gain(grade) / gain(grade.max())
    return share


class LabelObjective:
    """The cross-entropy of relevance labels: a relevance of t is t of a click and 1 - t of none.

    ``mass`` says how much each document counts.
    """

    def __init__(self, relevance: FloatArray, mass: FloatArray) -> None:
        self._relevance, self._mass = relevance, mass

    @property
    def bias(self) -> PositionBias:
        """None: the order of labelled rows means nothing."""
        return PositionBias.none(1)

    def evidence(self, relevance: FloatArray) -> Evidence:
        """What the labels say about these relevances."""
        r = np.clip(relevance, _TINY, 1.0 - _TINY)
        t, mass = self._relevance, self._mass
        total = float((mass * (t * np.log(r) + (1.0 - t) * np.log1p(-r))).sum())
        return Evidence(total, mass, mass * t, mass * (t - r), mass * r * (1.0 - r))

    def update(self, relevance: FloatArray, n_steps: int | None = None) -> None:
        """Labels have no click model."""

    def learned(self) -> None:
        """Labels have no click model."""
        return
