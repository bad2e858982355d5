"""The likelihood of clicks over the parts of this worker, with a click model of all workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import expit

from unskew.array_types import FloatArray
from unskew.clicks.chain import ChainModel
from unskew.clicks.fitting.affine import AffineLikelihood
from unskew.clicks.fitting.cells import States
from unskew.clicks.fitting.likelihood import Evidence
from unskew.clicks.fitting.log_clicks import LogClicks
from unskew.engines.chain_clicks import SharedChain
from unskew.engines.group import Group
from unskew.engines.shared_clicks import SharedClicks
from unskew.errors import DataError
from unskew.log.counts import n_shown
from unskew.log.features import Features
from unskew.log.impressions import Documents, Impressions, Pages, Patterns
from unskew.position_bias import PositionBias
from unskew.rankers.click_model.learned import LearnedClickModel, follow, tempered
from unskew.rankers.click_model.preparation import ClickSettings
from unskew.rankers.click_model.start import LARGEST_STEP, WARM_UP, start_curves
from unskew.registry import CLICK_MODELS


def no_sessions(contexts: Sequence[Any] = ()) -> Impressions:
    """Impressions without a session, as a worker without parts has them."""
    empty, keys = np.empty(0, dtype=np.int32), np.array(list(contexts), dtype=object)
    offsets = np.zeros(1, dtype=np.int64)
    return Impressions(
        np.empty(0, dtype=np.int64),
        keys if len(keys) else np.empty(0, dtype=np.int64),
        Documents(empty, np.empty(0, dtype=np.int64), Features(np.empty((0, 0)), ())),
        Pages(empty, offsets, empty, empty),
        Patterns(
            empty, empty, np.empty(0), np.empty(0, dtype=np.int64), offsets, empty,
            np.empty(0, dtype=np.uint8),
        ),
    )  # fmt: skip


class SharedAffine(SharedClicks):
    """An affine click model on many parts: the leader has the sums of all."""

    leader: AffineLikelihood

    def __init__(
        self,
        group: Group,
        parts: Mapping[int, Impressions],
        n_parts: int,
        settings: ClickSettings,
        nobody: Impressions,
    ) -> None:
        self._p, self._contexts = settings.p, nobody.contexts.tolist()
        super().__init__(group, parts, n_parts, settings, nobody)
        totals = {number: one.totals for number, one in self.parts.items()}
        self.leader.totals = group.add(totals, n_parts, (2, len(self.leader.states)))

    def _on(self, data: Impressions) -> Any:
        if self.name != "contextual":
            return super()._on(data)
        if not self._contexts:
            raise DataError(
                "no session has a context: name the column of contexts when the log is compacted, or "
                "take click_model='pbm'"
            )
        # A part may lack some of the contexts that the log has.
        keys = np.array(self._contexts, dtype=object)
        return AffineLikelihood(LogClicks(data), States.by_context(self.n_positions, keys))

    @property
    def n_clicks(self) -> float:
        """The clicks of all workers."""
        return float(self.leader.totals[1].sum())

    def start(self) -> float:
        """Set the curves to begin with; returns the logit of the relevance that goes with them."""
        return start_curves(self.leader)

    def begin_with(self, earlier: LearnedClickModel) -> None:
        """Take over what an earlier training found."""
        self.leader.set_own(np.concatenate(list(earlier.parameters.values())))

    def of_documents(self) -> FloatArray | None:
        """None: all that is learned is shared by all documents."""
        return None

    def go_on(self, documents: FloatArray | None) -> None:
        """Nothing to take over."""

    def position_bias(self) -> PositionBias:
        """How examination falls with the position."""
        return self.leader.position_bias()

    def evidence(self, relevance: FloatArray, *, whole: bool = True) -> dict[int, Evidence]:
        """What the clicks of each part of this worker say, by the leader's parameters."""
        found = {}
        for number, one, part in self.each(relevance):
            follow(one, self.leader)
            found[number] = (tempered(one, self._p) if whole else one).evidence(part, whole=whole)
        return found

    def step(self, relevance: FloatArray) -> None:
        """One EM step of the leader with the expectations of all workers."""
        self.evidence(relevance, whole=False)
        expected = {number: one.expected for number, one in self.parts.items()}
        shape = (len(self.leader.states), 2)
        self.leader.expected = self.group.add(expected, self.n_parts, shape)
        self.leader.step()


def shared_clicks(
    group: Group,
    parts: Mapping[int, Impressions],
    n_parts: int,
    settings: ClickSettings,
    contexts: Sequence[Any],
) -> SharedClicks:
    """The click model of these settings, with the sums of all workers."""
    model = CLICK_MODELS[settings.click_model].load()
    chain = settings.held is None and issubclass(model, ChainModel)
    kind = SharedChain if chain else SharedAffine
    return kind(group, parts, n_parts, settings, no_sessions(contexts))


