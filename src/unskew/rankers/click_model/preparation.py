"""From a log and settings to the start of boosting: the click model on the clicks to learn from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.clicks.fitting.likelihood import ClickLikelihood
from unskew.errors import DataError
from unskew.log.impressions import Impressions
from unskew.log.labelled import LabelledData
from unskew.position_bias import PositionBias
from unskew.rankers.click_model.learned import LearnedClickModel, new_likelihood, with_contexts
from unskew.rankers.click_model.objective import ClickObjective, LabelObjective, relevance_of
from unskew.rankers.click_model.split import shown_documents
from unskew.rankers.click_model.start import start_curves, starting_offset
from unskew.rankers.click_model.training import Start
from unskew.rankers.click_model.validation import HeldOut

__all__ = [
    "ClickSettings",
    "check_clicks",
    "held_out_clicks",
    "relevant_queries",
    "start_clicks",
    "start_labels",
]

FloatArray = npt.NDArray[np.float64]

# The fewest sessions from which a context has a curve of its own.
FEWEST_SESSIONS = 30


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
    held: PositionBias | None = None
    earlier: LearnedClickModel | None = None
    offset: float | None = None


def check_clicks(data: Impressions, what: str = "the log") -> None:
    """Refuse clicks that say nothing about relevance."""
    if not data.n_clicks:
        raise DataError(f"{what} has no click: there is nothing to learn from")
    if data.n_clicks == data.n_rows:
        raise DataError(
            f"every result of {what} was clicked: there is nothing to learn from. Give the results "
            "that were shown and not clicked as well"
        )


def known_contexts(data: Impressions) -> tuple[tuple[Any, ...], list[str]]:
    """The contexts with sessions enough for a curve of their own, and a remark about the others."""
    sessions = np.bincount(
        data.patterns.context + 1, weights=data.patterns.count, minlength=len(data.contexts) + 1
    )[1:]
    enough = sessions >= FEWEST_SESSIONS
    names = data.contexts.tolist()
    kept = tuple(name for name, often in zip(names, enough, strict=True) if often)
    if enough.all():
        return kept, []
    rare = [name for name, often in zip(names, enough, strict=True) if not often]
    return kept, [
        f"the context(s) {rare} were seen in fewer than {FEWEST_SESSIONS} sessions, too few for a "
        "curve of their own: they count as sessions without a context"
    ]


def start_clicks(
    data: Impressions, mass: FloatArray, settings: ClickSettings
) -> tuple[Start, ClickObjective, list[str]]:
    """The click model on a log and the relevance to begin with, and what the user should know."""
    model, likelihood, remarks = _click_model(data, mass, settings)
    objective = ClickObjective(
        likelihood, model, p=settings.p, em_steps=settings.em_steps, held=settings.held
    )
    offset = settings.offset
    if offset is None:
        # A curve that is held is not to be started anew.
        first = start_curves(likelihood) if settings.held is None else 0.0
        offset = starting_offset(objective, len(data.documents), first)
    start = Start(objective, shown_documents(data, mass), len(data.documents), offset)
    return start, objective, remarks


def _click_model(
    data: Impressions, mass: FloatArray, settings: ClickSettings
) -> tuple[LearnedClickModel, ClickLikelihood, list[str]]:
    n, held = settings.n_positions, settings.held
    if held is not None:
        curve = held.t_plus / held.t_plus.max()
        model = LearnedClickModel("pbm", n, (), {"examination": curve})
        return model, model.on(data, mass), []
    if settings.earlier is not None:
        return settings.earlier, settings.earlier.on(data, mass), []
    contexts, remarks = known_contexts(data) if settings.click_model == "contextual" else ((), [])
    likelihood = new_likelihood(
        settings.click_model, with_contexts(data, contexts), n_positions=n,
        n_contexts=len(contexts), mass=mass,
    )  # fmt: skip
    return LearnedClickModel(settings.click_model, n, contexts, {}), likelihood, remarks


def held_out_clicks(objective: ClickObjective, data: Impressions, mass: FloatArray) -> HeldOut:
    """Clicks that training does not see, judged by its click model of the moment."""
    sizes = np.diff(data.pages.offsets)[data.patterns.page]
    return HeldOut(
        data.features, shown_documents(data, mass), float((mass * sizes).sum()),
        objective.held_out(data, mass),
    )  # fmt: skip


def start_labels(
    labels: LabelledData, held_out: npt.NDArray[np.bool_], offset: float | None
) -> tuple[Start, HeldOut]:
    """The labels to learn from, and those of the queries that are held out."""
    relevance = relevance_of(labels)
    hidden = np.repeat(held_out, np.diff(labels.offsets))
    objective = LabelObjective(relevance, (~hidden).astype(np.float64))
    other = LabelObjective(relevance, hidden.astype(np.float64))
    if offset is None:
        offset = starting_offset(objective, len(labels), 0.0)
    start = Start(objective, np.flatnonzero(~hidden), len(labels), offset)
    rows = np.flatnonzero(hidden)
    return start, HeldOut(labels.features, rows, float(len(rows)), lambda: other)


def relevant_queries(labels: LabelledData) -> npt.NDArray[np.bool_]:
    """Which queries have a relevant document."""
    return np.logical_or.reduceat(labels.relevance > 0, labels.offsets[:-1])
