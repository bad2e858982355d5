"""Choice: what a search tried, what it took, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import numpy as np

from unskew.choose.blend import Blend, trust_of
from unskew.choose.candidates import SHORT, TITLES
from unskew.choose.found import Trial
from unskew.rankers.saving import finite


@dataclass(frozen=True)
class Choice:
    """What was tried and why the winner won.

    Attributes
    ----------
    winner
        What the model is, in words.
    weights
        What each of its parts counts.
    reasons
        Why, one sentence for each decision.
    trials
        Every training: its title, the fold it was judged on, its settings, its trees, the mean
        log-likelihood of the held-out clicks, its seconds.
    blends
        The ways to add up the parts, with the doubly robust DCG of held-out queries.
    seconds
        How long it took in all.

    """

    winner: str
    weights: dict[str, float]
    reasons: tuple[str, ...]
    trials: tuple[dict[str, Any], ...]
    blends: tuple[dict[str, Any], ...]
    seconds: float = field(default=0.0)

    @classmethod
    def of(
        cls,
        winner: Mapping[str, float],
        reasons: Sequence[str],
        trials: Sequence[Trial],
        blends: Sequence[Blend],
        seconds: float,
    ) -> Self:
        """The choice that a search led to."""
        return cls(
            described(winner), dict(winner), tuple(reasons), tuple(asdict(one) for one in trials),
            tuple(_blend_row(one) for one in blends), seconds,
        )  # fmt: skip

    @property
    def trust(self) -> float:
        """The share of the debiased half: 0 ignores positions, 1 is debiased alone."""
        return trust_of(self.weights)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        found = asdict(self)
        return {**found, **{key: list(found[key]) for key in ("reasons", "trials", "blends")}}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`; a ValueError if it is something else."""
        weights = {str(part): finite(one, "weights") for part, one in content["weights"].items()}
        if not isinstance(content["winner"], str) or not set(weights) <= set(TITLES):
            raise ValueError("choice has an unknown part")
        lists = {key: tuple(content[key]) for key in ("reasons", "trials", "blends")}
        if not all(isinstance(one, dict) for key in ("trials", "blends") for one in lists[key]):
            raise ValueError("choice has a trial that is no object")
        seconds = finite(content["seconds"], "seconds")
        found = cls(content["winner"], weights, seconds=seconds, **lists)
        str(found)  # whatever a trial lacks is missed when the choice is printed
        return found

    def __str__(self) -> str:
        header = f"{'tried':<42}{'leaves':>7}{'fold':>5}{'trees':>7}{'held-out':>11}{'seconds':>9}"
        rows = [_trial_line(one) for one in self.trials]
        shares = [f"{one['name']:<70}{_number(one['dcg'], 5):>11}" for one in self.blends]
        measured = ["", f"{'added up':<70}{'DCG@10':>11}", *shares]
        lines = [
            header,
            *rows,
            *(measured if len(shares) > 1 else []),
            "",
            f"chosen: {self.winner}",
        ]
        return "\n".join([*lines, *(f"- {reason}" for reason in self.reasons)])


def described(weights: Mapping[str, float]) -> str:
    """A blend in words, such as "75% debiased + 25% position ignored"."""
    parts = sorted(weights.items(), key=lambda one: -one[1])
    return " + ".join(f"{weight:.0%} {SHORT[part]}" for part, weight in parts)


def _blend_row(blend: Blend) -> dict[str, Any]:
    value = None if np.isnan(blend.value) else blend.value
    error = None if not np.isfinite(blend.error) else blend.error
    return {
        "name": described(blend.weights), "weights": dict(blend.weights), "dcg": value,
        "error": error,
    }  # fmt: skip


def _trial_line(trial: Mapping[str, Any]) -> str:
    leaves = trial["settings"].get("num_leaves", "")
    return (
        f"{trial['title']:<42}{leaves:>7}{trial['fold'] + 1:>5}{trial['trees']:>7}"
        f"{_number(trial['log_likelihood'], 5):>11}{trial['seconds']:>9.1f}"
    )


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"
