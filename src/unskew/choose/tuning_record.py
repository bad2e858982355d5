"""What a search has tried so far: in memory, in a file that it can go on from, and as a table."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from unskew.array_types import FloatArray
from unskew.choose.search_space import Space
from unskew.choose.tuning_measure import TuningMeasure
from unskew.errors import StoreError, UsageError
from unskew.log.impressions import Impressions
from unskew.rankers.saving import finite, numbers
from unskew.store import replace_file

KIND, VERSION = "tuning", 1
# The winner must beat the defaults by so many standard errors of the difference.
CLEARLY_BETTER = 1.0
_STATES = ("complete", "given up", "refused")


@dataclass
class TuningTrial:
    """One trial: its settings and, fold by fold, its gains in blocks of queries and its seconds."""

    number: int
    settings: dict[str, Any]
    status: str = ""
    mean: float = float("nan")
    gains: list[FloatArray] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    reason: str | None = None

    @property
    def slowest_fold(self) -> float:
        """The seconds of its slowest training."""
        return max(self.seconds, default=0.0)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "number": self.number, "settings": _plain(self.settings), "status": self.status,
            "mean": None if np.isnan(self.mean) else self.mean,
            "gains": [one.tolist() for one in self.gains], "seconds": self.seconds,
            "reason": self.reason,
        }  # fmt: skip

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> TuningTrial:
        """The inverse of `to_dict`."""
        gains = [numbers(one, "gains") for one in content["gains"]]
        if content["status"] not in _STATES or not isinstance(content["settings"], dict):
            raise ValueError("a trial has no status or settings")
        if type(content["number"]) is not int or not isinstance(content["reason"], str | None):
            raise ValueError("a trial has no number, or a reason that is no text")
        mean, seconds = content["mean"], numbers(content["seconds"], "seconds")
        if not all(np.isfinite(one).all() for one in (*gains, seconds)):
            raise ValueError("gains and seconds must be finite")
        return cls(
            content["number"], content["settings"], content["status"],
            float("nan") if mean is None else finite(mean, "mean"), gains, seconds.tolist(),
            content["reason"],
        )  # fmt: skip


class TuningRecord:
    """The trials of a search that were over, and the file that keeps them."""

    def __init__(self, about: dict[str, Any], path: Path | None = None) -> None:
        self.about, self.path = about, path
        self.trials: list[TuningTrial] = []

    @classmethod
    def opened(cls, path: str | os.PathLike[str] | None, about: dict[str, Any]) -> TuningRecord:
        """A record that goes on from a file, if it is there; it must be of the same search."""
        record = cls(about, None if path is None else Path(path))
        if record.path is None or not record.path.exists():
            return record
        content = _content(record.path)
        if content.get("sha256") != _digest(content):
            raise StoreError(f"{record.path} was changed after it was written: remove it")
        for name, value in about.items():
            if not isinstance(content.get("about"), dict) or content["about"].get(name) != value:
                raise UsageError(
                    f"{record.path} is of another search: its {name} differs; give the same data and "
                    "search again, or another file"
                )
        try:
            record.trials = [TuningTrial.from_dict(one) for one in content["trials"]]
            record._check()
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise StoreError(f"{record.path} is damaged ({error}): remove it") from error
        return record

    def _check(self) -> None:
        """Raise a ValueError for trials that cannot be of one search."""
        if [one.number for one in self.trials] != list(range(len(self.trials))):
            raise ValueError("the trials are not numbered one after the other")
        if len({len(gains) for one in self.trials for gains in one.gains}) > 1:
            raise ValueError("the gains of trials have different lengths")
        for one in self.complete:
            if len(one.gains) != self.about["n_folds"] or np.isnan(one.mean):
                raise ValueError(f"trial {one.number} is not complete")

    def add(self, trial: TuningTrial) -> None:
        """Keep one more trial, in the file as well."""
        self.trials.append(trial)
        if self.path is not None:
            content = {
                "written_by": "unskew", "kind": KIND, "version": VERSION, "about": self.about,
                "trials": [one.to_dict() for one in self.trials],
            }  # fmt: skip
            text = json.dumps({**content, "sha256": _digest(content)})
            self.path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(self.path, lambda file: file.write_text(text, encoding="utf-8"))

    @property
    def complete(self) -> list[TuningTrial]:
        """The trials that were judged on all folds."""
        return [one for one in self.trials if one.status == "complete"]

    @property
    def best(self) -> TuningTrial | None:
        """The complete trial with the highest mean; of equal ones the first."""
        return max(self.complete, key=lambda one: one.mean, default=None)

    def winner(self, measure: TuningMeasure) -> TuningTrial | None:
        """The best trial if it clearly beats the first, which has the defaults; else the first."""
        best, first = self.best, next(iter(self.complete), None)
        if best is None or first is None or best is first:
            return best
        gap = measure.compare(best.gains, first.gains)
        return best if gap.difference > CLEARLY_BETTER * gap.error else first

    def table(self, measure: TuningMeasure, winner: TuningTrial) -> dict[str, Any]:
        """What was tried, as plain values: one row for each trial, and why the winner won."""
        first = self.complete[0]
        rows = []
        for one in self.trials:
            gap = measure.compare(one.gains, first.gains) if one.gains else None
            rows.append({
                "number": one.number, "settings": _plain(one.settings), "status": one.status,
                "dcg": None if np.isnan(one.mean) else one.mean,
                "gain": None if gap is None else gap.difference,
                "gain_error": None if gap is None else _finite(gap.error),
                "folds": len(one.gains), "seconds": round(sum(one.seconds), 3),
                "won": one is winner, "reason": one.reason,
            })  # fmt: skip
        return {
            "ranker": self.about["ranker"], "measure": f"doubly robust dcg@{measure.k}",
            "space": self.about["space"], "trials": rows, "why": self._why(measure, winner),
        }  # fmt: skip

    def _why(self, measure: TuningMeasure, winner: TuningTrial) -> str:
        best, first = self.best, self.complete[0]
        if best is None or best is first:
            return "the defaults won: no other trial was better on held-out clicks"
        gap = measure.compare(best.gains, first.gains)
        told = f"{gap.difference:+.4f} ± {gap.error:.4f} against the defaults on held-out clicks"
        if winner is first:
            return f"the defaults won: the best other trial has {told}, which is within chance"
        return f"trial {winner.number} won: {told}"


def described(
    data: Impressions, *, space: Space, curve: FloatArray, fixed: Mapping[str, Any], **more: Any
) -> dict[str, Any]:
    """What makes a search the same search: the log, the space, the bias, the settings."""
    values = data.features.values
    log = hashlib.sha256()
    for array in (data.patterns.count, data.patterns.page, data.patterns.slot, values):
        log.update(np.ascontiguousarray(array).tobytes())
    return {
        **more, "space": {name: str(one) for name, one in space.items()},
        "fixed": {name: str(value) for name, value in fixed.items()},
        "bias": [float(f"{value:.6g}") for value in curve], "log": log.hexdigest(),
    }  # fmt: skip


def _content(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise StoreError(f"{path} is no record of a search ({error}): give another file") from error
    if not isinstance(content, dict) or content.get("kind") != KIND:
        raise StoreError(f"{path} is no record of a search: give another file")
    return content


def _digest(content: Mapping[str, Any]) -> str:
    """The checksum of what a record says."""
    said = {name: content.get(name) for name in ("about", "trials")}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: list(v) if isinstance(v, tuple) else v for name, v in settings.items()}


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
