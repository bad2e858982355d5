"""Several processes on one folder."""

from __future__ import annotations

from fuzz.writers import run

FINE = {"won by a", "won by b", "old", "new", "absent", "failed writers or readers"}


def test_two_writers_and_a_reader():
    """Both writers succeed, the folder is one of theirs, and a reader only sees whole results."""
    outcome = run(12)
    assert set(outcome) <= FINE, outcome
    assert outcome["failed writers or readers"] == 0
    assert outcome["won by a"] + outcome["won by b"] == 12
    assert outcome["new"] > 0
