"""Damaged logs, features, labels and candidates end with our own error, or right."""

from __future__ import annotations

from fuzz.fixed_cases import check, every_kind


@every_kind("logs")
def test_fixed_cases_of_logs(module, kind):
    """A few hundred cases from a fixed seed: each is refused by our own error, or confirmed."""
    check(module, kind)
