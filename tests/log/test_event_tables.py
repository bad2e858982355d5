"""Impressions and events in two tables, events that become grades, and gains of grades."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

import unskew
from kinds import FRAMES, IDS, ids
from unskew.errors import DataError, UsageError
from unskew.pairs.reference import reference_pairs
from unskew.pairs.statistic import pair_statistics

# Three requests of three results; the clicks come in any order, some twice.
SHOWN = {
    "session": [1, 1, 1, 2, 2, 2, 3, 3, 3],
    "query": [1, 1, 1, 1, 1, 1, 2, 2, 2],
    "doc": [1, 2, 3, 2, 1, 3, 7, 8, 9],
    "position": [1, 2, 3] * 3,
    "price": [1.0, 2.0, 3.0, 2.0, 1.0, 3.0, 7.0, 8.0, 9.0],
}
CLICKED = {
    "session": [3, 1, 1, 2],
    "doc": [8, 2, 2, 1],
    "event": ["cart", "click", "click", "click"],
}
GRADES = {"click": 1, "cart": 2}


def seen(data):
    """The sessions of a log, each by its page and clicks."""
    return sorted((s.doc, s.clicked, s.grade) for s in data.sessions())


EXPECTED = [((1, 2, 3), (2,), (1,)), ((2, 1, 3), (2,), (1,)), ((7, 8, 9), (2,), (2,))]


@pytest.mark.parametrize("frame", FRAMES)
def test_joined_by_request_and_document(frame):
    """Every impression gets the highest grade of the events on it."""
    shown, clicked = FRAMES[frame](pa.table(SHOWN)), FRAMES[frame](pa.table(CLICKED))
    data = unskew.read_log(shown, events=clicked, grades=GRADES)
    assert seen(data) == EXPECTED
    assert data.features.names == ("price",)


@pytest.mark.parametrize("kind", IDS)
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_kinds_of_ids(tmp_path, kind, ending):
    """Ids of every kind join, whatever file they come from."""
    write = {"parquet": pq.write_table, "csv": csv.write_csv}[ending]
    paths = []
    for name, table in (("shown", SHOWN), ("clicked", CLICKED)):
        columns = {
            c: ids(kind, v) if c in {"session", "doc", "query"} else v for c, v in table.items()
        }
        paths.append(tmp_path / f"{name}.{ending}")
        write(pa.table(columns), paths[-1])
    data = unskew.read_log(paths[0], events=paths[1], grades=GRADES)
    assert [(s[1], s[2]) for s in seen(data)] == [(s[1], s[2]) for s in EXPECTED]


def test_joined_by_position():
    """Events without a document are joined by position, and without a type they are clicks."""
    clicked = pa.table({"session": [1, 2, 3], "position": [2, 2, 2]})
    data = unskew.read_log(pa.table(SHOWN), events=clicked)
    assert [s[1:] for s in seen(data)] == [((2,), (1,))] * 3


def test_events_that_are_grades():
    """A column of numbers in the events is the grade itself."""
    clicked = pa.table({"session": [1, 2, 3], "doc": [2, 1, 8], "click": [1, 1, 2]})
    assert seen(unskew.read_log(pa.table(SHOWN), events=clicked)) == EXPECTED


def test_a_few_clicks_that_match_nothing():
    """Clicks on what was not shown are left out with a note; most of them are an error."""
    clicked = pa.table({"session": [1, 2, 3, 3], "doc": [2, 1, 8, 99]})
    with pytest.warns(UserWarning, match="1 of 4 clicked results were not shown"):
        data = unskew.read_log(pa.table(SHOWN), events=clicked)
    assert data.n_clicks == 3
    strange = pa.table({"session": [10, 11, 12], "doc": [2, 1, 8]})
    with pytest.raises(DataError, match=r"3 of 3 clicked results were not shown.*write sessions"):
        unskew.read_log(pa.table(SHOWN), events=strange)


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ({"request": [1], "doc": [1]}, "there is no column 'session'"),
        ({"session": [1], "item": [1]}, "there is no column 'doc'"),
        (CLICKED, r"what these events are worth: 'cart' \(1\)"),
    ],
)
def test_events_that_do_not_fit(events, message):
    """Events without their keys, or of types that nobody mapped, are refused by name."""
    with pytest.raises(DataError, match=message):
        unskew.read_log(pa.table(SHOWN), events=pa.table(events))


def test_two_click_columns():
    """Impressions that have clicks already are not joined with others."""
    shown = pa.table({**SHOWN, "click": [0] * 9})
    with pytest.raises(DataError, match="there is a column 'click' already"):
        unskew.read_log(shown, events=pa.table(CLICKED), grades=GRADES)


def test_row_numbers_are_those_of_the_impressions():
    """A problem of the joined log names the row of the table of impressions."""
    shown = {**SHOWN, "position": [1, 2, 3, 1, 2, 2, 1, 2, 3]}
    with pytest.raises(DataError, match=r"row 6 .*occurs twice in a session"):
        unskew.read_log(pa.table(shown), events=pa.table(CLICKED), grades=GRADES)


def test_types_in_the_click_column():
    """A click column of text holds types of events, and null is none."""
    log = pa.table(
        {**SHOWN, "click": [None, "click", None, None, "click", "hover", None, "cart", None]}
    )
    data = unskew.read_log(log, grades={**GRADES, "hover": None})
    assert seen(data) == EXPECTED
    with pytest.raises(DataError, match=r"'hover' \(1\).*--grade hover=ignore"):
        unskew.read_log(log, grades=GRADES)


def test_columns_of_events():
    """Columns of 0 and 1 are graded by name, and are no features."""
    log = pa.table(
        {
            **SHOWN,
            "clicked": [0, 1, 0, 0, 1, 0, 0, 1, 0],
            "carted": [0.0, None, 0, 0, 0, 0, 0, 1, 0],
        }
    )
    data = unskew.read_log(log, grades={"clicked": 1, "carted": 2})
    assert seen(data) == EXPECTED
    assert data.features.names == ("price",)


@pytest.mark.parametrize("grades", [{}, {"click": 1.5}, {"click": 32}, {"click": "high"}, [1, 2]])
def test_grades_that_make_no_sense(grades):
    """Grades are whole numbers from 0 to 31, or None."""
    with pytest.raises(UsageError, match="grades"):
        unskew.read_log(pa.table(SHOWN), events=pa.table(CLICKED), grades=grades)


@pytest.mark.parametrize("wrong", [0.6, 1e-45, -1.0, 32.0, float("nan")])
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_grades_of_events_are_whole(tmp_path, ending, wrong):
    """A grade that is no whole number in its range is an error with its row, and is not rounded."""
    file = tmp_path / f"clicked.{ending}"
    clicked = pa.table({"session": [3, 1], "doc": [8, 2], "click": [1.0, wrong]})
    {"parquet": pq.write_table, "csv": csv.write_csv}[ending](clicked, file)
    with pytest.raises(DataError, match=rf"clicked\.{ending}, row 2: column 'click' holds .*whole"):
        unskew.read_log(pa.table(SHOWN), events=file)


def test_grades_of_nothing():
    """Grades that name neither columns nor types of a click column are refused."""
    with pytest.raises(DataError, match=r"names 'cart', which is no column.*no column 'click'"):
        unskew.read_log(pa.table(SHOWN), grades={"cart": 1})


def test_gains_by_hand(tmp_path):
    """Set gains take the place of 2 ** grade - 1 in the pair statistic, and are saved with the log."""
    data = unskew.read_log(pa.table(SHOWN), events=pa.table(CLICKED), grades=GRADES, gains=[1, 10])
    plain = unskew.read_log(pa.table(SHOWN), events=pa.table(CLICKED), grades=GRADES)
    assert plain.gains is None
    assert data.gains == (1.0, 10.0)
    data.save(tmp_path / "compact")
    loaded = unskew.load(tmp_path / "compact")
    assert loaded.equals(data)
    assert not loaded.equals(plain)
    pairs = pair_statistics(data)
    page = np.repeat(np.arange(len(data.pages)), np.diff(pairs.offsets))
    found = dict(zip(zip(page, pairs.slot_i, pairs.slot_j, strict=True), pairs.weight, strict=True))
    assert found == pytest.approx(reference_pairs(data.sessions(), data.gains))


def test_gains_weigh_a_stronger_event():
    """With two events in one session, the gain of the stronger one decides the share of each."""
    log = pa.table({"session": [1] * 3, "query": [1] * 3, "doc": [1, 2, 3], "position": [1, 2, 3],
                    "click": [1, 2, 0]})  # fmt: skip
    data = unskew.read_log(log, gains=[1, 4])
    # IDCG = 4 / log2(2) + 1 / log2(3); W[2, 3] = 4 / IDCG, W[2, 1] = 3 / IDCG, W[1, 3] = 1 / IDCG.
    ideal = 4 + 1 / np.log2(3)
    pairs = pair_statistics(data)
    assert pairs.weight == pytest.approx(np.array([1, 3, 4]) / ideal)


@pytest.mark.parametrize("gains", [[], [0, 1], [3, 1], [1, np.inf], ["a"], [1]])
def test_gains_that_make_no_sense(gains):
    """Gains are above 0, do not fall, and there is one for every grade of the log."""
    with pytest.raises(UsageError, match="gains"):
        unskew.read_log(pa.table(SHOWN), events=pa.table(CLICKED), grades=GRADES, gains=gains)


def test_gains_change_what_is_learned():
    """A ranker trained with other gains of the same events has other scores."""
    rng = np.random.default_rng(0)
    n, size = 400, 5
    x = rng.normal(size=(n * size, 2))
    grade = np.where(x[:, 0] > 1, 2, (x[:, 1] > 0.5).astype(int))
    columns = {
        "session": np.repeat(np.arange(n), size), "query": np.repeat(np.arange(n), size),
        "position": np.tile(np.arange(1, size + 1), n),
    }  # fmt: skip
    settings = {"n_estimators": 5, "random_state": 0, "verbose": 0, "n_jobs": 1}
    scores = []
    for gains in (None, [1, 100]):
        data = unskew.Impressions.from_arrays(x, grade, gains=gains, **columns)
        scores.append(unskew.UnbiasedLambdaMART(**settings).fit(data).predict(x))
    assert np.abs(scores[0] - scores[1]).max() > 1e-3
