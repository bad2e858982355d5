"""Bad sessions left out, features pinned by a list, and index columns that are none."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.csv as csv
import pytest

import unskew
from unskew.errors import DataError, UsageError
from unskew.log.feature_list import feature_list
from unskew.log.inspection import inspect_log
from unskew.log.read import LogOptions
from unskew.store import MANIFEST, manifest_text

GOOD = {
    "session": [1, 1, 2, 2, 3, 3, 4, 4],
    "query": ["a"] * 8,
    "doc": [1, 2, 1, 2, 1, 2, 1, 3],
    "position": [1, 2] * 4,
    "click": [1, 0, 0, 1, 0, 0, 1, 0],
    "price": [1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 3.0],
    "stars": [5.0, 4.0, 5.0, 4.0, 5.0, 4.0, 5.0, 3.0],
}
BAD = {
    **GOOD,
    "position": [1, 2, 1, 1, 1, 2, 1, 2],
    "click": [1, 0, 0, 1, -1, 0, 1, 0],
}


def test_bad_sessions_are_left_out():
    """What is good stays as it was, and the warning says how many of what were left out."""
    with pytest.warns(UserWarning, match=r"left out 2 of 4 sessions \(50.00%\)") as caught:
        data = unskew.read_log(pa.table(BAD), skip_bad_sessions=True)
    text = str(caught[0].message)
    assert "'position' occurs twice in a session (1 sessions)" in text
    assert "'click' is neither 0 or 1 nor a grade" in text
    good = [s in {1, 4} for s in GOOD["session"]]
    expected = unskew.read_log(pa.table(GOOD).filter(pa.array(good)))
    assert data.equals(expected)


def test_bad_sessions_are_refused_otherwise():
    """Without the option the first problem is an error."""
    with pytest.raises(DataError, match=r"occurs twice|neither 0 or 1"):
        unskew.read_log(pa.table(BAD))


def test_sessions_without_features_or_with_infinite_ones():
    """Sessions that show a document without features, or with an infinite one, are left out too."""
    log = {name: GOOD[name] for name in ("session", "query", "doc", "position", "click")}
    features = {"query": ["a", "a"], "doc": [1, 2], "price": [1.0, 2.0]}
    with pytest.warns(UserWarning, match=r"left out 1 of 4 sessions.*no row of features \(1 doc"):
        data = unskew.read_log(pa.table(log), features=pa.table(features), skip_bad_sessions=True)
    assert data.n_sessions == 3
    assert data.n_documents == 2
    infinite = {**GOOD, "price": [1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, float("inf")]}
    with pytest.warns(UserWarning, match=r"left out 1 of 4 sessions.*'price' is infinite"):
        data = unskew.read_log(pa.table(infinite), skip_bad_sessions=True)
    assert data.n_sessions == 3


def test_what_cannot_be_skipped():
    """A log without a good session, or without a click, stays an error."""
    with pytest.raises(DataError, match="zero-based"):
        unskew.read_log(pa.table({**GOOD, "position": [0, 1] * 4}), skip_bad_sessions=True)
    with pytest.raises(DataError, match="not a single click"):
        unskew.read_log(pa.table({**GOOD, "click": [0] * 8}), skip_bad_sessions=True)


def test_skipping_nothing_is_silent():
    """A log without problems is read as it is."""
    assert unskew.read_log(pa.table(GOOD), skip_bad_sessions=True).n_sessions == 4


@pytest.mark.parametrize("given", ["list", "file", "model"])
def test_a_list_of_features(tmp_path, given):
    """A list, a file of names and a model's folder pin which columns are features, and their order."""
    names = ["stars", "price"]
    if given == "file":
        names = tmp_path / "features.txt"
        names.write_text("# what the model may see\nstars\n\n  price\n")
    elif given == "model":
        settings = {
            "n_estimators": 1,
            "verbose": 0,
            "min_data_in_leaf": 1,
            "min_sum_hessian_in_leaf": 1e-9,
        }
        data = unskew.read_log(pa.table(GOOD), feature_names=names)
        unskew.UnbiasedLambdaMART(**settings).fit(data).save(tmp_path / "model")
        names = tmp_path / "model"
    table = pa.table({**GOOD, "new_column": [0.5] * 8})
    assert unskew.read_log(table, feature_names=names).features.names == ("stars", "price")


