"""Reading interleaved clicks: votes, users, credits and wrong logs."""

from __future__ import annotations

import json
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from scipy.stats import binomtest

from unskew.errors import DataError, UsageError
from unskew.online import mix_rankings, read_interleaving

LOG: dict[str, list[Any]] = {
    "session": [1, 1, 2, 2, 3, 3, 4, 4],
    "user": ["u", "u", "u", "u", "v", "v", "w", "w"],
    "team": ["A", "B", "B", "A", "A", "B", "B", "A"],
    "click": [1, 0, 0, 1, 0, 1, 1, 1],
}


def test_votes_by_hand() -> None:
    """Two impressions for A, one for B and a tie; one user for A, one for B, one tie."""
    found = read_interleaving(LOG, user="user")
    votes = found.impressions
    assert (votes.wins_a, votes.wins_b, votes.ties) == (2, 1, 1)
    assert votes.share_a == pytest.approx(2 / 3)
    assert found.users is not None
    assert (found.users.wins_a, found.users.wins_b, found.users.ties) == (1, 1, 1)
    assert found.per_impression.value == pytest.approx((1 + 1 - 1 + 0) / 4)
    assert found.per_pair.value == pytest.approx(1 / 4), "every list has one pair"
    assert found.winner is None


def test_the_sign_test_is_that_of_scipy() -> None:
    """Independent impressions are judged by the exact binomial test and interval."""
    rng = np.random.default_rng(0)
    n = 200
    log = {
        "session": np.arange(n), "team": np.where(rng.random(n) < 0.6, "A", "B"),
        "click": (rng.random(n) < 0.8).astype(int),
    }  # fmt: skip
    found = read_interleaving(log, level=0.9).impressions
    expected = binomtest(found.wins_a, found.wins_a + found.wins_b)
    assert found.p == pytest.approx(float(expected.pvalue))
    ends = expected.proportion_ci(0.9)
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == pytest.approx((ends.low, ends.high))
    assert found.ties == n - found.wins_a - found.wins_b


def test_credits_instead_of_teams() -> None:
    """A credit column says how much a click counts; small sums of rounding are ties."""
    log = {
        "session": [1, 1, 2, 2], "team": ["A", "B", "A", "B"], "click": [1, 1, 1, 1],
        "credit": [0.3, -0.1, 0.1 + 0.2, -0.3],
    }  # fmt: skip
    found = read_interleaving(log)
    assert (found.impressions.wins_a, found.impressions.ties) == (1, 1)
    assert found.per_impression.value == pytest.approx(0.1)


def test_documents_of_nobody() -> None:
    """Clicks on documents without a team vote for nobody, null or empty."""
    log = {"session": [1, 1, 2], "team": [None, "", "B"], "click": [1, 1, 1]}
    found = read_interleaving(log).impressions
    assert (found.wins_a, found.wins_b, found.ties) == (0, 1, 1)


def test_a_log_without_clicks() -> None:
    """Without a click nobody wins, and that is said; the numbers are None and not NaN."""
    found = read_interleaving({**LOG, "click": [0] * 8}, user="user")
    assert found.winner is None
    assert "no user preferred either ranker" in found.sentence
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["impressions"]["p"] is None
    assert plain["impressions"]["interval"] == [None, None]


def _users(rng: np.random.Generator, lean: float, n: int = 60) -> dict[str, Any]:
    """Users who each lean to one ranker in all their impressions, by half on average at lean 0.5."""
    lists = 1 + rng.poisson(5.0, n)
    taste = rng.beta(2 * lean, 2 * (1 - lean), n)
    user = np.repeat(np.arange(n), lists)
    for_a = rng.random(len(user)) < taste[user]
    return {
        "session": np.arange(len(user)), "user": user, "team": np.where(for_a, "A", "B"),
        "click": np.ones(len(user), dtype=int),
    }  # fmt: skip


def test_users_are_respected() -> None:
    """Users who always vote alike fool the test of impressions, not the one that knows them."""
    rng = np.random.default_rng(1)
    n = 60
    wrong = {"ignored": 0, "per impression": 0, "per user": 0}
    for _ in range(n):
        log = _users(rng, 0.5)
        found = read_interleaving(log, user="user")
        plain = read_interleaving(log).impressions.p
        assert plain is not None
        assert found.impressions.p is not None
        assert found.users is not None
        assert found.users.p is not None
        wrong["ignored"] += plain < 0.05
        wrong["per impression"] += found.impressions.p < 0.05
        wrong["per user"] += found.users.p < 0.05
    bound = 0.05 + 4 * sqrt(0.05 * 0.95 / n)
    assert wrong["ignored"] / n > bound
    assert wrong["per impression"] / n < bound
    assert wrong["per user"] / n < bound


