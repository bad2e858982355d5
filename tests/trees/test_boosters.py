"""The boosters behind their protocol, and what happens where one is not installed."""

from __future__ import annotations

import operator
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from unskew.errors import MissingDependencyError, StoreError, UsageError
from unskew.log.features import Features
from unskew.trees import lightgbm_bins
from unskew.trees.boosters import TreeSettings, kept_bins, library, same_rows_binned_once

SETTINGS = TreeSettings(
    learning_rate=0.1, num_leaves=4, feature_fraction=1.0, bagging_fraction=1.0,
    min_data_in_leaf=5, min_data_in_bin=1, min_sum_hessian_in_leaf=1e-3, seed=0, n_jobs=1,
    extra={},
)  # fmt: skip


def grown(name, rounds=3, names=("a", "b,c[0]"), settings=SETTINGS, continued=None):
    """A booster that fits the first feature for some rounds, and its features."""
    values = np.random.default_rng(0).normal(size=(100, 2))
    grower = library(name).start(Features(values, names), settings, continued)
    for _ in range(rounds):
        assert grower.grow(grower.score - values[:, 0], np.ones(100))
    return grower, values


def reread(name, trees):
    """The same trees as if they came from a file."""
    with tempfile.TemporaryDirectory() as folder:
        trees.write(Path(folder) / library(name).file_name)
        return library(name).read(Path(folder) / library(name).file_name)


@pytest.mark.parametrize("name", ["lightgbm", "xgboost"])
def test_both_libraries_keep_the_protocol(name, tmp_path):
    """Scores, single trees, cut models, files: they agree with each other in both libraries."""
    grower, values = grown(name)
    trees = grower.finish(3)
    np.testing.assert_allclose(trees.predict(values), grower.score, atol=1e-6)
    np.testing.assert_allclose(grower.held_out_score(values), grower.score, atol=1e-6)
    np.testing.assert_array_equal(grower.finish(2).predict(values), trees.predict(values, last=2))
    assert grower.finish(2).n_rounds == 2
    assert (trees.predict(values, first=3) == 0).all()
    assert trees.importances("gain")[0] > trees.importances("gain")[1]
    assert trees.importances("split").sum() == 3 * 3
    trees.write(tmp_path / library(name).file_name)
    again = library(name).read(tmp_path / library(name).file_name)
    np.testing.assert_array_equal(again.predict(values), trees.predict(values))


@pytest.mark.parametrize("continued", [False, True])
def test_columns_and_rows_grow_the_same_trees(continued, monkeypatch):
    """LightGBM gets columns of few rows and the rows of many: with gaps and categories, bit for bit."""
    rng = np.random.default_rng(3)
    values = rng.normal(size=(500, 4))
    values[:, 1] = rng.integers(0, 5, size=500)
    values[rng.random((500, 4)) < 0.1] = np.nan
    features = Features(values, ("a", "b", "c", "d"), {"b": tuple("vwxyz")})
    target = np.nan_to_num(values[:, 0]) + 5.0 * (values[:, 1] == 2)

    def trees(before=None):
        grower = library("lightgbm").start(features, SETTINGS, before)
        for _ in range(5):
            assert grower.grow(grower.score - target, np.ones(500))
        return grower.finish(5 if before is None else 10)

    before = trees() if continued else None
    by_columns = trees(before).raw.model_to_string()
    monkeypatch.setattr(lightgbm_bins, "MOST_ROWS_LOOKED_AT", 499)
    assert trees(before).raw.model_to_string() == by_columns
    assert "num_cat=1" in by_columns


class TestSharedBins:
    """Trainings on the same rows may share the bins of LightGBM."""

    values = np.random.default_rng(4).normal(size=(300, 3))

    def text(self, settings=SETTINGS, values=values):
        """Some trees, chosen by what they say of held-out rows as well."""
        grower = library("lightgbm").start(Features(values, ("a", "b", "c")), settings, None)
        held_out = []
        for _ in range(4):
            assert grower.grow(grower.score - values[:, 0] * values[:, 1], np.ones(len(values)))
            held_out.append(grower.held_out_score(self.values[::-1]).tolist())
        trees = grower.finish(4).raw.model_to_string().partition("parameters:")[0]
        return trees, held_out

    @pytest.mark.parametrize(
        "settings",
        [
            SETTINGS,
            replace(SETTINGS, seed=9, feature_fraction=0.5, bagging_fraction=0.5),
            replace(SETTINGS, num_leaves=8, min_data_in_leaf=20, extra={"extra_trees": True}),
            replace(SETTINGS, min_data_in_bin=40),
            replace(SETTINGS, extra={"max_bin": 7}),
        ],
    )
    def test_the_trees_are_the_same(self, settings):
        """Whoever used the rows before, with other settings: the same trees to the last digit."""
        alone = self.text(settings)
        with same_rows_binned_once():
            self.text()
            self.text(replace(SETTINGS, seed=5, num_leaves=3))
            assert self.text(settings) == alone
            assert self.text(settings) == alone
        assert kept_bins() is None

    def test_bins_are_made_once(self):
        """Other seeds and sizes of trees need no other bins; other rows and other bins do."""
        with same_rows_binned_once():
            self.text()
            made = list(kept_bins().values())
            self.text(
                replace(SETTINGS, seed=5, num_leaves=3, learning_rate=0.2, min_data_in_leaf=9)
            )
            assert all(map(operator.is_, kept_bins().values(), made))
            assert len(kept_bins()) == 2
            self.text(values=self.values[1:])
            assert len(kept_bins()) == 4
            self.text(replace(SETTINGS, min_data_in_bin=40))
            assert len(kept_bins()) == 6

    def test_many_rows_are_not_kept(self, monkeypatch):
        """Of many rows some are drawn to find the bins, by the seed; nor do they stay in memory."""
        monkeypatch.setattr(lightgbm_bins, "MOST_ROWS_LOOKED_AT", 299)
        alone = self.text()
        with same_rows_binned_once():
            assert self.text() == alone
            assert not kept_bins()