def test_a_list_of_features_of_a_table():
    """The list pins the columns of a table of features as well."""
    log = {name: GOOD[name] for name in ("session", "query", "doc", "position", "click")}
    features = pa.table(
        {"query": ["a"] * 3, "doc": [1, 2, 3], "price": [1.0, 2, 3], "x": [0.0] * 3}
    )
    data = unskew.read_log(pa.table(log), features=features, feature_names=["price"])
    assert data.features.names == ("price",)


def test_lists_of_features_that_are_wrong(tmp_path):
    """A name that is not there, twice there, no name at all, and no file are told apart."""
    table = pa.table(GOOD)
    with pytest.raises(DataError, match=r"no column 'star'; did you mean 'stars'"):
        unskew.read_log(table, feature_names=["star"])
    with pytest.raises(DataError, match="'price' is given twice"):
        unskew.read_log(table, feature_names=["price", "price"])
    with pytest.raises(DataError, match="not a single feature is named"):
        unskew.read_log(table, feature_names=[])
    with pytest.raises(DataError, match="no such file of feature names"):
        unskew.read_log(table, feature_names=tmp_path / "nowhere.txt")
    with pytest.raises(DataError, match="not a saved model"):
        unskew.read_log(table, feature_names=tmp_path)
    with pytest.raises(UsageError, match="leave feature_names out"):
        unskew.read_log(table, features=["price"], feature_names=["price"])
    with pytest.raises(UsageError, match="has a role in the log"):
        unskew.read_log(table, feature_names=["position"])


@pytest.mark.parametrize("name", ["__index_level_0__", "Unnamed: 0"])
def test_index_columns(tmp_path, name):
    """The index that pandas wrote beside a frame is no feature, and that is told."""
    table = pa.table({**GOOD, name: list(range(8))})
    with pytest.warns(UserWarning, match=f"have no name: '{name}'"):
        assert unskew.read_log(table).features.names == ("price", "stars")
    csv.write_csv(table, tmp_path / "log.csv")
    with pytest.warns(UserWarning, match=f"have no name: '{name}'"):
        assert unskew.read_log(tmp_path / "log.csv").features.names == ("price", "stars")


def test_an_index_without_a_name(tmp_path):
    """The first column of a CSV file that pandas wrote has no name, and is no feature."""
    path = tmp_path / "log.csv"
    pa.table(GOOD).to_pandas().to_csv(path)
    with pytest.warns(UserWarning, match="have no name: 'Unnamed: 0'"):
        assert unskew.read_log(path).features.names == ("price", "stars")


def test_an_index_that_is_asked_for():
    """An index column that a list of features names is one."""
    table = pa.table({**GOOD, "Unnamed: 0": list(range(8))})
    data = unskew.read_log(table, feature_names=["Unnamed: 0"])
    assert data.features.names == ("Unnamed: 0",)


def test_inspection_of_a_log_with_skipped_sessions():
    """What was left out is told by inspect in a note, and no longer as a problem."""
    options = LogOptions(skip_bad_sessions=True)
    found = inspect_log(pa.table(BAD), options)
    assert found.problems == []
    assert found.left_out == 2
    assert any("left out 2 of 4 sessions" in note for note in found.notes)


def test_every_session_has_a_click():
    """A log whose sessions all have a click gets a note; one with others does not."""
    clicked = inspect_log(pa.table({**GOOD, "click": [1, 0] * 4}), LogOptions())
    assert any("every session has a click" in note for note in clicked.notes)
    assert inspect_log(pa.table(GOOD), LogOptions()).notes == []


