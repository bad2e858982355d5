"""Scorer: the scores of predict, from whatever a service has at hand."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from exported_models import NAMES, borderline_rows, trained, training_rows

import unskew
from unskew.errors import DataError, StoreError, UsageError
from unskew.export.scorer import Scorer
from unskew.rankers.lambdamart.ranker import UnbiasedLambdaMART
from unskew.store import manifest_text


@pytest.fixture(scope="module")
def scorer():
    """A scorer of LightGBM's trees."""
    return Scorer(trained("lightgbm"))


def frame(rows):
    """Rows as a pandas frame."""
    return pd.DataFrame(rows, columns=NAMES)


def records(rows):
    """Rows as dictionaries, None for missing."""
    return [
        {n: None if np.isnan(x) else float(x) for n, x in zip(NAMES, row, strict=True)}
        for row in rows
    ]


def chunked(rows):
    """Rows as an Arrow table in two chunks."""
    table = pa.table(frame(rows))
    return pa.concat_tables([table.slice(0, 3), table.slice(3)])


KINDS = {
    "numpy": lambda rows: rows,
    "float32": lambda rows: rows.astype(np.float32),
    "fortran order": np.asfortranarray,
    "lists": lambda rows: rows.tolist(),
    "dictionaries": records,
    "pandas": frame,
    "pandas, other order": lambda rows: frame(rows)[list(reversed(NAMES))],
    "pandas, more columns": lambda rows: frame(rows).assign(position=1, doc="d"),
    "pandas, nullable": lambda rows: frame(rows).convert_dtypes(),
    "polars": lambda rows: pl.DataFrame(frame(rows)),
    "polars, other order": lambda rows: pl.DataFrame(frame(rows)).select(list(reversed(NAMES))),
    "polars, nulls": lambda rows: pl.DataFrame(records(rows)),
    "arrow": lambda rows: pa.table(frame(rows)),
    "arrow, chunks": chunked,
    "arrow, batch": lambda rows: pa.RecordBatch.from_pandas(frame(rows)),
    "arrow, nulls": lambda rows: pa.Table.from_pylist(records(rows)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_candidates(scorer, kind):
    """Whatever holds the candidates, the scores are those of predict on the matrix, bit for bit."""
    rows = np.ascontiguousarray(borderline_rows("lightgbm", 50))
    expected = trained("lightgbm").predict(frame(rows))
    np.testing.assert_array_equal(scorer.score(KINDS[kind](rows)), expected)
    np.testing.assert_array_equal(scorer.score(KINDS[kind](rows)), expected)  # and once more


def test_tables_of_one_schema_and_of_another(scorer):
    """A schema that was seen is not taken for another: order, types, absent columns, no rows."""
    rows = np.ascontiguousarray(borderline_rows("lightgbm", 8))
    expected = trained("lightgbm")._predict(rows)
    table = pa.table(frame(rows))
    for _ in range(2):
        np.testing.assert_array_equal(scorer.score(table), expected)
        np.testing.assert_array_equal(scorer.score(table.select(NAMES[::-1])), expected)
        np.testing.assert_array_equal(scorer.score(table.to_batches()[0]), expected)
        assert scorer.score(table.slice(0, 0)).shape == (0,)
        with pytest.raises(DataError, match="the table lacks the feature"):
            scorer.score(table.drop_columns(NAMES[0]))
        texts = table.set_column(0, NAMES[0], pa.array(["x"] * len(rows)))
        with pytest.raises(DataError, match=f"feature '{NAMES[0]}' must hold numbers"):
            scorer.score(texts)


def test_scores_are_those_of_predict(booster):
    """Both boosters' scores come out bit for bit, also for many rows and for one."""
    found, ranker = Scorer(trained(booster)), trained(booster)
    rows = borderline_rows(booster)
    np.testing.assert_array_equal(found.score(rows), ranker._predict(rows))
    np.testing.assert_array_equal(found.score(rows[:1]), ranker._predict(rows[:1]))
    assert found.score(rows[:0]).shape == (0,)


def test_rank_is_stable(scorer):
    """The best candidate comes first, equal ones in the order given."""
    rows = np.repeat(borderline_rows("lightgbm", 5), 2, axis=0)
    order = scorer.rank(rows)
    score = scorer.score(rows)[order]
    assert (np.diff(score) <= 0).all()
    assert all(
        a < b for a, b, tie in zip(order, order[1:], np.diff(score) == 0, strict=False) if tie
    )


def test_a_saved_model(tmp_path):
    """The folder of a model serves as well as the model."""
    trained("lightgbm").save(tmp_path / "model")
    rows = borderline_rows("lightgbm", 20)
    expected = trained("lightgbm")._predict(rows)
    np.testing.assert_array_equal(unskew.Scorer(tmp_path / "model").score(rows), expected)


def test_many_threads(scorer):
    """Calls from many threads at once give the scores of calls one by one."""
    queries = [borderline_rows("lightgbm", 40 + k).copy() for k in range(40)]
    frames = [frame(rows)[list(np.roll(NAMES, k))] for k, rows in enumerate(queries)]
    expected = [trained("lightgbm")._predict(rows) for rows in queries]
    with ThreadPoolExecutor(8) as pool:
        for given in (queries, frames):
            for found, wanted in zip(pool.map(scorer.score, given), expected, strict=True):
                np.testing.assert_array_equal(found, wanted)


@pytest.fixture(scope="module", params=["lightgbm", "xgboost"])
def colored(request):
    """A ranker with a categorical feature, and its training frame."""
    X, grade, query = training_rows(400)
    color = np.array(["red", "green", "blue", "black"])[np.arange(len(X)) % 4]
    table = frame(X)[["gaps", "plain"]].assign(color=pd.Categorical(color))
    ranker = UnbiasedLambdaMART(
        n_estimators=10, verbose=0, random_state=0, booster=request.param, n_jobs=1
    )
    return ranker.fit_labels(table, grade + 2 * (color == "blue"), query=query), table


def test_categories_as_in_training(colored):
    """Texts become the codes of training, whatever codes the candidates' own frame has."""
    ranker, table = colored
    part = table.iloc[:30].assign(color=pd.Categorical(table["color"][:30].astype(str)))
    expected, found = ranker.predict(table.iloc[:30]), Scorer(ranker)
    texts = part.astype({"color": str})
    for given in (part, texts, pl.DataFrame(texts), pa.table(texts), texts.to_dict("records")):
        np.testing.assert_array_equal(found.score(given), expected)


def test_an_unknown_category_is_missing(colored):
    """A category that training has not seen is scored as a missing one."""
    ranker, table = colored
    found = Scorer(ranker)
    rows = table.iloc[:10].astype({"color": str}).to_dict("records")
    unknown = [{**row, "color": "mauve"} for row in rows]
    missing = [{**row, "color": None} for row in rows]
    np.testing.assert_array_equal(found.score(unknown), found.score(missing))


def test_models_of_other_kinds():
    """A linear ranker, and trees that only LightGBM reads, are scored by their own predict."""
    X, grade, query = training_rows(300)
    linear = unskew.PropensityRankSVM(verbose=0).fit_labels(X, grade, query=query)
    np.testing.assert_array_equal(Scorer(linear).score(X[:20]), linear.predict(X[:20]))
    zero = trained("lightgbm", zero_as_missing=True)
    np.testing.assert_array_equal(Scorer(zero).score(X[:20]), zero.predict(X[:20]))


# What is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", [pd.DataFrame, pl.DataFrame, pa.table, lambda frame: frame.to_dict("records")]
)
def test_a_feature_that_is_absent(scorer, kind):
    """A candidate without a feature is an error that names it and the nearest names."""
    renamed = frame(training_rows(5)[0]).rename(columns={"price": "prise"})
    with pytest.raises(DataError, match=r"lacks the feature\(s\) 'price'.*did you mean 'prise'"):
        scorer.score(kind(renamed))


def test_absent_features_as_missing():
    """Where it is asked for, a feature that is not there is a missing value."""
    rows = training_rows(6)[0]
    found = Scorer(trained("lightgbm"), absent="missing")
    without = rows.copy()
    without[:, NAMES.index("price")] = np.nan
    expected = found.score(without)
    fewer = frame(rows).drop(columns="price")
    rows_of = [{k: v for k, v in row.items() if k != "price"} for row in records(rows)]
    for given in (fewer, pl.DataFrame(fewer), pa.table(fewer), rows_of):
        np.testing.assert_array_equal(found.score(given), expected)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.zeros((3, 2)), r"matrix with the 9 features of the model.* got shape \(3, 2\)"),
        (np.zeros(8), r"matrix with the 9 features of the model.* got shape \(8,\)"),
        ([dict.fromkeys(NAMES, "cheap")], "feature 'gaps' must hold numbers"),
        (np.full((2, 9), np.inf), "candidate 1: feature 'gaps' is infinite"),
    ],
)
def test_what_cannot_be_scored(scorer, given, message):
    """Candidates of another width, with text, or infinite are refused by name."""
    with pytest.raises(DataError, match=message):
        scorer.score(given)


