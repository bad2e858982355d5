"""Reading an A/B test: every measure, unit, source and wrong log."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from arms import arm, both, first_clicks
from scipy.stats import chisquare, false_discovery_control, ttest_ind

import unskew
from unskew.errors import DataError, UsageError
from unskew.online import read_ab


def test_measures_by_hand() -> None:
    """Four sessions: first clicks at 1, 3, none and 2, the last with two clicks."""
    log = {
        "session": np.repeat([1, 2, 3, 4], 3),
        "position": np.tile([1, 2, 3], 4),
        "click": [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1],
    }
    found = read_ab(log, log).measures
    values = {name: change.control for name, change in found.items()}
    assert values == {
        "click@1": 0.25, "click@3": 0.75, "click@5": 0.75, "clicks": 1.0, "abandonment": 0.25,
        "first_click_rank": 2.0,
    }  # fmt: skip
    assert all(change.p == 1.0 and change.relative == 0.0 for change in found.values())


def test_first_click_ratios_against_a_loop() -> None:
    """Click@k, abandonment and first-click rank are those of a loop over sessions, p is Welch's."""
    control, treatment = both(300)
    found = read_ab(control, treatment, depths=[1, 2, 4])
    first = [first_clicks(log) for log in (control, treatment)]
    for k in (1, 2, 4):
        hits = [((f > 0) & (f <= k)).astype(float) for f in first]
        change = found.measures[f"click@{k}"]
        assert change.control == pytest.approx(hits[0].mean())
        assert change.relative == pytest.approx(hits[1].mean() / hits[0].mean() - 1)
        assert change.p == pytest.approx(
            float(ttest_ind(hits[1], hits[0], equal_var=False).pvalue), rel=1e-9
        )
    ranks = [f[f > 0] for f in first]
    rank = found.measures["first_click_rank"]
    assert rank.treatment == pytest.approx(ranks[1].mean())
    # The ratio's unit is a session, also one without a click: the p-value differs in a hair only.
    assert rank.p == pytest.approx(
        float(ttest_ind(ranks[1], ranks[0], equal_var=False).pvalue), rel=0.02
    )


def test_the_promised_json() -> None:
    """to_dict holds every promised key, as plain JSON without NaN."""
    found = json.loads(json.dumps(read_ab(*both()).to_dict(), allow_nan=False))
    for name in ("click@1", "click@3", "click@5"):
        change = found["measures"][name]
        assert {"control", "treatment", "relative", "interval", "p"} <= set(change)
        low, high = change["interval"]
        assert low < change["relative"] < high
    assert 0 <= found["assignment"]["p"] <= 1


def test_verdicts_know_which_way_is_better() -> None:
    """A rise of click@1 is better, one of first_click_rank worse, one of a column only higher."""
    control, treatment = both(3_000)
    found = read_ab(control, treatment, measures=["revenue"]).measures
    assert found["click@1"].verdict == "better"
    assert found["click@1"].sentence.startswith("treatment is better on click@1: +")
    assert found["abandonment"].verdict == "better"
    assert found["revenue"].verdict == "higher"
    back = read_ab(treatment, control, measures=["revenue"]).measures
    assert back["click@1"].verdict == "worse"
    assert back["abandonment"].verdict == "worse"
    assert back["revenue"].verdict == "lower"
    same = read_ab(control, control).measures["click@1"]
    assert same.sentence.startswith("no difference is shown on click@1")


def test_users_are_the_units() -> None:
    """With a user column every session of a user counts as one piece of evidence."""
    control, treatment = both(2_000, n_users=60)
    by_session, by_user = (read_ab(control, treatment, user=u) for u in (None, "user"))
    for name in ("click@1", "clicks"):
        one, other = by_session.measures[name], by_user.measures[name]
        assert one.relative == pytest.approx(other.relative)
        assert one.interval is not None
        assert other.interval is not None
        assert other.interval.high - other.interval.low > 1.2 * (
            one.interval.high - one.interval.low
        )
    assert by_user.assignment.control == len(set(control["user"].to_pylist()))
    assert by_user.unit == "user"
    assert by_user.sessions == (2_000, 2_000)


