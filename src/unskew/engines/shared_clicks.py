"""A click model on the parts of several workers, whose parameters are those of all clicks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from unskew.array_types import FloatArray
from unskew.clicks.fitting.likelihood import Evidence
from unskew.clicks.fitting.log_clicks import LogClicks
from unskew.engines.group import Group
from unskew.log.impressions import Impressions
from unskew.position_bias import PositionBias
from unskew.rankers.click_model.learned import LearnedClickModel
from unskew.rankers.click_model.preparation import ClickSettings
from unskew.registry import CLICK_MODELS


class PartClicks(NamedTuple):
    """The number of a part, the likelihood of its clicks, and the relevance of its documents."""

    number: int
    likelihood: Any
    relevance: FloatArray


class SharedClicks(ABC):
    """A leader with what all workers know, and a follower for each part of this one.

    ``nobody`` is a log without a session, which the leader stands on.
    """

    def __init__(
        self,
        group: Group,
        parts: Mapping[int, Impressions],
        n_parts: int,
        settings: ClickSettings,
        nobody: Impressions,
    ) -> None:
        self.group, self.n_parts, self.n_positions = group, n_parts, settings.n_positions
        self.name = settings.click_model if settings.held is None else "pbm"
        self.leader = self._on(nobody)
        self.parts = {number: self._on(data) for number, data in parts.items()}
        sizes = [one.n_documents for one in self.parts.values()]
        self._offsets = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))

    def _on(self, data: Impressions) -> Any:
        """The click model on the clicks of one part."""
        kind = CLICK_MODELS[self.name].load()
        return kind.likelihood(LogClicks(data), n_positions=self.n_positions)

    @property
    def n_documents(self) -> int:
        """How many documents this worker has."""
        return int(self._offsets[-1])

    def each(self, relevance: FloatArray) -> Iterator[PartClicks]:
        """The parts of this worker, with the relevance of the documents of each."""
        for k, (number, one) in enumerate(self.parts.items()):
            yield PartClicks(number, one, relevance[self._offsets[k] : self._offsets[k + 1]])

    @property
    @abstractmethod
    def n_clicks(self) -> float:
        """The clicks of all workers."""

    @abstractmethod
    def start(self) -> float:
        """Set the parameters to begin with; returns the logit of the relevance that goes with them."""

    @abstractmethod
    def begin_with(self, earlier: LearnedClickModel) -> None:
        """Take over what an earlier training found."""

    @abstractmethod
    def of_documents(self) -> FloatArray | None:
        """What is learned of each document of all parts, for the first worker; None if nothing is."""

    @abstractmethod
    def go_on(self, documents: FloatArray | None) -> None:
        """Take over what a checkpoint knows of each document."""

    def watched_by(self, other: SharedClicks) -> None:
        """Give ``other``, which has clicks that nobody learns from, the present of this one always."""
        other.leader = self.leader

    @abstractmethod
    def evidence(self, relevance: FloatArray, *, whole: bool = True) -> dict[int, Evidence]:
        """What the clicks of each part of this worker say, by the leader's parameters."""

    @abstractmethod
    def step(self, relevance: FloatArray) -> None:
        """One EM step with the expectations of all workers."""

    @abstractmethod
    def position_bias(self) -> PositionBias:
        """How examination falls with the position."""
