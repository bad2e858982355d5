"""From a log and settings to the start of boosting: the click model on the clicks to learn from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray
from unskew.clicks.fitting.affine import AffineLikelihood
from unskew.clicks.fitting.fitted import FEW_SESSIONS, likelihood_of
from unskew.clicks.fitting.likelihood import ClickLikelihood
from unskew.clicks.fitting.log_clicks import LogClicks
from unskew.errors import DataError, UsageError
from unskew.log.counts import n_shown
from unskew.log.impressions import Impressions
from unskew.log.labelled import LabelledData
from unskew.position_bias import PositionBias
from unskew.rankers.click_model.learned import LearnedClickModel
from unskew.rankers.click_model.objective import ClickObjective, LabelObjective
from unskew.rankers.click_model.start import start_curves, starting_offset
from unskew.rankers.click_model.training import Start
from unskew.rankers.click_model.validation import HeldOut
from unskew.rankers.split import shown_documents


@dataclass(frozen=True, eq=False)
class ClickSettings:
    """What decides how clicks come about.

    ``held`` is a position bias that is not learned; ``earlier`` and ``offset`` are what an earlier
    training ended with.
    """

    click_model: str
    n_positions: int
    p: float
    em_steps: int
    most_looks: float | None = None
    held: PositionBias | None = None
    earlier: LearnedClickModel | None = None
    offset: float | None = None


def check_validation(data: Impressions) -> None:
    """Refuse held-out clicks that measure nothing."""
    if not data.n_clicks:
        raise DataError("the validation log has no click: give sessions with clicks, or labels")


def start_clicks(
    data: Impressions, mass: FloatArray, settings: ClickSettings
) -> tuple[Start, ClickObjective]:
    """The click model on the clicks to learn from, and the relevance to begin with."""
    name, likelihood = _click_model(data, mass, settings)
    if settings.p > 0 and not isinstance(likelihood, AffineLikelihood):
        raise UsageError(
            f"p must be 0 with click_model={name!r}, whose examination is no curve to take a power "
            f"of: got {settings.p:g}"
        )
    objective = ClickObjective(
        likelihood, name=name, n_positions=settings.n_positions, p=settings.p,
        em_steps=settings.em_steps, held=settings.held,
    )  # fmt: skip
    offset = settings.offset
    if offset is None:
        # A curve that is held is not to be started anew.
        first = start_curves(likelihood) if settings.held is None else 0.0
        offset = starting_offset(objective, len(data.documents), first)
    shown = shown_documents(data, mass)
    start = Start(objective, shown, len(data.documents), offset, settings.most_looks)
    return start, objective


def _click_model(
    data: Impressions, mass: FloatArray, settings: ClickSettings
) -> tuple[str, ClickLikelihood]:
    """The model's name and the model, as it was before or new."""
    name = settings.click_model if settings.held is None else "pbm"
    likelihood = likelihood_of(name, data, n_positions=settings.n_positions, mass=mass)
    if settings.held is not None:
        likelihood.set_own(settings.held.t_plus / settings.held.t_plus.max())
    elif settings.earlier is not None:
        likelihood = settings.earlier.on(data, mass)
    return name, likelihood


def rare_contexts(data: Impressions, mass: FloatArray) -> list[str]:
    """A remark about contexts with too few sessions for a curve of their own."""
    sessions = LogClicks(data, mass).sessions_by_context()
    rare = [name for name, number in sessions.items() if number < FEW_SESSIONS]
    if not rare:
        return []
    return [
        f"the context(s) {rare} have fewer than {FEW_SESSIONS:.0f} sessions: their curves are mostly "
        "that of all sessions"
    ]


def held_out_clicks(objective: ClickObjective, data: Impressions, mass: FloatArray) -> HeldOut:
    """Clicks that training does not see, judged by its click model of the moment."""
    return HeldOut(
        data.features, shown_documents(data, mass), n_shown(data, mass),
        objective.held_out(data, mass),
    )  # fmt: skip


def start_labels(
    labels: LabelledData,
    relevance: FloatArray,
    held_out: npt.NDArray[np.bool_],
    offset: float | None,
) -> tuple[Start, HeldOut]:
    """The labels to learn from, and those of the queries that are held out."""
    hidden = np.repeat(held_out, np.diff(labels.offsets))
    objective = LabelObjective(relevance, (~hidden).astype(np.float64))
    other = LabelObjective(relevance, hidden.astype(np.float64))
    if offset is None:
        offset = starting_offset(objective, len(labels), 0.0)
    start = Start(objective, np.flatnonzero(~hidden), len(labels), offset)
    rows = np.flatnonzero(hidden)
    return start, HeldOut(labels.features, rows, float(len(rows)), lambda: other)