def test_a_user_of_one_session_changes_nothing() -> None:
    """Where every session has its own user, users and sessions are the same units."""
    control, treatment = both(200)
    logs = [
        log.set_column(5, "user", pc.binary_join_element_wise(
            arm_name, log["session"].cast(pa.string()), ""
        ))
        for arm_name, log in (("c", control), ("t", treatment))
    ]  # fmt: skip
    plain = read_ab(control, treatment).to_dict()["measures"]
    users = read_ab(*logs, user="user").to_dict()["measures"]
    for name, change in plain.items():
        assert change["p"] == pytest.approx(users[name]["p"], rel=1e-9)
        assert change["interval"] == pytest.approx(users[name]["interval"], rel=1e-9)


def test_columns_of_the_user() -> None:
    """A column is summed over a session, or averaged, or its extreme; missing values are left out."""
    log = {
        "session": [1, 1, 2, 2, 3, 3], "position": [1, 2] * 3, "click": [1, 0] * 3,
        "dwell": [4.0, 8.0, None, 1.0, None, None],
    }  # fmt: skip
    found = read_ab(log, log, measures=["dwell", "dwell:mean", "dwell:max", "dwell:min"]).measures
    assert found["dwell"].control == pytest.approx((12 + 1 + 0) / 3)
    assert found["dwell:mean"].control == pytest.approx((6 + 1) / 2)
    assert found["dwell:max"].control == pytest.approx((8 + 1) / 2)
    assert found["dwell:min"].control == pytest.approx((4 + 1) / 2)
    with pytest.raises(UsageError, match="after the colon must be one of sum, mean, max, min"):
        read_ab(log, log, measures=["dwell:median"])
    with pytest.raises(DataError, match="there is no column 'dwel'; did you mean 'dwell'"):
        read_ab(log, log, measures=["dwel"])


def test_a_column_with_a_colon_in_its_name() -> None:
    """A name that is a column is that column."""
    log = {"session": [1, 2], "position": [1, 1], "click": [1, 0], "a:mean": [1.0, 3.0]}
    assert read_ab(log, log, measures=["a:mean"]).measures["a:mean"].control == 2.0


def test_holm_corrects_over_the_measures() -> None:
    """p_holm never lies below p, is monotone, and multiplies the smallest p by their number."""
    found = read_ab(*both(500)).measures.values()
    p = np.array([change.p for change in found])
    corrected = np.array([change.p_holm for change in found])
    assert (corrected >= p).all()
    assert corrected.min() == pytest.approx(min(p.min() * len(p), 1.0))
    # Benjamini and Hochberg's correction is never stricter than Holm's.
    assert (corrected >= false_discovery_control(p) - 1e-12).all()


def test_assignment_is_chi_squared() -> None:
    """The check of the split is SciPy's chi-squared test, and a broken split is a mismatch."""
    control, treatment = arm(1_000, seed=1), arm(900, seed=2, prefix="t")
    found = read_ab(control, treatment).assignment
    assert found.p == pytest.approx(float(chisquare([1_000, 900]).pvalue))
    assert not found.mismatch
    skewed = read_ab(control, treatment, share=0.3).assignment
    assert skewed.p == pytest.approx(float(chisquare([1_000, 900], [1_330, 570]).pvalue))
    assert skewed.mismatch


def test_earlier_data_narrow_the_interval() -> None:
    """A pre-period of the same users explains part of the variance and leaves the estimate sound."""
    rng = np.random.default_rng(0)
    taste = {p: rng.beta(0.5, 1.0, 300) for p in "ct"}

    def log(prefix: str, seed: int) -> pa.Table:
        draw = np.random.default_rng(seed)
        user = np.repeat(np.arange(300), 5)
        click = draw.random(1_500) < taste[prefix][user]
        return pa.table(
            {
                "session": np.arange(1_500), "position": np.ones(1_500, dtype=int),
                "click": click.astype(int), "user": [f"{prefix}{u}" for u in user],
            }
        )  # fmt: skip

    during, before = ([log(p, seed + k) for k, p in enumerate("ct")] for seed in (10, 20))
    plain = read_ab(*during, user="user").measures["click@1"]
    found = read_ab(*during, user="user", pre_control=before[0], pre_treatment=before[1]).measures[
        "click@1"
    ]
    assert found.removed is not None
    assert found.removed > 0.5
    assert found.interval is not None
    assert plain.interval is not None
    assert found.interval.high - found.interval.low < 0.75 * (
        plain.interval.high - plain.interval.low
    )
    assert found.relative is not None
    assert 0.0 in found.interval, "both arms were drawn alike"


