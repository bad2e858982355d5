"""`unskew.fit`: a ranker from a click log, with everything chosen from the clicks."""

from __future__ import annotations

import os
from typing import Any

from unskew.choose.ranker import TRIALS, AutoRanker
from unskew.log.impressions import Impressions


def fit(
    data: Impressions | str | os.PathLike[str],
    *,
    seconds: float | None = None,
    trials: int = TRIALS,
    **settings: Any,
) -> AutoRanker:
    """Learn a ranker from a click log; click model, trees and trust are chosen from the clicks.

    Parameters
    ----------
    data
        The log, from `unskew.read_log` or `Impressions.from_arrays`, or the folder of a compacted one.
    seconds, trials
        The most time, and the most trainings.
    settings
        Anything else that `AutoRanker` takes, such as ``random_state``.

    Examples
    --------
    >>> import unskew
    >>> from unskew.datasets.tables import features_table
    >>> labels = unskew.datasets.make_search_dataset(n_queries=60, n_features=16, seed=0)
    >>> log = unskew.simulate.sample(labels, sessions=2_000, seed=0)
    >>> data = unskew.read_log(log, features=features_table(labels))
    >>> ranker = unskew.fit(data, trials=1, random_state=0, verbose=0)
    >>> ranker.predict(labels).shape == (len(labels),)
    True

    """
    return AutoRanker(seconds=seconds, trials=trials, **settings).fit(data)
