"""Merged trees: a weighted sum of models is one model of the same library."""

from __future__ import annotations

import numpy as np
import pytest

from unskew.errors import UsageError
from unskew.log.features import Features
from unskew.trees.boosters import TreeSettings, library
from unskew.trees.merging import merged


def grown(booster, seed, rows=slice(None), **extra):
    """A small model of one booster on a part of the rows, one feature of them categorical."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(200, 4))
    values[:, 3] = rng.integers(0, 5, 200)
    values[::7, 1] = np.nan
    features = Features(values, ("a", "b", "c", "d"), {"d": tuple("vwxyz")}).take(
        np.arange(200)[rows]
    )
    settings = TreeSettings(0.3, 6, 0.8, 0.8, 3, 1, 1e-3, seed, 1, extra)
    grower = library(booster).start(features, settings, None)
    target = np.sin(features.values[:, 0]) + (features.values[:, 3] > 2)
    for _ in range(5):
        grower.grow(grower.score - target, np.ones(len(target)))
    return grower.finish(5), values


@pytest.mark.parametrize("booster", ["lightgbm", "xgboost"])
class TestMerged:
    """Both libraries."""

    def test_scores_are_the_weighted_sum(self, booster, tmp_path):
        """So are the contributions of features, and the file of it can be read again."""
        (one, values), (two, _) = grown(booster, 1), grown(booster, 2, slice(0, 150))
        both = merged(booster, [one, two], [0.7, -2.0])
        expected = 0.7 * one.predict(values) - 2.0 * two.predict(values)
        digits = 1e-6 if booster == "xgboost" else 1e-12
        assert both.n_rounds == 10
        np.testing.assert_allclose(both.predict(values), expected, atol=20 * digits)
        parts = 0.7 * one.contributions(values) - 2.0 * two.contributions(values)
        np.testing.assert_allclose(both.contributions(values), parts, atol=100 * digits)
        file = tmp_path / library(booster).file_name
        both.write(file)
        again = library(booster).read(file, 4)
        np.testing.assert_array_equal(again.predict(values), both.predict(values))

    def test_one_model_stays_itself(self, booster):
        """With weight 1 nothing changes."""
        one, values = grown(booster, 3)
        np.testing.assert_array_equal(
            merged(booster, [one], [1.0]).predict(values), one.predict(values)
        )

    def test_what_is_refused(self, booster):
        """Another number of weights than models, and weights that are no numbers."""
        one, _ = grown(booster, 3)
        with pytest.raises(UsageError, match="1 models need as many weights, got 2"):
            merged(booster, [one], [1.0, 2.0])
        with pytest.raises(UsageError, match="weights must be finite numbers"):
            merged(booster, [one], [np.nan])


def test_linear_leaves_are_refused():
    """A leaf that is a line has more than one value to multiply."""
    one, _ = grown("lightgbm", 3, linear_tree=True)
    with pytest.raises(UsageError, match="trees with linear leaves cannot be added up"):
        merged("lightgbm", [one, one], [1.0, 2.0])