def test_earlier_data_of_other_users_change_nothing() -> None:
    """A pre-period in which no user of the test occurs explains nothing."""
    control, treatment = both(200, n_users=50)
    strangers = [
        arm(100, seed=k, prefix=f"x{k}", n_users=20).drop_columns(["segment", "time", "query"])
        for k in (1, 2)
    ]
    plain = read_ab(control, treatment, user="user").measures["clicks"]
    found = read_ab(
        control, treatment, user="user", by="segment",
        pre_control=strangers[0], pre_treatment=strangers[1],
    ).measures["clicks"]  # fmt: skip
    assert found.p == pytest.approx(plain.p)
    assert found.removed == pytest.approx(0.0, abs=1e-12)


def test_parts_are_read_apart() -> None:
    """Each segment, query and day reads as its own test would."""
    control, treatment = both(600, n_users=100)
    for by, column in (("segment", "segment"), ("query", "query"), ("day", "time")):
        found = read_ab(
            control, treatment, user="user", time="time", segment="segment", by=by,
        ).parts  # type: ignore[arg-type]  # fmt: skip
        assert found is not None
        assert list(found) == sorted(map(str, set(control[column].to_pylist())))
        for label, changes in found.items():
            value = int(label) if by == "day" else label
            alone = read_ab(
                *(log.filter(pc.equal(log[column], value)) for log in (control, treatment)),
                user="user",
            ).measures
            assert changes["click@1"].p == pytest.approx(alone["click@1"].p)
            assert changes["clicks"].relative == pytest.approx(alone["clicks"].relative)


def test_a_part_of_one_arm_only() -> None:
    """A query that one arm never saw has no comparison, and no error."""
    control, treatment = both(100)
    treatment = treatment.filter(pc.not_equal(treatment["query"], "b"))
    found = read_ab(control, treatment, by="query").parts
    assert found is not None
    assert found["b"]["click@1"].treatment is None
    assert found["b"]["click@1"].to_dict()["interval"] == [None, None]
    assert found["a"]["click@1"].p is not None


@pytest.mark.parametrize(
    ("times", "labels"),
    [
        (pa.array(["2024-05-17", "2024-05-18"]), ["2024-05-17", "2024-05-18"]),
        (pa.array(["2024-05-17 23:59:59", "2024-05-18T00:00:00"]), ["2024-05-17", "2024-05-18"]),
        (pa.array([19860, 19861], pa.date32()), ["2024-05-17", "2024-05-18"]),
        (pa.array([1_715_904_000, 1_715_990_400]), ["2024-05-17", "2024-05-18"]),
        (pa.array([1_715_904_000_000, 1_715_990_400_000]), ["2024-05-17", "2024-05-18"]),
        (pa.array([1_715_904_000, 1_715_990_400], pa.timestamp("s")), ["2024-05-17", "2024-05-18"]),
        (
            pa.array([1_715_904_000, 1_715_990_400], pa.timestamp("s", "Asia/Tokyo")),
            ["2024-05-17", "2024-05-18"],
        ),
        (pa.array([7, 8]), ["7", "8"]),
    ],
)
def test_times_of_every_kind(times: pa.Array, labels: list[str]) -> None:
    """Days come out of dates, timestamps, ISO text, seconds, thousandths, and day numbers."""
    log = pa.table({"session": [1, 2], "position": [1, 1], "click": [1, 0], "at": times})
    found = read_ab(log, log, time="at", by="day").parts
    assert found is not None
    assert list(found) == labels


