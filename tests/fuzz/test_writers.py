"""Several processes on one folder."""

from __future__ import annotations

import pytest

from fuzz.writers import run

FINE = {"won by a", "won by b", "beside", "old", "new", "absent", "failed writers or readers"}


@pytest.mark.parametrize(("kind", "rounds"), [("note", 12), ("parts", 6)])
def test_writers_and_a_reader(kind, rounds):
    """Every writer succeeds, a folder is one of theirs, and a reader only sees whole results."""
    outcome = run(rounds, kind)
    assert set(outcome) <= FINE, outcome
    assert outcome["failed writers or readers"] == 0
    assert outcome["won by a"] + outcome["won by b"] == outcome["beside"] == rounds
    assert outcome["new"] > 0
