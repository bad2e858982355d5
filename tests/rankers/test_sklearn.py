"""The estimator among scikit-learn's tools, and by scikit-learn's own checks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from unskew.errors import DataError, UsageError
from unskew.evaluation.counterfactual import evaluate_clicks
from unskew.log.impressions import Impressions
from unskew.rankers.click_model.ranker import ClickModelRanker
from unskew.rankers.lambdamart.ranker import UnbiasedLambdaMART

QUICK = {"n_estimators": 8, "verbose": 0, "n_jobs": 1, "random_state": 0, "min_data_in_leaf": 3}


@pytest.fixture(scope="module")
def rows():
    """A log as columns: 40 queries, 5 sessions each, 6 results a page."""
    rng = np.random.default_rng(0)
    n_queries, n_sessions, n = 40, 5, 6
    features = rng.normal(size=(n_queries, n, 3))
    query = np.repeat(np.arange(n_queries), n_sessions * n)
    session = np.repeat(np.arange(n_queries * n_sessions), n)
    position = np.tile(np.arange(1, n + 1), n_queries * n_sessions)
    X = np.repeat(features, n_sessions, axis=0).reshape(-1, 3)
    chance = 1 / (1 + np.exp(-2 * X[:, 0])) / position
    click = (rng.random(len(X)) < chance).astype(int)
    beside = {"session": session, "query": query, "position": position}
    return X, click, {**beside, "doc": query * 100 + position}


def frames(X, columns):
    """The same rows as every kind of data frame, each with its columns of that kind."""
    names = [f"feature {k}" for k in range(X.shape[1])]
    pandas = pd.DataFrame(X, columns=names)
    yield pandas, {name: pd.Series(values) for name, values in columns.items()}
    yield pl.DataFrame(X, schema=names), {n: pl.Series(values) for n, values in columns.items()}
    yield pa.Table.from_pandas(pandas), {n: pa.array(values) for n, values in columns.items()}
    yield X, {name: values.tolist() for name, values in columns.items()}


def test_every_kind_of_table_gives_the_same_model(rows):
    """NumPy, pandas, Polars and Arrow train and score alike."""
    X, click, beside = rows
    expected = UnbiasedLambdaMART(**QUICK).fit(X, click, **beside).predict(X)
    assert len(np.unique(expected)) > 5
    for frame, columns in frames(X, {"click": click, **beside}):
        ranker = UnbiasedLambdaMART(**QUICK).fit(frame, **columns)
        np.testing.assert_array_equal(ranker.predict(frame), expected)


def test_row_order_does_not_matter(rows):
    """Shuffled rows are the same log and give the same model."""
    X, click, beside = rows
    order = np.random.default_rng(1).permutation(len(X))
    expected = UnbiasedLambdaMART(**QUICK).fit(X, click, **beside).predict(X)
    shuffled = {name: values[order] for name, values in beside.items()}
    ranker = UnbiasedLambdaMART(**QUICK).fit(X[order], click[order], **shuffled)
    np.testing.assert_array_equal(ranker.predict(X), expected)


def test_categories_keep_their_meaning(rows):
    """A text category is scored by its text; one never seen counts as missing."""
    X, click, beside = rows
    kind = pd.Categorical(np.where(X[:, 1] > 0, "news", "blog"))
    frame = pd.DataFrame({"bm25": X[:, 0], "kind": kind})
    ranker = UnbiasedLambdaMART(**QUICK, min_data_per_group=1, cat_smooth=1.0)
    ranker.fit(frame, click, **beside)
    recoded = frame.assign(kind=frame["kind"].cat.set_categories(["video", "news", "blog"]))
    np.testing.assert_array_equal(ranker.predict(recoded), ranker.predict(frame))
    new = frame.assign(kind=pd.Categorical(["video"] * 7 + ["news"] * (len(frame) - 7)))
    missing = frame.assign(kind=pd.Categorical([None] * 7 + ["news"] * (len(frame) - 7)))
    with pytest.warns(UserWarning, match=r"'kind': 7 of 1,200 rows .*never seen \('video'\)"):
        np.testing.assert_array_equal(ranker.predict(new), ranker.predict(missing))


@pytest.mark.parametrize("name", ["session", "query", "position"])
def test_missing_columns_are_named(rows, name):
    """Clicks without sessions, queries or positions are an error that names what is missing."""
    X, click, beside = rows
    with pytest.raises(UsageError, match=f"{name} is needed"):
        UnbiasedLambdaMART(**QUICK).fit(X, click, **{**beside, name: None})
    with pytest.raises(UsageError, match=f"{name} must have one value for each of the 1200 rows"):
        UnbiasedLambdaMART(**QUICK).fit(X, click, **{**beside, name: [1, 2]})


def test_bad_matrices_are_refused(rows):
    """Text, infinity and sparse matrices are errors that say where or why."""
    X, click, beside = rows
    infinite = X.copy()
    infinite[4, 1] = np.inf
    with pytest.raises(DataError, match="row 5: feature 'f1' is infinite"):
        UnbiasedLambdaMART(**QUICK).fit(infinite, click, **beside)
    with pytest.raises(DataError, match="X must hold numbers"):
        UnbiasedLambdaMART(**QUICK).fit(np.full(X.shape, "a"), click, **beside)


def test_a_pipeline_scales_before_ranking(rows):
    """In a pipeline the columns beside X go to the ranker by its name."""
    X, click, beside = rows
    pipeline = make_pipeline(StandardScaler(), UnbiasedLambdaMART(**QUICK))
    pipeline.fit(X, click, **{f"unbiasedlambdamart__{k}": v for k, v in beside.items()})
    assert pipeline.predict(X).shape == (len(X),)


def held_out_dcg(bias, beside):
    """The scorer of the documentation: doubly robust DCG of the held-out sessions, by one bias."""

    def score(ranker, X, click):
        columns = {name: values[X.index] for name, values in beside.items()}
        clicks = Impressions.from_arrays(X, click, **columns)
        found = evaluate_clicks(
            clicks, ranker.predict(clicks.features), bias, metrics=["dcg@5"], estimator="dr"
        )
        return found["dcg@5"].value

    return score


def test_grid_search_judges_query_by_query(rows):
    """The documented search gives each candidate the estimate of its held-out queries by hand."""
    X, click, beside = rows
    frame, bias = pd.DataFrame(X).rename(columns=str), 1 / np.arange(1, 11)
    search = GridSearchCV(
        UnbiasedLambdaMART(**QUICK), {"p": [0.0, 1.0], "max_depth": [2, 5]},
        cv=GroupKFold(2), error_score="raise", scoring=held_out_dcg(bias, beside),
    )  # fmt: skip
    search.fit(frame, click, groups=beside["query"], **beside)
    assert search.best_estimator_.predict(frame).shape == (len(X),)
    train, test = next(GroupKFold(2).split(X, click, beside["query"]))
    assert not set(beside["query"][train]) & set(beside["query"][test])
    parts = [{name: values[rows] for name, values in beside.items()} for rows in (train, test)]
    ranker = UnbiasedLambdaMART(**QUICK, **search.cv_results_["params"][0])
    ranker.fit(X[train], click[train], **parts[0])
    held_out = Impressions.from_arrays(X[test], click[test], **parts[1])
    score = ranker.predict(held_out.features)
    expected = evaluate_clicks(held_out, score, bias, metrics=["dcg@5"], estimator="dr")["dcg@5"]
    assert search.cv_results_["split0_test_score"][0] == pytest.approx(expected.value)


def test_grid_search_finds_the_debiased_ranker():
    """By the documented scorer debiasing wins; by raw clicks the ranker that repeats them does."""
    rng = np.random.default_rng(4)
    n_queries, n_sessions, n_results = 80, 6, 8
    bias = 1 / np.arange(1, n_results + 1) ** 1.5
    relevance = rng.normal(size=(n_queries, n_results))
    live = np.argsort(-rng.normal(size=relevance.shape), axis=1)
    place = np.argsort(live, axis=1)
    features = np.stack((relevance + 0.5 * rng.normal(size=place.shape), -place), axis=2)
    shown = np.tile(np.take_along_axis(features, live[..., None], 1), (1, n_sessions, 1))
    X = shown.reshape(-1, 2)
    query = np.repeat(np.arange(n_queries), n_sessions * n_results)
    position = np.tile(np.arange(1, n_results + 1), n_queries * n_sessions)
    attraction = np.tile(np.take_along_axis(relevance, live, 1), (1, n_sessions)).ravel()
    click = rng.random(len(X)) < bias[position - 1] / (1 + np.exp(-2 * attraction))
    beside = {
        "session": np.repeat(np.arange(n_queries * n_sessions), n_results),
        "query": query, "position": position,
    }  # fmt: skip
    grid = {"debias": [None, bias]}
    quick = {"n_estimators": 12, "num_leaves": 5, "random_state": 0, "n_jobs": 1, "verbose": 0}
    frame, chosen = pd.DataFrame(X).rename(columns=str), []
    for judging in (bias, [1.0]):
        search = GridSearchCV(
            UnbiasedLambdaMART(**quick), grid, cv=GroupKFold(2), refit=False,
            scoring=held_out_dcg(judging, beside), error_score="raise",
        )  # fmt: skip
        search.fit(frame, click.astype(int), groups=query, **beside)
        chosen.append(
            search.cv_results_["params"][int(np.argmin(search.cv_results_["rank_test_score"]))]
        )
    assert chosen[0]["debias"] is not None
    assert chosen[1]["debias"] is None


class OneList:
    """For scikit-learn's checks, which know X and y only: all rows are one page."""

    def fit(self, X, y=None):
        """Every row is a result; the better half by y is clicked; one page holds them all."""
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        y = np.asarray(y).ravel()
        if y.dtype.kind == "f" and not np.isfinite(y).all():
            raise ValueError("Input y contains NaN or infinity")
        if not len(y):
            return super().fit(X, y)
        code = np.unique(y, return_inverse=True)[1]
        click = (code > np.median(code)) | (code == code.max())
        if click.all():
            click[0] = False
        same = np.zeros(len(y), dtype=int)
        return super().fit(
            X, click.astype(int), session=same, query=same, position=np.arange(1, len(y) + 1),
            doc=np.arange(len(y)),
        )  # fmt: skip

    def score(self, X, y=None):
        """NDCG of y as one list."""
        return super().score(X, np.clip(y, 0, 4))


