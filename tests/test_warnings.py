"""Warnings lead the user to a line of their own."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import unskew

SOURCE = Path(__file__).resolve().parents[1] / "src" / "unskew"


@pytest.mark.parametrize("resampled", [False, True], ids=["fit", "bootstrap"])
def test_a_warning_names_the_line_that_called(resampled: bool) -> None:
    """However deep inside a warning arises, the place that it names is the user's own."""
    data = unskew.Impressions.from_arrays(
        None,
        [1, 0, 0] * 20 + [0, 1, 0] * 10,
        session=np.repeat(np.arange(30), 3),
        query=["tea"] * 90,
        doc=["green", "black", "white"] * 30,
        position=[1, 2, 3] * 30,
    )
    estimator = unskew.bias.RelativeCTR()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if resampled:
            unskew.bias.bootstrap_bias(estimator, data, n_resamples=20)
        else:
            estimator.fit(data)
    assert "close to 0" in str(caught[0].message)
    assert {Path(one.filename) for one in caught} == {Path(__file__)}


def test_there_is_one_way_to_warn() -> None:
    """No module counts the frames between itself and the user: `unskew.errors.warn` does."""
    pattern = re.compile(r"warnings\.warn\(")
    found = [path.name for path in SOURCE.rglob("*.py") if pattern.search(path.read_text("utf-8"))]
    assert found == ["errors.py"]
