"""What every click model has: declared parameters, attraction from grades, exact marginals."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray
from unskew.clicks.fitting.likelihood import ClickLikelihood
from unskew.clicks.fitting.log_clicks import LogClicks
from unskew.clicks.kernels import Family, FlatPages
from unskew.clicks.stream import Streams
from unskew.errors import DataError, UsageError
from unskew.log.grades import gain
from unskew.registry import CLICK_MODELS
from unskew.threads import share

# Examination at positions 1 to 10 in the eye-tracking study of Joachims et al. (SIGIR 2005), as
# used by the simulations that followed it. Below position 10 the last value continues.
EYE_TRACKING = (0.68, 0.61, 0.48, 0.34, 0.28, 0.20, 0.11, 0.10, 0.08, 0.06)


def parameter(
    default: Any, meaning: str, *, low: float | None = None, high: float | None = None
) -> Any:
    """A declared parameter of a click model: its default, its meaning, its range (inclusive)."""
    return field(default=default, metadata={"meaning": meaning, "low": low, "high": high})


def curve(values: npt.ArrayLike, n: int) -> FloatArray:
    """The first ``n`` values over positions; below its end a curve keeps its last value."""
    given = np.asarray(values, dtype=np.float64)
    return given[np.minimum(np.arange(n), len(given) - 1)]


@dataclass(frozen=True, kw_only=True)
class ClickModel(ABC):
    """How a user who sees a page of graded results clicks on it.

    A result of grade y attracts with probability ``epsilon + (1 - epsilon) * (2^y - 1) /
    (2^max_grade - 1)``.

    Examples
    --------
    >>> from unskew.clicks import ClickModel, click_model
    >>> isinstance(click_model("cascade"), ClickModel)
    True

    """

    name: ClassVar[str]
    family: ClassVar[Family]
    # Whether examination depends on the position (and the context) alone.
    position_based: ClassVar[bool] = False
    # Whether it is fitted to what users do after a click.
    needs_several_clicks: ClassVar[bool] = False

    epsilon: float = parameter(0.1, "attraction of an irrelevant result", low=0, high=1)
    max_grade: int = parameter(4, "the highest grade of the scale", low=1, high=1000)

    def __post_init__(self) -> None:
        for declared in fields(self):
            meta = declared.metadata
            for value in np.atleast_1d(np.asarray(_numbers(getattr(self, declared.name)))):
                _check_range(self.name, declared.name, value, meta["low"], meta["high"])

    @classmethod
    def parameters(cls) -> dict[str, str]:
        """The parameters of the model and what each means."""
        return {declared.name: declared.metadata["meaning"] for declared in fields(cls)}

    def describe(self) -> dict[str, Any]:
        """The parameters and their values."""
        return {declared.name: getattr(self, declared.name) for declared in fields(self)}

    @property
    def meaning(self) -> str:
        """What the model assumes, in one line; the name of a model that is not registered."""
        return CLICK_MODELS[self.name].summary if self.name in CLICK_MODELS else self.name

    @property
    def contexts(self) -> tuple[str, ...]:
        """The contexts that sessions have, none for most models."""
        return ()

    def attraction(self, grade: npt.ArrayLike) -> FloatArray:
        """The probability that a result of this grade is clicked once it is examined."""
        return self.epsilon + (1.0 - self.epsilon) * self._relevance(grade)

    def _relevance(self, grade: npt.ArrayLike) -> FloatArray:
        grades = np.asarray(grade, dtype=np.float64)
        wrong = np.flatnonzero(~((grades >= 0) & (grades <= self.max_grade)).ravel())
        if len(wrong):
            raise DataError(
                f"relevance must lie between 0 and the declared max_grade={self.max_grade}: entry "
                f"{wrong[0] + 1:,} is {grades.ravel()[wrong[0]]:g}; pass max_grade for another"
            )
        return gain(grades) / (2.0**self.max_grade - 1.0)

    def draw_contexts(self, first: int, count: int, *, seed: int) -> npt.NDArray[np.int32]:
        """The context of each session, as an index; all 0 where the model has none."""
        return np.zeros(count, dtype=np.int32)

    @classmethod
    def likelihood(cls, clicks: LogClicks, *, n_positions: int) -> ClickLikelihood:
        """The model on the clicks of a log, to be fitted to them."""
        raise UsageError(f"click model {cls.name!r} only simulates: it has no likelihood to fit")

    @abstractmethod
    def chances(self, relevance: FloatArray, n: int) -> Any:
        """What the kernels of the family need to know: grades by row, pages of up to ``n`` slots."""

    def draw(
        self, pages: FlatPages, relevance: FloatArray, streams: Streams
    ) -> npt.NDArray[np.int8]:
        """Sample the clicks of consecutive sessions, ``relevance`` being the grades by row."""
        click = np.empty(len(pages.row), dtype=np.int8)
        at = streams, pages, self.chances(relevance, pages.length), click
        share(pages.offsets, lambda *span: self.family.draw(*span, *at))
        return click

    def marginals(self, pages: FlatPages, relevance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """P(examined) and P(click) of every slot, exactly."""
        examined, click = np.empty(len(pages.row)), np.empty(len(pages.row))
        self.family.marginals(pages, self.chances(relevance, pages.length), examined, click)
        return examined, click

    def click_probabilities(
        self, grades: npt.ArrayLike, *, context: str | None = None
    ) -> FloatArray:
        """The exact probability of a click on each result of one page or of several equally long.

        ``grades`` has the shape (positions,) or (pages, positions), and so has the answer. A
        contextual model without ``context`` averages over its contexts.
        """
        return self._probabilities(grades, context)[1]

    def examination_probabilities(
        self, grades: npt.ArrayLike, *, context: str | None = None
    ) -> FloatArray:
        """The exact probability that each result is examined; shapes as in the click method."""
        return self._probabilities(grades, context)[0]

    def _probabilities(
        self, grades: npt.ArrayLike, context: str | None
    ) -> tuple[FloatArray, FloatArray]:
        matrix = np.asarray(grades, dtype=np.float64)
        if matrix.ndim not in (1, 2) or not matrix.size:
            raise UsageError(f"grades must be one page or several, got shape {matrix.shape}")
        n_pages, length = np.atleast_2d(matrix).shape
        offsets = np.arange(n_pages + 1, dtype=np.int64) * length
        row = np.arange(matrix.size, dtype=np.int32)
        examined, clicked = np.zeros(matrix.size), np.zeros(matrix.size)
        for index, portion in self.context_shares(context):
            pages = FlatPages(offsets, row, np.full(n_pages, index, dtype=np.int32))
            one, two = self.marginals(pages, matrix.ravel())
            examined += portion * one
            clicked += portion * two
        return examined.reshape(matrix.shape), clicked.reshape(matrix.shape)

    def context_shares(self, context: str | None) -> list[tuple[int, float]]:
        """The contexts to average over, as indices, with their shares; one if it is named."""
        if context is not None:
            raise UsageError(f"model {self.name!r} has no contexts, got context={context!r}")
        return [(0, 1.0)]


def _numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return list(value.values())
    return value


def _check_range(model: str, name: str, value: Any, low: float | None, high: float | None) -> None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    below = low is not None and not number >= low
    above = high is not None and not number <= high
    if below or above or np.isnan(number):
        shown = value.item() if isinstance(value, np.generic) else value
        limits = f"at least {low}" if high is None else f"in [{low}, {high}]"
        raise UsageError(f"{name} of click model {model!r} must be {limits}, got {shown!r}")
