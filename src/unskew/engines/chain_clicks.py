"""Click models in which users walk down the page (dbn, dcm, cascade), over parts of several workers.

What documents share follows from sums over all clicks: walks by position, and how many clicks satisfied.
Those are added up; the satisfaction of each document (dbn) is found where the document is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from unskew.array_types import FloatArray
from unskew.clicks.fitting.chain import ChainLikelihood, next_parameters
from unskew.clicks.fitting.curve import examination_bias
from unskew.clicks.fitting.likelihood import Evidence
from unskew.engines.group import Group
from unskew.engines.shared_clicks import SharedClicks
from unskew.errors import StoreError, UsageError
from unskew.log.impressions import Impressions
from unskew.position_bias import PositionBias
from unskew.rankers.click_model.learned import LearnedClickModel
from unskew.rankers.click_model.preparation import ClickSettings


class SharedChain(SharedClicks):
    """A chain model on many parts: what documents share is the leader's."""

    leader: ChainLikelihood

    def __init__(
        self,
        group: Group,
        parts: Mapping[int, Impressions],
        n_parts: int,
        settings: ClickSettings,
        nobody: Impressions,
    ) -> None:
        if settings.p > 0:
            raise UsageError(
                f"p must be 0 with click_model={settings.click_model!r}, whose examination is no "
                f"curve to take a power of: got {settings.p:g}"
            )
        super().__init__(group, parts, n_parts, settings, nobody)
        clicks = {number: one.counts.clicks.sum() for number, one in self.parts.items()}
        self._n_clicks = float(group.add(clicks, n_parts))
        self._learns, self._bias = True, PositionBias.none(self.n_positions)

    @property
    def n_clicks(self) -> float:
        """The clicks of all workers."""
        return self._n_clicks

    def start(self) -> float:
        """The logit to begin with: chains find their parameters from any start."""
        return 0.0

    def begin_with(self, earlier: LearnedClickModel) -> None:
        """Take over what an earlier training found; all documents satisfy alike at first."""
        self.leader.set_own(np.concatenate(list(earlier.parameters.values())))
        now = self.leader.present
        if self.leader.form.satisfaction == "document":
            now = replace(now, typical=float(now.satisfaction[0]))
        self.leader.present = replace(now, satisfaction=np.empty(0))
        for one in self.parts.values():
            one.present = replace(now, satisfaction=self._satisfaction(one))

    def of_documents(self) -> FloatArray | None:
        """The satisfaction of each document of all parts, if that is learned."""
        if self.leader.form.satisfaction != "document":
            return None
        return self.group.gathered(self._of_mine(), self.n_parts)

    def go_on(self, documents: FloatArray | None) -> None:
        """Take over the satisfaction of each document of all parts, if that is learned."""
        if self.leader.form.satisfaction != "document":
            return
        offsets = np.cumsum([0, *self.group.sizes(self._of_mine(), self.n_parts)])
        n_known = 0 if documents is None else len(documents)
        if documents is None or n_known != offsets[-1]:
            raise StoreError(
                f"the checkpoint tells of {n_known:,} documents, but the parts have {offsets[-1]:,}: "
                "remove it to begin anew"
            )
        for number, one in self.parts.items():
            known = documents[offsets[number] : offsets[number + 1]]
            one.present = replace(one.present, satisfaction=known)

    def _of_mine(self) -> dict[int, FloatArray]:
        return {number: one.present.satisfaction for number, one in self.parts.items()}

    def watched_by(self, other: SharedClicks) -> None:
        """Give ``other`` the present of this one always; it knows no satisfaction of its documents."""
        super().watched_by(other)
        assert isinstance(other, SharedChain), "of one model"  # noqa: S101
        other._learns = False

    def _satisfaction(self, one: ChainLikelihood) -> FloatArray:
        """That of documents of which no click is known."""
        found = one.form.satisfaction == "document"
        return np.full(one.n_documents, self.leader.present.typical if found else 0.0)

    def evidence(self, relevance: FloatArray, *, whole: bool = True) -> dict[int, Evidence]:
        """What the clicks of each part of this worker say, by the leader's parameters."""
        found = {}
        for number, one, part in self.each(relevance):
            known = one.present.satisfaction if self._learns else self._satisfaction(one)
            one.present = replace(self.leader.present, satisfaction=known)
            found[number] = one.evidence(part, whole=whole)
        return found

    def step(self, relevance: FloatArray) -> None:
        """One EM step with the expectations of all workers."""
        self.evidence(relevance, whole=False)
        expected = {number: one.expected for number, one in self.parts.items()}
        total = self.group.add(expected, self.n_parts, (4 * self.n_positions + 2,))
        leader = self.leader
        found = next_parameters(leader.form, leader.present, total, self._share_terms)
        leader.present = replace(found, satisfaction=np.empty(0))
        reached = {}
        for number, one, part in self.each(relevance):
            one.take(found)
            reached[number] = one.reached(part)
        shown, examined = self.group.add(reached, self.n_parts, (2, self.n_positions))
        mean = np.divide(examined, shown, out=np.zeros(len(shown)), where=shown > 0)
        self._bias = examination_bias(mean, impressions=shown)

    def _share_terms(self, share: float) -> FloatArray:
        terms = {number: one.share_terms(share) for number, one in self.parts.items()}
        return self.group.add(terms, self.n_parts, (2,))

    def position_bias(self) -> PositionBias:
        """The mean chance of each position to be examined, after the latest step."""
        return self._bias