def test_the_winner_is_named() -> None:
    """A clear preference names its ranker, whichever it is."""
    rng = np.random.default_rng(2)
    for lean, name in ((0.8, "A"), (0.2, "B")):
        found = read_interleaving(_users(rng, lean, 200), user="user")
        assert found.winner == name
        assert found.sentence.startswith(f"{name} wins: A is preferred by")
        assert found.to_dict()["winner"] == name


@pytest.mark.parametrize("kind", ["parquet", "csv", "csv.gz", "pandas", "polars", "stream"])
def test_every_source_reads_the_same(kind: str, tmp_path: Path) -> None:
    """One log through every door."""
    log = pa.table(LOG | {"team": ["A", "B", "B", "A", None, "B", "B", "A"]})
    path = tmp_path / f"log.{kind}"
    if kind == "parquet":
        pq.write_table(log, path)
    elif kind.startswith("csv"):
        opened = pa.CompressedOutputStream(path, "gzip") if kind == "csv.gz" else path
        pyarrow.csv.write_csv(log, opened)
        if kind == "csv.gz":
            opened.close()
    source: Any = {
        "pandas": log.to_pandas, "polars": lambda: pl.from_arrow(log), "stream": log.to_reader,
    }.get(kind, lambda: path)()  # fmt: skip
    assert read_interleaving(source, user="user") == read_interleaving(log, user="user")


@pytest.mark.parametrize(
    "ids",
    [
        ["007", "7"],
        ["12345678901234567890", "12345678901234567891"],
        [2**62, 2**62 + 1],
        ["ä", "b"],
    ],
)
@pytest.mark.parametrize("kind", ["frame", "csv"])
def test_teams_from_the_mixed_lists(ids: list[Any], kind: str, tmp_path: Path) -> None:
    """A log without teams takes them from the table that was shown, by exact query and document."""
    a = {"query": [ids[0]] * 2 + [ids[1]] * 2, "doc": ids * 2, "rank": [1, 2, 1, 2]}
    b = {**a, "rank": [2, 1, 2, 1]}
    mixed = mix_rankings(a, b)
    n = 20
    rows = pa.concat_tables([mixed] * n)
    session = np.repeat(np.arange(2 * n), 2)
    log = rows.append_column("session", pa.array(session)).append_column(
        "click", pa.array(np.random.default_rng(0).integers(2, size=len(session)))
    )
    bare: Any = log.drop_columns(["team", "credit"])
    if kind == "csv":
        pyarrow.csv.write_csv(bare, tmp_path / "log.csv")
        bare = tmp_path / "log.csv"
    assert read_interleaving(bare, mixed=mixed) == read_interleaving(log)


def test_unknown_documents() -> None:
    """A document that the mixed lists do not have, or have twice, is an error that names it."""
    mixed = {"query": ["q", "q"], "doc": ["x", "y"], "team": ["A", "B"]}
    log = {"session": [1, 1], "query": ["q", "q"], "doc": ["x", "z"], "click": [1, 0]}
    with pytest.raises(DataError, match=r"document 'z' of query 'q' is unknown to the mixed lists"):
        read_interleaving(log, mixed=mixed)
    twice = {"query": ["q", "q"], "doc": ["x", "x"], "team": ["A", "B"]}
    with pytest.raises(
        DataError, match="query 'q' has document 'x' twice; a document has one team"
    ):
        read_interleaving(log, mixed=twice)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "team": ({"team": ["A", "B", "C", "A"] * 2}, r"row 3: column 'team' is neither A nor B.*'C'"),
    "click": ({"click": [1, 2.5] * 4}, "row 2: column 'click' is neither 0 or 1 nor a grade"),
    "no click": ({"click": [1, None] * 4}, "row 2: column 'click' is null"),
    "session": ({"session": [1, None] * 4}, "row 2: column 'session' is null"),
    "user": ({"user": ["u", None] * 4}, "row 2: column 'user' is null"),
    "two users": ({"user": list("uvwwyyaa")}, "session '1': column 'user' has two values"),
    "credit": ({"credit": [0.5, 2.0] * 4}, r"row 2: column 'credit' is not between -1 and 1"),
    "empty": ({k: [] for k in LOG}, "there is not a single row"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_logs(case: str) -> None:
    """Every wrong log is an error that names the row and the column."""
    change, message = WRONG[case]
    with pytest.raises(DataError, match=message):
        read_interleaving(LOG | change, user="user")


def test_missing_columns_and_wrong_levels() -> None:
    """A log without teams says which column is wanted; the level lies between 0 and 1."""
    with pytest.raises(DataError, match="there is no column 'team'"):
        read_interleaving({k: v for k, v in LOG.items() if k != "team"})
    with pytest.raises(UsageError, match="level must lie between 0 and 1"):
        read_interleaving(LOG, level=1.5)