class PartsClickObjective:
    """The log-likelihood of the clicks of this worker's parts; see `ClickObjective`."""

    def __init__(
        self,
        group: Group,
        parts: Mapping[int, Impressions],
        n_parts: int,
        settings: ClickSettings,
        contexts: Sequence[Any],
    ) -> None:
        self._clicks = shared_clicks(group, parts, n_parts, settings, contexts)
        self._settings, self._contexts = settings, contexts
        self._held = settings.held
        if not self._clicks.n_clicks > 0:
            raise DataError("the log has no click: there is nothing to learn from")
        start = 0.0
        if settings.held is not None:
            self._clicks.leader.set_own(settings.held.t_plus / settings.held.t_plus.max())
        elif settings.earlier is not None:
            self._clicks.begin_with(settings.earlier)
        else:
            start = self._clicks.start()
        self.offset = settings.offset if settings.offset is not None else self._warm_up(start)

    def of_documents(self) -> FloatArray | None:
        """What a checkpoint must know of each document; see `SharedClicks`."""
        return self._clicks.of_documents()

    def go_on(self, documents: FloatArray | None) -> None:
        """Go on from a checkpoint; see `SharedClicks`."""
        self._clicks.go_on(documents)

    @property
    def n_documents(self) -> int:
        """How many documents this worker has."""
        return self._clicks.n_documents

    def _warm_up(self, offset: float) -> float:
        """The logit of the one relevance that explains all clicks best; see `starting_offset`."""
        clicks = self._clicks
        for _ in range(WARM_UP):
            relevance = np.full(clicks.n_documents, expit(offset))
            self.update(relevance, 1)
            told = {
                number: (one.gradient.sum(), one.information.sum())
                for number, one in clicks.evidence(relevance).items()
            }
            gradient, information = clicks.group.add(told, clicks.n_parts, (2,)).tolist()
            if information > 0:
                offset += float(np.clip(gradient / information, -LARGEST_STEP, LARGEST_STEP))
        return offset

    @property
    def bias(self) -> PositionBias:
        """How examination falls with the position."""
        return self._clicks.position_bias() if self._held is None else self._held

    def evidence(self, relevance: FloatArray) -> Evidence:
        """What the clicks of this worker say about the relevance of its documents."""
        found = self._clicks.evidence(relevance).values()
        columns = (
            np.concatenate([np.empty(0), *(getattr(one, name) for one in found)])
            for name in ("trials", "successes", "gradient", "information")
        )
        return Evidence(sum(one.log_likelihood for one in found), *columns)

    def update(self, relevance: FloatArray, n_steps: int | None = None) -> None:
        """So many EM steps of the click model, by default those of a round."""
        if self._held is not None:
            return
        for _ in range(self._settings.em_steps if n_steps is None else n_steps):
            self._clicks.step(relevance)

    def learned(self) -> LearnedClickModel:
        """The present click model."""
        clicks = self._clicks
        return LearnedClickModel.of(clicks.name, clicks.leader, clicks.n_positions)

    def held_out(self, parts: Mapping[int, Impressions], n_parts: int) -> HeldOutClicks:
        """The same click model on the clicks of held-out parts."""
        clicks = self._clicks
        other = shared_clicks(clicks.group, parts, n_parts, self._settings, self._contexts)
        clicks.watched_by(other)
        return HeldOutClicks(other, parts, self.offset)


class HeldOutClicks:
    """The mean log-likelihood of held-out impressions of all workers, after every round."""

    name = "log-likelihood"
    higher_is_better = True

    def __init__(
        self, clicks: SharedClicks, parts: Mapping[int, Impressions], offset: float
    ) -> None:
        self._clicks, self._offset = clicks, offset
        shown = {number: n_shown(data) for number, data in parts.items()}
        self._shown = float(clicks.group.add(shown, clicks.n_parts))
        if not self._shown > 0:
            raise DataError("the held-out parts have no session")
        self.likelihoods: list[float] = []
        self.without_a_tree = self._measure(np.zeros(clicks.n_documents))

    def _measure(self, score: FloatArray) -> float:
        found = self._clicks.evidence(expit(self._offset + score))
        told = {number: one.log_likelihood for number, one in found.items()}
        return float(self._clicks.group.add(told, self._clicks.n_parts)) / self._shown

    @property
    def never_better(self) -> bool:
        """Whether no round explained the held-out clicks better than one relevance for all does."""
        return bool(self.likelihoods) and max(self.likelihoods) <= self.without_a_tree

    def look(self, score: FloatArray) -> None:
        """Note the mean log-likelihood of one more round."""
        self.likelihoods.append(self._measure(score))

    def measures(self, bias: PositionBias) -> FloatArray:
        """That of every round, each with its own parameters of the click model."""
        return np.array(self.likelihoods)