def test_a_sequential_reading_by_day() -> None:
    """The path ends with the reading of all days, and each point is the reading up to that day."""
    control, treatment = both(800, n_users=200)
    found = read_ab(control, treatment, user="user", time="time", sequential=True, expected=0.2)
    assert found.path is not None
    assert list(found.path) == ["0", "1", "2", "3"]
    assert found.path["3"]["click@1"] == found.measures["click@1"]
    early = [log.filter(pc.less_equal(log["time"], 1)) for log in (control, treatment)]
    alone = read_ab(*early, user="user", sequential=True, expected=0.2).measures["click@1"]
    assert found.path["1"]["click@1"].p == pytest.approx(alone.p)
    plain = read_ab(control, treatment, user="user").measures["click@1"]
    sequential = found.measures["click@1"]
    assert sequential.fixed is not None
    assert sequential.fixed[0] == pytest.approx(plain.p)
    assert sequential.p is not None
    assert sequential.p > sequential.fixed[0]
    day = found.decided_on("click@1")
    assert day is None or found.path[day]["click@1"].decided


def test_weights_count_sessions() -> None:
    """A session of weight 2 moves a ratio like two sessions, and weight 0 not at all."""
    log = {
        "session": [1, 2, 3], "position": [1, 1, 1], "click": [1, 0, 1], "weight": [2.0, 1.0, 0.0],
    }  # fmt: skip
    assert read_ab(log, log).measures["click@1"].control == pytest.approx(2 / 3)


def test_the_earliest_click_is_first_where_times_are_known() -> None:
    """With click times the first click is the earliest, otherwise the topmost."""
    log = {
        "session": [1, 1, 1, 2], "position": [1, 2, 3, 1], "click": [1, 0, 1, 1],
        "at": [20, None, 10, 5],
    }  # fmt: skip
    assert read_ab(log, log).measures["click@1"].control == 1.0
    assert read_ab(log, log, click_time="at").measures["click@1"].control == 0.5


def test_positions_from_zero() -> None:
    """Zero-based positions are refused with the remedy, and read right when they are declared."""
    control, treatment = both(100)
    zero = [
        log.set_column(3, "position", pc.subtract(log["position"], 1))
        for log in (control, treatment)
    ]
    with pytest.raises(DataError, match=r"row 1: column 'position' is 0, .* first_position=0"):
        read_ab(*zero)
    assert read_ab(*zero, first_position=0).measures == read_ab(control, treatment).measures


def _compacted(log: pa.Table, folder: Path) -> Path:
    ignored = ["user", "time", "segment", "revenue"]
    unskew.read_log(log, ignore=ignored).save(folder / "saved")
    return folder / "saved"


def _csv(log: pa.Table, folder: Path, name: str) -> Path:
    text = log.drop_columns(["revenue"])
    with (
        pa.CompressedOutputStream(folder / name, "gzip")
        if name.endswith("gz")
        else pa.OSFile(str(folder / name), "wb") as out
    ):
        pyarrow.csv.write_csv(text, out)
    return folder / name


def _parquet(log: pa.Table, folder: Path) -> Path:
    pq.write_table(log, folder / "log.parquet")
    return folder / "log.parquet"


