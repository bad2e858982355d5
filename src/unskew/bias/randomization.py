"""Randomization: position bias from lists that were shuffled before they were shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from unskew.array_types import FloatArray
from unskew.bias.cells import Cells
from unskew.bias.estimator import EstimatorSettings, check_clicks
from unskew.bias.shuffling import shuffling_of
from unskew.errors import DataError
from unskew.log.impressions import Impressions
from unskew.position_bias import PositionBias

_MOST_ROUNDS = 2_000
_TOLERANCE = 1e-10


@dataclass(frozen=True, kw_only=True)
class Randomization(EstimatorSettings):
    """Clicks on shuffled lists: whatever differs between positions is position bias.

    Joachims, Swaminathan and Schnabel, "Unbiased Learning-to-Rank with Biased Feedback", WSDM 2017.
    If lists are shuffled, every position of a query's pages shows equally relevant results, so

        E[clicks[s, k]] = impressions[s, k] * relevance[s] * propensity[k]

    for the pages s of one query and one length. The propensities solve the equations of the
    Poisson likelihood of this product,

        relevance[s]  = sum over k of clicks[s, k] / sum over k of impressions[s, k] * propensity[k]
        propensity[k] = sum over s of clicks[s, k] / sum over s of impressions[s, k] * relevance[s]

    which is the relative CTR of the shuffled sessions if all pages are of one length, and does not
    take "long pages belong to other queries" for position bias if they are not. ``t_minus`` is 1.

    Parameters
    ----------
    context
        The value of the log's context column that marks shuffled sessions; only these are used.
        None says that the whole log was shuffled.
    check
        Refuse sessions that do not look shuffled (see `unskew.bias.shuffling`), and a log without
        ``context`` whose documents appear too rarely to tell. False takes your word for it.
    n_positions, minimum, min_shown, monotone
        As in `RelativeCTR`.

    Examples
    --------
    >>> import unskew
    >>> labels = unskew.datasets.make_search_dataset(n_queries=40, n_features=16, seed=0)
    >>> policy = unskew.simulate.random_policy(labels)
    >>> log = unskew.simulate.sample(labels, policy=policy, sessions=20_000, seed=0)
    >>> data = unskew.read_log(log)
    >>> bias = unskew.bias.Randomization().fit(data)
    >>> [round(value, 1) for value in bias.t_plus[:3].tolist()]
    [1.0, 0.9, 0.7]

    """

    context: Any = None
    check: bool = True

    may_repeat_ctr: ClassVar[bool] = True

    def prepare(self, data: Impressions) -> Callable[[Impressions], PositionBias]:
        """Check the log; what it returns fits the log or a resample, which repeats sessions."""
        self.check_shared()
        check_clicks(data)
        shuffled = self._marked(data)
        _refuse_silence(shuffled.n_clicks)
        check_clicks(shuffled)
        if self.check:
            self._check(shuffled)
        return self._from_strata

    def _from_strata(self, data: Impressions) -> PositionBias:
        shuffled = self._marked(data)
        strata = _strata(shuffled, self.positions_of(data))
        _refuse_silence(strata.clicks.sum())
        return self.relative_bias(_propensity(strata), strata.shown)

    def _marked(self, data: Impressions) -> Impressions:
        """The sessions that were shuffled."""
        if self.context is None:
            return data
        if not len(data.contexts):
            raise DataError(
                f"context={self.context!r} is to mark the shuffled sessions, but the log has no "
                "context column: name it when the log is read, read_log(…, context=…) (--context)"
            )
        return data.in_context(self.context)

    def _check(self, data: Impressions) -> None:
        found = shuffling_of(data)
        which = "" if self.context is None else f" of context {self.context!r}"
        if found.can_tell and not found.shuffled:
            raise DataError(
                f"the lists{which} were not shuffled: where a document stands in one session and in "
                f"another correlates by {found.correlation:.2f}, shuffled lists have 0. If some "
                "sessions were shuffled, mark them in the context column and name the value with "
                "context=… (--shuffled)"
            )
        if not found.can_tell and self.context is None:
            raise DataError(
                "nothing shows that the lists were shuffled: documents are seen too rarely to tell. "
                "If they were, mark the sessions in the context column and name the value with "
                "context=… (--shuffled), or set check=False"
            )


def _refuse_silence(clicks: float) -> None:
    if not clicks > 0:
        raise DataError("the shuffled sessions have no click: nothing can be measured in them")


def _strata(data: Impressions, n_positions: int) -> Cells:
    """The cells of each (query, page length)."""
    length = np.diff(data.pages.offsets)
    page = data.pages.query.astype(np.int64) * (int(length.max()) + 1) + length
    _, stratum = np.unique(page, return_inverse=True)
    group = np.repeat(stratum.astype(np.int64), length)
    return Cells.of_groups(data, group, int(stratum.max()) + 1, n_positions)


def _propensity(strata: Cells) -> FloatArray:
    """The propensities, the highest 1, by solving the two equations in turn."""
    clicks, by_position = strata.per_group(strata.clicks), strata.per_position(strata.clicks)
    value = np.ones(strata.n_positions)
    for _ in range(_MOST_ROUNDS):
        expected = strata.per_group(strata.impressions * value[strata.position])
        relevance = _ratio(clicks, expected)[strata.group]
        before = value
        value = _ratio(by_position, strata.per_position(strata.impressions * relevance))
        value /= value.max()
        if np.abs(value - before).max() < _TOLERANCE:
            break
    return value


def _ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    nothing = np.zeros_like(numerator)
    return np.divide(numerator, denominator, out=nothing, where=denominator > 0)