def test_a_single_dictionary(scorer):
    """One dictionary instead of a list of them is refused with the remedy."""
    with pytest.raises(UsageError, match="give a list of dictionaries"):
        scorer.score(dict.fromkeys(NAMES, 0.0))


def test_too_large_for_xgboost():
    """A value that XGBoost cannot hold is refused, as XGBoost does itself."""
    rows = np.zeros((2, len(NAMES)))
    rows[1, 2] = 1e300
    with pytest.raises(DataError, match=r"candidate 2: feature 'plain' is 1e\+300, too large"):
        Scorer(trained("xgboost")).score(rows)


def test_what_is_no_model(tmp_path):
    """Other objects, other folders, and a wrong option are refused."""
    with pytest.raises(UsageError, match="needs a ranker or the folder of one, got dict"):
        Scorer({})
    with pytest.raises(StoreError, match="not there"):
        Scorer(tmp_path / "nothing")
    with pytest.raises(UsageError, match="absent must be 'error' or 'missing', got 'nan'"):
        Scorer(trained("lightgbm"), absent="nan")


def test_a_model_of_a_newer_version(tmp_path):
    """A model folder that a newer Unskew wrote is refused with the way to upgrade."""
    trained("lightgbm").save(tmp_path / "model")
    manifest = tmp_path / "model" / "unskew.json"
    manifest.write_text(manifest_text({**json.loads(manifest.read_text()), "version": 99}))
    with pytest.raises(StoreError, match=r"newer Unskew.*upgrade"):
        Scorer(tmp_path / "model")