SOURCES: dict[str, Callable[[pa.Table, Path], Any]] = {
    "Parquet": _parquet,
    "CSV": lambda log, folder: _csv(log, folder, "log.csv"),
    "gzip CSV": lambda log, folder: _csv(log, folder, "log.csv.gz"),
    "stream": lambda log, folder: log.to_reader(),
    "pandas": lambda log, folder: log.to_pandas(),
    "Polars": lambda log, folder: pl.from_arrow(log),
    "DuckDB relation": lambda log, folder: duckdb.connect().from_arrow(log),
    "compacted folder": _compacted,
    "Impressions": lambda log, folder: unskew.load(_compacted(log, folder)),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_reads_the_same(kind: str, tmp_path: Path) -> None:
    """One test through every door, also from compacted logs."""
    logs = both(200)
    sources = []
    for name, log in zip("ct", logs, strict=True):
        (tmp_path / name).mkdir()
        sources.append(SOURCES[kind](log, tmp_path / name))
    expected = read_ab(*logs).to_dict()
    found = read_ab(*sources).to_dict()
    for name, change in expected["measures"].items():
        for key in ("control", "treatment", "p", "interval"):
            assert found["measures"][name][key] == pytest.approx(change[key], rel=1e-9)
    assert found["assignment"] == expected["assignment"]


def test_compacted_arms_by_query_and_context() -> None:
    """Queries and contexts of compacted logs are parts; users and times are not there."""
    control, treatment = both(300)
    ignored = ["user", "time", "revenue"]
    data = [unskew.read_log(log, context="segment", ignore=ignored) for log in (control, treatment)]
    for by in ("query", "segment"):
        expected = read_ab(control, treatment, segment="segment", by=by).parts  # type: ignore[arg-type]
        found = read_ab(*data, by=by).parts  # type: ignore[arg-type]
        assert found is not None
        assert expected is not None
        assert list(found) == list(expected)
        for label, changes in expected.items():
            assert found[label]["clicks"].p == pytest.approx(changes["clicks"].p, rel=1e-9)
    with pytest.raises(UsageError, match="a compacted log does not keep user 'user'"):
        read_ab(*data, user="user")


BIG = 12_345_678_901_234_567_890
IDS = {
    "texts": lambda k: f"u-{k}",
    "zero-padded texts": lambda k: f"{k:08d}",
    "twenty digits": lambda k: str(BIG + k),
    "numbers": lambda k: k,
    "64-bit numbers": lambda k: 2**62 + k,
    "unsigned numbers": lambda k: np.uint64(2**63 + k),
    "scripts": lambda k: f"明日🙂{k}",
}


@pytest.mark.parametrize("kind", IDS)
@pytest.mark.parametrize("file", ["frame", "csv", "parquet"])
def test_ids_of_every_kind(kind: str, file: str, tmp_path: Path) -> None:
    """Users and sessions that differ in their last digit stay apart, from every kind of file."""
    n = 40
    logs = []
    for k, offset in enumerate((0, 1_000)):
        ids = [IDS[kind](offset + i // 2) for i in range(n)]
        sessions = [IDS[kind](5_000 + i) for i in range(n)]
        log = pa.table(
            {
                "session": sessions,
                "user": ids,
                "position": [1] * n,
                "click": [int(i % 3 == 0) for i in range(n)],
            }
        )
        logs.append(log)
        if file != "frame":
            path = tmp_path / f"{k}.{file}"
            writer = pyarrow.csv.write_csv if file == "csv" else pq.write_table
            writer(log, path)
            logs[-1] = path
    found = read_ab(*logs, user="user")
    assert (found.assignment.control, found.assignment.treatment) == (n // 2, n // 2)
    assert found.sessions == (n, n)


def test_seven_and_007_are_two_users(tmp_path: Path) -> None:
    """A zero-padded id is another user, while 7 as text and as number is one and the same."""
    head = "session,user,position,click\n"
    (tmp_path / "c.csv").write_text(head + "1,007,1,1\n2,8,1,0\n")
    (tmp_path / "t.csv").write_text(head + "1,7,1,1\n2,9,1,0\n")
    assert read_ab(tmp_path / "c.csv", tmp_path / "t.csv", user="user").assignment.control == 2
    number = {"session": [1, 2], "user": [8, 10], "position": [1, 1], "click": [1, 0]}
    with pytest.raises(DataError, match="user '8' is in both arms"):
        read_ab(tmp_path / "c.csv", number, user="user")


def test_ids_that_lost_digits_are_refused() -> None:
    """Floating-point ids beyond 2**53 cannot be told apart, and the error says so."""
    log = {"session": [1.0, 1e19], "position": [1, 1], "click": [1, 0]}
    with pytest.raises(DataError, match=r"column 'session' holds ids as floating-point .* 2\*\*53"):
        read_ab(log, log)
    whole = {"session": [1.0, 2.0], "position": [1, 1], "click": [1, 0]}
    assert read_ab(whole, whole).sessions == (2, 2)
