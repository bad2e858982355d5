"""Krippendorff's alpha against the package of that name and a value worked out by hand."""

from __future__ import annotations

import krippendorff
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from unskew.online.judging.agreement import krippendorff_alpha


def test_by_hand():
    """Two assessors, three units (0,0), (1,1), (0,1): D_o = 2/6, D_e = 2 * 3 * 3 / (6 * 5)."""
    counts = [[2, 0], [0, 2], [1, 1]]
    assert krippendorff_alpha(counts, "nominal") == pytest.approx(1 - (2 / 6) / (18 / 30))


@settings(max_examples=200, deadline=None)
@given(
    counts=arrays(
        np.int64, st.tuples(st.integers(1, 12), st.integers(2, 5)), elements=st.integers(0, 4)
    ),
    level=st.sampled_from(["nominal", "ordinal"]),
)
def test_package_agrees(counts, level):
    """For any counts the package gives the same, or we say that alpha is not defined."""
    ours = krippendorff_alpha(counts, level)
    pairable = counts[counts.sum(axis=1) >= 2]
    if np.count_nonzero(pairable.sum(axis=0)) < 2:
        assert ours is None
        return
    theirs = krippendorff.alpha(
        value_counts=counts, value_domain=list(range(counts.shape[1])), level_of_measurement=level
    )
    assert ours == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize("counts", [[], [[1, 0], [0, 1]], [[3, 0], [2, 0]]])
def test_undefined(counts):
    """Without two assessors on a unit, or with one value only, alpha is not defined."""
    assert krippendorff_alpha(counts, "nominal") is None
    assert krippendorff_alpha(counts, "ordinal") is None


def test_perfect_and_opposite():
    """Assessors who always agree have alpha 1; two who always differ have less than 0."""
    assert krippendorff_alpha([[2, 0, 0], [0, 0, 2], [0, 2, 0]], "ordinal") == pytest.approx(1.0)
    opposite = krippendorff_alpha([[1, 0, 1]] * 10, "ordinal")
    assert opposite is not None
    assert opposite < 0