def test_clicks_by_context():
    """Every context has its sessions and CTRs, the largest first."""
    table = pa.table({**GOOD, "context": ["web"] * 6 + ["app"] * 2})
    found = inspect_log(table, LogOptions()).by_context
    assert [(c.context, c.sessions, c.rows, c.clicks) for c in found] == [
        ("web", 3, 6, 2),
        ("app", 1, 2, 1),
    ]
    assert found[0].ctr == pytest.approx(1 / 3)
    assert found[0].first_ctr == pytest.approx(1 / 3)


TIMES = {
    "text": [f"2024-03-0{k}T10:00:00" for k in (1, 1, 2, 2, 3, 3, 9, 9)],
    "text with a zone": [f"2024-03-0{k}T10:00:00Z" for k in (1, 1, 2, 2, 3, 3, 9, 9)],
    "seconds": [1709287200 + 86400 * (k - 1) for k in (1, 1, 2, 2, 3, 3, 9, 9)],
    "milliseconds": [1000 * (1709287200 + 86400 * (k - 1)) for k in (1, 1, 2, 2, 3, 3, 9, 9)],
}


@pytest.mark.parametrize("kind", TIMES)
def test_clicks_over_time(kind):
    """Days are counted whatever way a time is written."""
    found = inspect_log(pa.table({**GOOD, "time": TIMES[kind]}), LogOptions()).over_time
    assert [(p.start, p.unit, p.sessions, p.clicks) for p in found] == [
        ("2024-03-01", "day", 1, 1),
        ("2024-03-02", "day", 1, 1),
        ("2024-03-03", "day", 1, 0),
        ("2024-03-09", "day", 1, 1),
    ]


def test_a_time_that_is_none():
    """A time column that cannot be read as one gives no periods, and no error."""
    found = inspect_log(pa.table({**GOOD, "time": ["soon"] * 8}), LogOptions())
    assert found.over_time == []
    assert found.problems == []


def test_a_log_that_changed():
    """A CTR that jumps on a day is told with the day; a steady one is not."""
    n = 600
    for late, told in ((0.5, True), (0.2, False)):
        sessions = [
            {"session": k, "query": "a", "doc": 1, "position": 1,
             "click": int(k % 10 < 10 * (0.2 if k < 300 else late)),
             "time": f"2024-03-{1 + k // 30:02d}"}
            for k in range(n)
        ]  # fmt: skip
        found = inspect_log(pa.Table.from_pylist(sessions), LogOptions())
        assert any("20.00% before 2024-03-11 and 50.00%" in note for note in found.notes) == told
        assert len(found.over_time) == 20


def test_a_day_without_sessions():
    """Days with hardly any sessions in the middle of a log are told."""
    days = [d for d in range(1, 21) for _ in range(1 if d == 7 else 40)]
    sessions = [
        {
            "session": k,
            "query": "a",
            "doc": 1,
            "position": 1,
            "click": k % 2,
            "time": f"2024-03-{d:02d}",
        }
        for k, d in enumerate(days)
    ]
    found = inspect_log(pa.Table.from_pylist(sessions), LogOptions())
    assert any(
        "1 days with less than a tenth of the usual sessions: 2024-03-07" in n for n in found.notes
    )


def test_the_features_of_a_damaged_model_are_not_taken(tmp_path):
    """A manifest that was changed after it was saved names no features."""
    (tmp_path / MANIFEST).write_text(
        manifest_text({"kind": "x", "version": 1, "files": {}, "feature_names": ["a", "b"]})
    )
    assert feature_list(tmp_path) == ["a", "b"]
    text = (tmp_path / MANIFEST).read_text()
    (tmp_path / MANIFEST).write_text(text.replace('"b"', '"c"'))
    with pytest.raises(DataError, match="was changed after it was saved"):
        feature_list(tmp_path)


def test_columns_in_one_list_are_told_apart():
    """Whoever lists columns with commas is told how to name them, not which names are similar."""
    with pytest.raises(DataError, match=r"no column 'price, stars'; it lists several.*on its own"):
        unskew.read_log(GOOD, ignore=["price, stars"])
    data = unskew.read_log(GOOD, ignore=["price", "stars"])
    assert not data.features.n_features
