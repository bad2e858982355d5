"""The chain family: the user walks down the page, and at some point stops.

An examined result is clicked with its relevance r. After a click the user is satisfied and stops with
``satisfaction``, else walks on with ``after_click``; after no click she walks on with ``after_skip``.
What is hidden is where she stopped below the last click. With B[k], the chance of no click from slot k
on if k is examined,

    B[k] = (1 - r[k]) * (after_skip[k] * B[k + 1] + 1 - after_skip[k]),        B = 1 below the page

everything above the last click was examined, and below it the chance that a slot was examined, given
that nothing was clicked there, is a product of such terms. The M-steps are shares of expected counts:

    r            = clicks / examined
    satisfaction = satisfied / clicks
    after_click  = walked on / clicks that did not satisfy
    after_skip   = walked on / examined without a click

Which of them are free, and what shares a value, makes the models: see `ChainForm`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from unskew.clicks.fitting.cells import PatternRows, pattern_rows
from unskew.clicks.fitting.likelihood import Evidence, Prediction
from unskew.log.impressions import Impressions
from unskew.position_bias import PositionBias

__all__ = ["ChainForm", "ChainLikelihood", "ChainParameters"]

FloatArray = npt.NDArray[np.float64]

_TINY = 1e-12
START = 0.5
# How many clicks' worth a document's own satisfaction is drawn towards the mean.
SATISFACTION_STRENGTH = 5.0


@dataclass(frozen=True)
class ChainForm:
    """Which parameters a chain model has.

    Attributes
    ----------
    satisfaction
        ``"none"``; ``"document"``: one for each document; ``"share"``: a share of its relevance, the
        same for all documents.
    walk
        ``"one"``: one chance to walk on, clicked or not; ``"after click"``: one for each position of a
        click, and always on without a click.

    """

    satisfaction: str
    walk: str


@dataclass(frozen=True, eq=False)
class ChainParameters:
    """The present values: by document, by position of the click, and by position of the skip."""

    satisfaction: FloatArray
    share: float
    after_click: FloatArray
    after_skip: FloatArray


class _Chain(NamedTuple):
    """Patterns as plain arrays: rows of pattern m are ``starts[m]:starts[m + 1]``."""

    starts: npt.NDArray[np.int64]
    document: npt.NDArray[np.int64]
    place: npt.NDArray[np.int64]
    clicked: npt.NDArray[np.bool_]
    mass: FloatArray


class _Values(NamedTuple):
    """Relevance and satisfaction by document, and both chances to walk on by place."""

    relevance: FloatArray
    satisfaction: FloatArray
    after_click: FloatArray
    after_skip: FloatArray


class _Sums(NamedTuple):
    """Expected counts: by document, and by place of the click or skip."""

    examined: FloatArray
    clicks: FloatArray
    satisfied: FloatArray
    unsatisfied: FloatArray
    on_after_click: FloatArray
    skipped: FloatArray
    on_after_skip: FloatArray


@njit(cache=True, nogil=True, error_model="numpy")
def _no_click_from(chain, values, first, end, silent):  # type: ignore[no-untyped-def]
    """Fill ``silent[k]``, the chance of no click from row ``first + k`` on if it is examined."""
    n = end - first
    silent[n] = 1.0
    for k in range(n - 1, -1, -1):
        go_on = values.after_skip[chain.place[first + k]]
        rest = go_on * silent[k + 1] + 1.0 - go_on
        silent[k] = (1.0 - values.relevance[chain.document[first + k]]) * rest


@njit(cache=True, nogil=True, error_model="numpy")
def _chain_sums(chain, values, sums, longest):  # type: ignore[no-untyped-def]
    """The E-step over all patterns; returns the log-likelihood."""
    total = 0.0
    silent = np.empty(longest + 1)
    for m in range(len(chain.starts) - 1):
        start, end = chain.starts[m], chain.starts[m + 1]
        mass = chain.mass[start]
        last = start - 1
        for row in range(start, end):
            if chain.clicked[row]:
                last = row
        log = 0.0
        for row in range(start, last + 1):
            d, k = chain.document[row], chain.place[row]
            r = values.relevance[d]
            sums.examined[d] += mass
            if not chain.clicked[row]:
                go_on = values.after_skip[k]
                log += np.log(max((1.0 - r) * go_on, _TINY))
                sums.skipped[k] += mass
                sums.on_after_skip[k] += mass
                continue
            log += np.log(max(r, _TINY))
            sums.clicks[d] += mass
            if row < last:
                go_on = values.after_click[k] * (1.0 - values.satisfaction[d])
                log += np.log(max(go_on, _TINY))
                sums.unsatisfied[k] += mass
                sums.on_after_click[k] += mass
        # Below the last click: was she satisfied, did she leave, or look and click nothing?
        _no_click_from(chain, values, last + 1, end, silent)
        reached = mass
        if last >= start and last + 1 < end:
            d, k = chain.document[last], chain.place[last]
            s, go_on = values.satisfaction[d], values.after_click[k]
            tail = max(s + (1.0 - s) * (go_on * silent[0] + 1.0 - go_on), _TINY)
            log += np.log(tail)
            sums.satisfied[d] += mass * s / tail
            sums.unsatisfied[k] += mass * (1.0 - s / tail)
            reached = mass * (1.0 - s) * go_on * silent[0] / tail
            sums.on_after_click[k] += reached
        elif last >= start:
            # The click was on the last result: whether it satisfied does not show.
            s = values.satisfaction[chain.document[last]]
            sums.satisfied[chain.document[last]] += mass * s
        else:
            log += np.log(max(silent[0], _TINY))
        for row in range(last + 1, end):
            d, k = chain.document[row], chain.place[row]
            sums.examined[d] += reached
            if row + 1 < end:
                go_on = values.after_skip[k]
                below = silent[row - last]
                rest = max(go_on * below + 1.0 - go_on, _TINY)
                sums.skipped[k] += reached
                reached *= go_on * below / rest
                sums.on_after_skip[k] += reached
        total += mass * log
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _chain_predictions(chain, values, conditional, marginal):  # type: ignore[no-untyped-def]
    """P(click) of every row given the clicks above it, and without them."""
    for m in range(len(chain.starts) - 1):
        seen, reached = 1.0, 1.0
        for row in range(chain.starts[m], chain.starts[m + 1]):
            d, k = chain.document[row], chain.place[row]
            r = values.relevance[d]
            after_click = values.after_click[k] * (1.0 - values.satisfaction[d])
            conditional[row] = seen * r
            marginal[row] = reached * r
            reached *= r * after_click + (1.0 - r) * values.after_skip[k]
            if chain.clicked[row]:
                seen = after_click
            else:
                seen *= (1.0 - r) * values.after_skip[k] / max(1.0 - seen * r, _TINY)


class ChainLikelihood:
    """A chain click model on one log."""

    def __init__(
        self,
        rows: PatternRows,
        form: ChainForm,
        *,
        n_documents: int,
        n_positions: int,
        parameters: ChainParameters | None = None,
    ) -> None:
        self.form, self._n_documents, self._n_positions = form, n_documents, n_positions
        self._rows = rows
        starts = np.flatnonzero(np.diff(rows.pattern, prepend=-1, append=-1))
        place = np.minimum(rows.position, n_positions) - 1
        self._chain = _Chain(starts, rows.document, place, rows.clicked, rows.mass)
        self._longest = int(np.diff(starts).max(initial=0))
        always = form.walk == "after click"
        self.present = parameters or ChainParameters(
            satisfaction=np.full(n_documents, 0.0 if form.satisfaction == "none" else START),
            share=START,
            after_click=np.full(n_positions, START),
            after_skip=np.full(n_positions, 1.0 if always else START),
        )

    @property
    def n_documents(self) -> int:
        """How many documents have a relevance."""
        return self._n_documents

    def _values(self, relevance: FloatArray) -> _Values:
        now = self.present
        shared = self.form.satisfaction == "share"
        satisfaction = now.share * relevance if shared else now.satisfaction
        return _Values(relevance, satisfaction, now.after_click, now.after_skip)

    def evidence(self, relevance: FloatArray) -> Evidence:
        """What the clicks say about these relevances, by the present parameters."""
        sums = _Sums(*np.zeros((3, self._n_documents)), *np.zeros((4, self._n_positions)))
        total = _chain_sums(self._chain, self._values(relevance), sums, self._longest)
        self._expected, self._relevance = sums, relevance
        r = relevance
        gradient = sums.clicks - sums.examined * r
        information = sums.examined * r * (1.0 - r)
        if self.form.satisfaction == "share":
            # The relevance also decides how often a click satisfies.
            free = np.maximum(1.0 - self.present.share * r, _TINY)
            odds = (1.0 - r) / free
            missed = (sums.clicks - sums.satisfied) * self.present.share * r
            gradient += sums.satisfied * (1.0 - r) - missed * odds
            information += sums.clicks * self.present.share * r * (1.0 - r) * odds
        return Evidence(total, sums.examined, sums.clicks, gradient, information)

    def maximise(self, evidence: Evidence, prior: FloatArray, strength: float) -> FloatArray:
        """The M-step of a free relevance under a beta prior of that mean and so many trials."""
        tiny = np.finfo(np.float64).tiny
        hits = evidence.successes + strength * prior
        misses = np.maximum(evidence.trials + strength - hits, 0.0)
        if self.form.satisfaction != "share":
            found: FloatArray = hits / np.maximum(hits + misses, tiny)
            return found
        # (hits + s) log r + misses log(1 - r) + u log(1 - phi r), where s clicks satisfied and u did
        # not: its derivative is 0 at the smaller root of a quadratic.
        phi, s = self.present.share, self._expected.satisfied
        u = evidence.successes - s
        top = hits + s
        a = phi * (top + misses + u)
        b = top * (1.0 + phi) + misses + phi * u
        root = 2.0 * top / np.maximum(b + np.sqrt(np.maximum(b * b - 4.0 * a * top, 0.0)), tiny)
        return np.minimum(root, 1.0)

    def step(self) -> None:
        """The M-step of the walk and the satisfaction, by the E-step of the latest `evidence`."""
        sums, now = self._expected, self.present
        if self.form.walk == "one":
            on = sums.on_after_click.sum() + sums.on_after_skip.sum()
            chances = sums.unsatisfied.sum() + sums.skipped.sum()
            one = np.full(self._n_positions, on / chances if chances > 0 else START)
            now = replace(now, after_click=one, after_skip=one)
        else:
            walked = np.divide(
                sums.on_after_click, sums.unsatisfied, out=now.after_click.copy(),
                where=sums.unsatisfied > 0,
            )  # fmt: skip
            now = replace(now, after_click=walked)
        if self.form.satisfaction == "document":
            mean = sums.satisfied.sum() / max(sums.clicks.sum(), _TINY)
            strength = SATISFACTION_STRENGTH
            found = (sums.satisfied + strength * mean) / (sums.clicks + strength)
            now = replace(now, satisfaction=found)
        elif self.form.satisfaction == "share":
            now = replace(now, share=_share(sums, self._relevance, now.share))
        self.present = now

    def on(self, data: Impressions, mass: FloatArray | None = None) -> ChainLikelihood:
        """The same parameters on other clicks."""
        n = len(data.documents)
        present = self.present
        if n != self._n_documents:
            # Documents never seen in training satisfy like the average one.
            mean = float(present.satisfaction.mean()) if len(present.satisfaction) else 0.0
            present = replace(present, satisfaction=np.full(n, mean))
        return ChainLikelihood(
            pattern_rows(data, mass), self.form, n_documents=n, n_positions=self._n_positions,
            parameters=present,
        )  # fmt: skip

    def predict(self, relevance: FloatArray) -> Prediction:
        """P(click) of every result of every pattern."""
        rows = self._rows
        conditional, marginal = np.empty((2, len(rows.document)))
        _chain_predictions(self._chain, self._values(relevance), conditional, marginal)
        return Prediction(rows.position, rows.clicked, rows.mass, conditional, marginal)

    def parameters(self) -> dict[str, Any]:
        """The chances to walk on, and the satisfaction."""
        now = self.present
        found: dict[str, Any] = {}
        if self.form.walk == "one":
            found["continuation"] = float(now.after_click[0])
        else:
            found["continuation_after_click"] = now.after_click
        if self.form.satisfaction == "document":
            found["satisfaction"] = now.satisfaction
        elif self.form.satisfaction == "share":
            found["satisfaction_share"] = now.share
        return found

    def position_bias(self) -> PositionBias:
        """How often each position is reached on average, relative to position 1."""
        raise NotImplementedError


def _share(sums: _Sums, relevance: FloatArray, share: float) -> float:
    """The share of relevance that satisfies, by Newton's method on its part of the likelihood."""
    satisfied, rest = sums.satisfied.sum(), sums.clicks - sums.satisfied
    for _ in range(20):
        free = np.maximum(1.0 - share * relevance, _TINY)
        slope = satisfied / max(share, _TINY) - (rest * relevance / free).sum()
        bend = satisfied / max(share, _TINY) ** 2 + (rest * (relevance / free) ** 2).sum()
        if not bend > 0:
            break
        change = slope / bend
        share = float(min(max(share + change, _TINY), 1.0))
        if abs(change) < 1e-10:
            break
    return share
