"""What a log must have before a click model is fitted to it."""

from __future__ import annotations

import numpy as np

from unskew.clicks.base import ClickModel
from unskew.clicks.fitting.likelihood import ClickLikelihood
from unskew.clicks.fitting.log_clicks import LogClicks
from unskew.errors import DataError, warn


def check_clicks(clicks: LogClicks, kind: type[ClickModel]) -> None:
    """Refuse a log whose clicks say nothing about the parameters of this model."""
    log = clicks.arrays
    sizes = np.diff(log.page_offsets)[log.page]
    per_session = np.diff(log.click_offsets)
    counts = log.mass > 0
    if not counts.any():
        raise DataError("the log has no session with a weight above 0: there is nothing to fit")
    if not per_session[counts].any():
        raise DataError("the log has no click: there is nothing to fit a click model to")
    if (per_session == sizes)[counts].all():
        raise DataError(
            "every result of the log was clicked: nothing tells examination from relevance. Give "
            "the results that were shown and not clicked as well"
        )
    if kind.needs_several_clicks and per_session[counts].max() < 2:
        raise DataError(
            f"no session of the log has two clicks, and model {kind.name!r} learns from what users do "
            "after a click. If the log keeps one click per session, give all of them; otherwise fit "
            "'pbm' or 'ubm'"
        )


def warn_of_unlinked_positions(likelihood: ClickLikelihood, name: str) -> None:
    """Warn of positions that no document compares with the topmost one."""
    apart = likelihood.unlinked_positions()
    if apart:
        shown = ", ".join(map(str, apart[:10])) + (", …" if len(apart) > 10 else "")
        warn(
            f"no document links position(s) {shown} to the topmost one: without documents seen at "
            f"several positions model {name!r} cannot tell position from relevance there, and its "
            "examination repeats the click rates. Missing: sessions in which the same documents stood "
            "elsewhere (shuffled, or of another ranker), or features and a ranker that reads them",
        )