class ClickModelAsOneList(OneList, ClickModelRanker):
    """The click model ranker without an examination to learn, which one session does not show."""

    def __init__(
        self,
        *,
        click_model="pbm",
        debias=None,
        n_estimators=3,
        min_data_in_leaf=1,
        min_sum_hessian_in_leaf=1e-3,
        early_stopping_rounds=None,
        random_state=0,
        n_jobs=1,
        verbose=0,
    ):
        super().__init__(
            click_model=click_model, debias=debias, n_estimators=n_estimators,
            min_data_in_leaf=min_data_in_leaf, min_sum_hessian_in_leaf=min_sum_hessian_in_leaf,
            early_stopping_rounds=early_stopping_rounds, random_state=random_state, n_jobs=n_jobs,
            verbose=verbose,
        )  # fmt: skip

    def _check(self):
        """Only the settings above: the others have their defaults."""


class AsOneList(OneList, UnbiasedLambdaMART):
    """LambdaMART on one page."""

    def __init__(
        self,
        *,
        p=0.5,
        sigma=2.0,
        debias=None,
        n_estimators=3,
        learning_rate=0.05,
        num_leaves=31,
        feature_fraction=0.9,
        bagging_fraction=0.9,
        min_data_in_leaf=1,
        min_sum_hessian_in_leaf=1e-3,
        n_positions=None,
        booster="lightgbm",
        early_stopping_rounds=None,
        ndcg_at=10,
        random_state=0,
        n_jobs=1,
        verbose=0,
    ):
        super().__init__(
            p=p, sigma=sigma, debias=debias, n_estimators=n_estimators,
            learning_rate=learning_rate, num_leaves=num_leaves, feature_fraction=feature_fraction,
            bagging_fraction=bagging_fraction, min_data_in_leaf=min_data_in_leaf,
            min_sum_hessian_in_leaf=min_sum_hessian_in_leaf, n_positions=n_positions,
            booster=booster, early_stopping_rounds=early_stopping_rounds, ndcg_at=ndcg_at,
            random_state=random_state, n_jobs=n_jobs, verbose=verbose,
        )  # fmt: skip


