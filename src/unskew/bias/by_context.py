"""Curves per context: one estimator, fitted to the sessions of each device, layout or market."""

from __future__ import annotations

from typing import Any

import numpy as np

from unskew.bias.estimator import BiasEstimator
from unskew.errors import DataError
from unskew.log.impressions import Impressions
from unskew.position_bias import PositionBias

# Fewer sessions than this make no curve of their own.
FEWEST_SESSIONS = 20


def fit_by_context(
    estimator: BiasEstimator, data: Impressions, *, fewest_sessions: int = FEWEST_SESSIONS
) -> dict[Any, PositionBias]:
    """The position bias of each context of the log, by the value of its context column.

    An error names the context that cannot be estimated: one seen in fewer sessions than
    ``fewest_sessions``, or one that the estimator refuses.

    Examples
    --------
    >>> import unskew
    >>> labels = unskew.datasets.make_search_dataset(n_queries=40, n_features=16, seed=0)
    >>> log = unskew.simulate.sample(labels, model="contextual", sessions=3_000, seed=0)
    >>> curves = unskew.bias.fit_by_context(unskew.bias.RelativeCTR(), unskew.read_log(log))
    >>> sorted(curves)
    ['desktop', 'mobile', 'tablet']

    """
    found = {}
    for value, part in contexts_of(data).items():
        if part.n_sessions < fewest_sessions:
            raise DataError(
                f"context {value!r} was seen in {part.n_sessions} session(s), and a curve needs "
                f"{fewest_sessions}: leave it out with in_context(…), or join it with another"
            )
        try:
            found[value] = estimator.fit(part)
        except DataError as error:
            raise DataError(f"context {value!r}: {error}") from error
    return found


def contexts_of(data: Impressions) -> dict[Any, Impressions]:
    """The sessions of each context."""
    if not len(data.contexts):
        raise DataError(
            "the log has no context column: name it when the log is read, read_log(…, context=…) "
            "(--context)"
        )
    values = data.contexts.tolist()
    seen = np.unique(data.patterns.context)
    return {values[k]: data.in_context(values[k]) for k in seen if k >= 0}
