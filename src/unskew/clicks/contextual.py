"""The contextual position-based model: each device has its own curve of examination."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray
from unskew.clicks.base import EYE_TRACKING, curve, parameter
from unskew.clicks.fitting.affine import AffineLikelihood
from unskew.clicks.fitting.cells import States
from unskew.clicks.fitting.log_clicks import LogClicks
from unskew.clicks.kernels import draw_contexts
from unskew.clicks.pbm import AffineModel
from unskew.clicks.stream import Streams, stream_key
from unskew.errors import DataError, UsageError
from unskew.threads import share

_THETAS = (("desktop", 1.0), ("mobile", 1.75), ("tablet", 0.5))
_SHARES = (("desktop", 0.4), ("mobile", 0.5), ("tablet", 0.1))


@dataclass(frozen=True, kw_only=True)
class ContextualModel(AffineModel):
    """Click with probability ``rho[k] ** theta[context] * attraction``.

    The idea of a curve per context is that of Fang, Agarwal and Joachims (SIGIR 2019). They publish
    no curves by device: the default thetas and shares are this package's.

    Examples
    --------
    >>> from unskew.clicks import ContextualModel
    >>> thetas, shares = {"desktop": 1.0, "mobile": 2.0}, {"desktop": 0.5, "mobile": 0.5}
    >>> sorted(ContextualModel(thetas=thetas, shares=shares).thetas)
    ['desktop', 'mobile']

    """

    name: ClassVar[str] = "contextual"

    thetas: Mapping[str, float] = parameter(_THETAS, "theta of each context", low=0)
    shares: Mapping[str, float] = parameter(_SHARES, "share of sessions of each context", low=0)
    rho: tuple[float, ...] = parameter(
        EYE_TRACKING, "examination from position 1 down", low=0, high=1
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "thetas", dict(self.thetas))
        object.__setattr__(self, "shares", dict(self.shares))
        super().__post_init__()
        if set(self.thetas) != set(self.shares) or not self.thetas:
            raise UsageError(
                f"thetas and shares must name the same contexts: {list(self.thetas)} and "
                f"{list(self.shares)}"
            )
        if not sum(self.shares.values()) > 0:
            raise UsageError("shares must not all be 0")

    @property
    def contexts(self) -> tuple[str, ...]:
        """The names of the contexts."""
        return tuple(self.thetas)

    def examination(self, n: int) -> FloatArray:
        """``rho ** theta``, one row per context."""
        theta = np.array([self.thetas[name] for name in self.contexts])
        return np.asarray(curve(self.rho, n)[None, :] ** theta[:, None])

    def _weights(self) -> FloatArray:
        weights = np.array([self.shares[name] for name in self.contexts])
        return np.asarray(weights / weights.sum())

    def draw_contexts(self, first: int, count: int, *, seed: int) -> npt.NDArray[np.int32]:
        """The context of each session, drawn by the shares."""
        context = np.empty(count, dtype=np.int32)
        streams = Streams(stream_key(seed, "context"), first)
        at = streams, np.cumsum(self._weights()), context
        share(np.arange(count + 1), lambda *span: draw_contexts(*span, *at))
        return context

    def context_shares(self, context: str | None) -> list[tuple[int, float]]:
        """Those of all contexts, or of the one that is named."""
        if context is None:
            return [(index, float(weight)) for index, weight in enumerate(self._weights())]
        if context not in self.contexts:
            raise UsageError(f"context must be one of {self.contexts}, got {context!r}")
        return [(self.contexts.index(context), 1.0)]

    @classmethod
    def likelihood(cls, clicks: LogClicks, *, n_positions: int) -> AffineLikelihood:
        """The model on a log, to be fitted: an examination for each context and position."""
        seen = np.unique(clicks.arrays.context[clicks.arrays.mass > 0])
        if len(seen) < 2:
            raise DataError(
                "all sessions have the same context, or none: there are no contexts to compare. Name "
                "the column of contexts when the log is read, context=… (--context), or fit the model "
                "'pbm'"
            )
        return AffineLikelihood(clicks, States.by_context(n_positions, clicks.data.contexts))
