"""What tests share: the real data, and test helpers that every test of a folder can import."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

# A busy machine is no fault of the code: no test fails for the time that an example takes.
settings.register_profile("unskew", deadline=None)
settings.load_profile("unskew")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real ranking data; a test that needs it skips where it is absent."""
    root = Path(__file__).resolve().parents[1]
    folder = Path(os.environ.get("UNSKEW_DATA", root.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("real data is absent: set UNSKEW_DATA to its folder")
    return folder
