"""Small labelled data for the simulation tests."""

from __future__ import annotations

import pytest

from labelled_data import make_data


@pytest.fixture(scope="session")
def data():
    """Forty queries of twelve documents."""
    return make_data()
