"""What tests share: the real data, and test helpers that every test of a folder can import."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real ranking data; a test that needs it skips where it is absent."""
    root = Path(__file__).resolve().parents[1]
    folder = Path(os.environ.get("UNSKEW_DATA", root.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("real data is absent: set UNSKEW_DATA to its folder")
    return folder
