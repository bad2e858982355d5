"""The small world of these tests, built once, and its report."""

from __future__ import annotations

import pytest
from reporting_world import small_world

from unskew.reporting.report import report


@pytest.fixture(scope="session")
def world():
    """The data, the logs and two models."""
    return small_world()


@pytest.fixture(scope="session")
def made(world):
    """The report of that world."""
    return report(world.models, world.log, world.test, n_resamples=20)
