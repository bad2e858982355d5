"""A change between two arms in one measure: how much, how sure, and in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from scipy.stats import norm
from scipy.stats import t as student

from unskew.evaluation.significance import Interval, holm, limits
from unskew.online.measures import Measure
from unskew.online.ratio import Ratio, relative_interval, welch
from unskew.online.sequential import (
    always_valid_p,
    critical_value,
    normal_equivalent,
    student_quantile,
)


@dataclass(frozen=True)
class Rule:
    """How changes are judged: the level, and for looks at any time the change that was expected."""

    level: float = 0.95
    expected: float | None = None


@dataclass(frozen=True)
class Change:
    """The treatment against the control in one measure.

    ``relative`` is the change as a share of the control, with its ``interval`` and the ``p`` of no
    change; ``p_holm`` is corrected for all measures read together. In a sequential reading these hold
    for looks at any time, and ``fixed`` has the p and the interval of a single look. What cannot be
    computed is None. ``removed`` is the share of the variance that an earlier period explained.
    """

    measure: Measure
    level: float
    control: float | None
    treatment: float | None
    relative: float | None
    interval: Interval | None
    p: float | None
    p_holm: float | None = None
    fixed: tuple[float, Interval | None] | None = None
    removed: float | None = None
    units: tuple[int, int] = (0, 0)

    @property
    def decided(self) -> bool:
        """Whether the corrected p-value lies below 1 - level."""
        return self.p_holm is not None and self.p_holm < 1.0 - self.level

    @property
    def verdict(self) -> str:
        """``better``, ``worse``, ``higher`` or ``lower`` for the treatment, or ``undecided``."""
        if not self.decided or self.control is None or self.treatment is None:
            return "undecided"
        up = self.treatment > self.control
        if self.measure.better == 0:
            return "higher" if up else "lower"
        return "better" if up == (self.measure.better > 0) else "worse"

    @property
    def sentence(self) -> str:
        """The finding in words, with the change and its interval."""
        name = self.measure.name
        if self.p is None:
            return f"{name} cannot be compared: too few sessions with a value"
        shown = percent(self.relative) if self.relative is not None else "no relative change"
        around = (
            f" [{percent(self.interval.low)}, {percent(self.interval.high)}]"
            if self.interval is not None
            else " (no interval: the control may as well be 0)"
        )
        if self.verdict == "undecided":
            return f"no difference is shown on {name}: {shown}{around}"
        return f"treatment is {self.verdict} on {name}: {shown}{around}"

    def to_dict(self) -> dict[str, Any]:
        """The numbers as plain values; None where there is none."""
        found: dict[str, Any] = {
            "control": self.control, "treatment": self.treatment, "relative": self.relative,
            "interval": limits(self.interval), "p": self.p, "p_holm": self.p_holm,
            "verdict": self.verdict, "units": list(self.units),
        }  # fmt: skip
        if self.fixed is not None:
            found["fixed"] = {"p": self.fixed[0], "interval": limits(self.fixed[1])}
        if self.removed is not None:
            found["variance_removed"] = self.removed
        return found


def percent(share: float) -> str:
    """A signed percentage with as many digits as it needs."""
    digits = 1 if abs(share) >= 0.01 else 2
    return f"{share:+.{digits}%}"


def _known(value: float) -> float | None:
    return value if isfinite(value) else None


def change(measure: Measure, control: Ratio, treatment: Ratio, rule: Rule) -> Change:
    """The change of a measure with its interval and p-value, before any correction."""
    base = Change(
        measure=measure,
        level=rule.level,
        control=_known(control.value),
        treatment=_known(treatment.value),
        relative=None,
        interval=None,
        p=None,
        units=(control.units, treatment.units),
    )
    found = welch(control, treatment)
    if found is None:
        return base
    tail = (1.0 - rule.level) / 2.0
    critical = (
        float(student.isf(tail, found.freedom)) if isfinite(found.freedom) else norm.isf(tail)
    )
    p = float(2.0 * student.sf(abs(found.statistic), found.freedom))
    interval = relative_interval(control, treatment, float(critical), rule.level)
    base = replace(base, relative=_known(found.change), interval=interval, p=p)
    if rule.expected is None:
        return base
    if not isfinite(found.error):
        return replace(base, p=None, fixed=(p, interval))
    deviate = normal_equivalent(found.statistic, found.freedom)
    if found.error == 0:
        return replace(base, fixed=(p, interval))
    wider = student_quantile(
        critical_value(found.error, rule.expected, 1.0 - rule.level), found.freedom
    )
    return replace(
        base,
        p=always_valid_p(deviate, found.error, rule.expected),
        interval=relative_interval(control, treatment, wider, rule.level),
        fixed=(p, interval),
    )


def correct(changes: Sequence[Change]) -> list[Change]:
    """The same changes with Holm's correction over all of them that have a p-value."""
    known = [c.p for c in changes if c.p is not None]
    corrected = iter(holm(known) if known else [])
    return [replace(c, p_holm=next(corrected)) if c.p is not None else c for c in changes]