@pytest.mark.parametrize("name", ["lightgbm", "xgboost"])
def test_a_file_that_is_no_model_is_refused(name, tmp_path):
    """Reading something else is an error of ours that names the file."""
    (tmp_path / "model").write_text("{}")
    with pytest.raises(StoreError, match=r"model is not an? \w+ model"):
        library(name).read(tmp_path / "model")


def test_an_unknown_booster_is_refused():
    """Only the boosters we know can be asked for."""
    with pytest.raises(UsageError, match=r"booster must be one of \['lightgbm', 'xgboost'\]"):
        library("catboost")


@pytest.mark.parametrize(("name", "title"), [("lightgbm", "LightGBM"), ("xgboost", "XGBoost")])
def test_unknown_parameters_are_named(name, title):
    """A parameter that the library does not know is refused by its name, beside one it knows."""
    wrong = replace(SETTINGS, extra={"max_depth": 3, "foo": 1, "bar_baz": "x"})
    with pytest.raises(UsageError, match=rf"^bar_baz, foo: neither a parameter .* of {title}"):
        grown(name, settings=wrong)


@pytest.mark.parametrize(
    ("name", "alias", "main"),
    [
        ("lightgbm", {"shrinkage_rate": 0.4}, {"learning_rate": 0.4}),
        ("lightgbm", {"max_leaf": 3}, {"num_leaves": 3}),
        ("xgboost", {"eta": 0.4}, {"learning_rate": 0.4}),
        ("xgboost", {"lambda": 5.0}, {"reg_lambda": 5.0}),
    ],
)
def test_another_name_of_a_parameter_wins_over_ours(name, alias, main):
    """What the caller gives under an alias counts, not what we would set under the main name."""
    trees = [grown(name, settings=replace(SETTINGS, extra=extra)) for extra in (alias, main, {})]
    (by_alias, values), (by_main, _), (usual, _) = trees
    score = by_alias.finish(3).predict(values)
    np.testing.assert_array_equal(score, by_main.finish(3).predict(values))
    assert (score != usual.finish(3).predict(values)).any()


@pytest.mark.parametrize("name", ["lightgbm", "xgboost"])
def test_without_a_seed_the_library_takes_its_own(name):
    """No seed means the same sample in every run, also where an earlier model had a seed."""
    sampled = replace(SETTINGS, bagging_fraction=0.5, seed=None)

    def scores(settings, continued=None):
        return grown(name, settings=settings, continued=continued)[0].score

    once = scores(sampled)
    np.testing.assert_array_equal(once, scores(sampled))
    assert (scores(replace(sampled, seed=7)) != once).any()
    earlier = grown(name, settings=replace(sampled, seed=7))[0].finish(3)
    np.testing.assert_array_equal(scores(sampled, earlier), scores(sampled, reread(name, earlier)))


def test_a_missing_library_comes_with_the_install_line(monkeypatch):
    """Where XGBoost is not installed, the error says how to install it."""
    monkeypatch.setitem(sys.modules, "xgboost", None)
    monkeypatch.delitem(sys.modules, "unskew.trees.xgboost_trees", raising=False)
    with pytest.raises(MissingDependencyError, match=r"pip install 'unskew\[xgboost\]'"):
        library("xgboost")


@pytest.mark.parametrize("continued", [False, True])
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("name", ["lightgbm", "xgboost"])
def test_held_out_rows_are_scored_as_by_the_finished_trees(name, late, continued):
    """Gaps, huge values and categories that training never saw; every round or from some round on."""
    rng = np.random.default_rng(4)

    def drawn(n, categories):
        values = rng.normal(size=(n, 4)).round(1)
        values[:, 1] = rng.integers(0, categories, size=n)
        values[rng.random((n, 4)) < 0.1] = np.nan
        return values

    values, held_out = drawn(600, 5), drawn(300, 9)
    held_out[:40, 0], held_out[40:80, 2] = 1e30, -1e30
    features = Features(values, ("a", "b", "c", "d"), {"b": tuple("rstuvwxyz")})
    target = np.nan_to_num(values[:, 0]) + 5.0 * (values[:, 1] == 2) + np.isnan(values[:, 2])

    def rounds(grower, n):
        for number in range(1, n + 1):
            assert grower.grow(grower.score - target, np.ones(600))
            if not late or number > 3:
                expected = grower.finish(number + before).predict(held_out)
                # XGBoost adds up in single precision.
                np.testing.assert_allclose(
                    grower.held_out_score(held_out),
                    expected,
                    rtol=0,
                    atol=1e-6 if name == "xgboost" else 0,
                )
        return grower

    before, earlier = 0, None
    if continued:
        earlier = rounds(library(name).start(features, SETTINGS, None), 5).finish(5)
        before = 5
    rounds(library(name).start(features, SETTINGS, earlier), 8)
