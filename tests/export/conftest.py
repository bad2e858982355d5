"""What tests of exports share."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module", params=["lightgbm", "xgboost"])
def booster(request):
    """Each of the boosters."""
    return request.param
