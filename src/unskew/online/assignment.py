"""Was the assignment to the arms carried out as planned? The sample-ratio-mismatch check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unskew.errors import UsageError

# Below this the arms are not what the assignment promised (Fabijan et al., KDD 2019).
MISMATCH = 0.001


@dataclass(frozen=True)
class Assignment:
    """How many units each arm has, and how likely so uneven a split is by chance."""

    unit: str
    control: int
    treatment: int
    share: float
    p: float

    @property
    def mismatch(self) -> bool:
        """Whether the split is too uneven to be chance; no measure can be trusted then."""
        return self.p < MISMATCH

    def to_dict(self) -> dict[str, Any]:
        """The numbers as plain values."""
        return {
            "p": self.p, "mismatch": self.mismatch, "unit": self.unit, "control": self.control,
            "treatment": self.treatment, "share": self.share,
        }  # fmt: skip


def check_share(share: float) -> None:
    """Refuse a share of the treatment that leaves one arm without traffic."""
    if not 0 < share < 1:
        raise UsageError(f"share must lie between 0 and 1, got {share}")


def check_assignment(control: int, treatment: int, *, share: float, unit: str) -> Assignment:
    """The chi-squared test of the arms' sizes against the share that the treatment should have."""
    from scipy.stats import chisquare

    total = control + treatment
    expected = [total * (1.0 - share), total * share]
    p = float(chisquare([control, treatment], expected).pvalue)
    return Assignment(unit, control, treatment, share, p)
