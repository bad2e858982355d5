"""Parts that the tests of all engines share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from clicked_parts import clicked_log

import unskew
from unskew.log.merging import take_queries
from unskew.log.parts import parts_writer

pytest.importorskip("xgboost", reason="training with an engine needs the extra xgboost")


@pytest.fixture(scope="session")
def log() -> unskew.Impressions:
    """The whole log."""
    return clicked_log()


@pytest.fixture(scope="session")
def parts(log: unskew.Impressions, tmp_path_factory: Any) -> Path:
    """The log in three unequal parts and an empty one; the last has no click."""
    folder: Path = tmp_path_factory.mktemp("parts") / "parts"
    silent = log.take_patterns(log.patterns.offsets[1:] == log.patterns.offsets[:-1])
    n = log.n_queries
    ranges = (range(25), range(25, n - 3), ())
    with parts_writer(folder) as writer:
        for queries in ranges:
            writer.add(take_queries(log, list(queries)))
        writer.add(take_queries(silent, list(range(n - 3, n))))
    return folder