@parametrize_with_checks([AsOneList(), ClickModelAsOneList()])
def test_scikit_learn_checks(estimator, check):
    """Given sessions, the estimator keeps all of scikit-learn's conventions."""
    check(estimator)


# Checks that call fit(X, y) and go on with the fitted model. A ranker cannot be fitted on that: it
# raises an error that names the missing column. The class above runs the same checks with sessions.
NEEDS_SESSIONS = "fit needs session, query and position beside X and the clicks"
EXPECTED = dict.fromkeys(
    (
        "check_estimators_overwrite_params",
        "check_dont_overwrite_parameters",
        "check_estimators_fit_returns_self",
        "check_readonly_memmap_input",
        "check_n_features_in_after_fitting",
        "check_positive_only_tag_during_fit",
        "check_estimators_dtypes",
        "check_dtype_object",
        "check_pipeline_consistency",
        "check_estimators_pickle",
        "check_f_contiguous_array_estimator",
        "check_methods_sample_order_invariance",
        "check_methods_subset_invariance",
        "check_fit2d_1sample",
        "check_fit2d_1feature",
        "check_dict_unchanged",
        "check_fit_idempotent",
        "check_fit_check_is_fitted",
        "check_n_features_in",
        "check_fit2d_predict1d",
    ),
    NEEDS_SESSIONS,
) | {
    "check_fit_score_takes_y": "the second argument says what it is: click or relevance, not y",
    "check_requires_y_none": "the error names the missing column click, not y",
}


@parametrize_with_checks(
    [UnbiasedLambdaMART(), ClickModelRanker()], expected_failed_checks=lambda _: EXPECTED
)
def test_scikit_learn_checks_without_sessions(estimator, check):
    """The estimator as it is passes every check that can do without a fit on X and y alone."""
    check(estimator)
