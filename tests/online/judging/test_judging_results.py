"""Who won: verdicts, the sign test, agreement and the table, from known judgements."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from unskew.online.judging.answers import Answer, Judgement, Outcome
from unskew.online.judging.database import Judged
from unskew.online.judging.results import results_of, sign_test


def judged(*rows, asked=None, identical=()):
    """Judgements given as (query, assessor, answer), A always on the left."""
    judgements = tuple(Judgement(q, who, Answer(answer), True, "", "t") for q, who, answer in rows)
    queries = asked or tuple(dict.fromkeys(j.query for j in judgements))
    return Judged("new", "old", 5, 1, tuple(queries), tuple(identical), judgements)


@pytest.mark.parametrize(
    ("answer", "a_was_left", "outcome"),
    [
        ("left", True, "win"), ("left", False, "loss"), ("right", True, "loss"),
        ("right", False, "win"), ("same", True, "same"), ("same", False, "same"),
        ("both_bad", False, "both_bad"), ("skip", True, "skipped"),
    ],
)  # fmt: skip
def test_outcome(answer, a_was_left, outcome):
    """An answer says something about A by the side on which A was."""
    judgement = Judgement("q", "Ann", Answer(answer), a_was_left, "", "t")
    assert judgement.outcome is Outcome(outcome)


def test_the_papers_table():
    """21 wins, 68 same, 11 losses: ratio 1.91, and the exact test in plain sums."""
    answers = ["left"] * 21 + ["same"] * 68 + ["right"] * 11
    found = results_of(judged(*((f"q{k}", "Ann", a) for k, a in enumerate(answers)))).to_json()
    assert (found["win"], found["same"], found["loss"]) == (21, 68, 11)
    assert found["ratio"] == pytest.approx(21 / 11)
    tail = sum(binom.pmf(k, 32, 0.5) for k in range(21, 33))
    assert found["sign_test"]["p"] == pytest.approx(2 * tail)
    low, high = found["sign_test"]["interval"]
    assert binom.sf(20, 32, low) == pytest.approx(0.025, abs=1e-6)
    assert binom.cdf(21, 32, high) == pytest.approx(0.025, abs=1e-6)
    assert found["ratio_interval"] == pytest.approx([low / (1 - low), high / (1 - high)])


@pytest.mark.parametrize("n", [5, 20, 60])
def test_false_positives_and_coverage(n):
    """Without a difference p < 0.05 in at most 5% of studies, and the interval covers in 95%."""
    chance = {win: binom.pmf(win, n, 0.5) for win in range(n + 1)}
    tests = {win: sign_test(win, n - win) for win in range(n + 1)}
    assert sum(chance[w] for w, t in tests.items() if t.p < 0.05) <= 0.05
    for share in (0.1, 0.5, 0.8):
        covered = sum(binom.pmf(w, n, share) for w, t in tests.items() if t.low <= share <= t.high)
        assert covered >= 0.95


def test_no_losses_and_nothing_decided():
    """A ratio without losses is infinite (null in JSON); without wins and losses there is none."""
    found = results_of(judged(("x", "Ann", "left"), ("y", "Ann", "left")))
    assert found.test.ratio == float("inf")
    assert found.to_json()["ratio"] is None
    empty = results_of(judged(("x", "Ann", "same")))
    assert (empty.test.ratio, empty.test.p) == (None, 1.0)
    json.dumps(empty.to_json(), allow_nan=False)


def test_a_query_counts_once():
    """Several assessors of one query make one verdict; skips do not vote."""
    found = results_of(
        judged(
            ("won", "Ann", "left"), ("won", "Bob", "left"), ("won", "Cy", "right"),
            ("tied", "Ann", "left"), ("tied", "Bob", "right"),
            ("bad", "Ann", "both_bad"), ("bad", "Bob", "both_bad"), ("bad", "Cy", "same"),
            ("lost", "Ann", "right"), ("lost", "Bob", "skip"), ("lost", "Cy", "same"),
            ("none", "Ann", "skip"),
            asked=("won", "tied", "bad", "lost", "none", "unjudged"), identical=("i",),
        )
    )  # fmt: skip
    assert found.verdicts == {
        "won": "win", "tied": "same", "bad": "both_bad", "lost": "loss", "none": "skipped",
    }  # fmt: skip
    content = found.to_json()
    assert (content["judged"], content["asked"], content["identical"]) == (5, 6, 1)
    assert content["judgements"]["total"] == 12
    assert content["per_assessor"]["Bob"] == {
        "win": 1, "same": 0, "both_bad": 1, "loss": 1, "skipped": 1,
    }  # fmt: skip
    assert content["per_query"][-1] == {
        "query": "unjudged", "verdict": None, "win": 0, "same": 0, "both_bad": 0, "loss": 0,
        "skipped": 0,
    }  # fmt: skip


ANSWERS = st.lists(
    st.tuples(st.sampled_from("uvwxyz"), st.sampled_from("ABC"), st.sampled_from(list(Answer))),
    unique_by=lambda row: row[:2],
    min_size=1,
)


@given(ANSWERS)
def test_counts_add_up(rows):
    """Every judgement is counted once, in its query and with its assessor."""
    found = results_of(judged(*rows))
    groups = (found.per_query().values(), found.per_assessor().values())
    for group in groups:
        assert sum(counts.total() for counts in group) == len(rows)
    assert found.queries.total() == len({query for query, _, _ in rows})


@given(ANSWERS)
def test_swapping_the_rankers_swaps_the_result(rows):
    """With A and B exchanged wins become losses, and p and agreement stay."""
    swap = {"left": "right", "right": "left"}
    found = results_of(judged(*rows))
    other = results_of(judged(*((q, who, swap.get(a, a)) for q, who, a in rows)))
    assert (found.test.win, found.test.loss) == (other.test.loss, other.test.win)
    assert found.test.p == pytest.approx(other.test.p)
    theirs = other.agreement.preference
    assert found.agreement.preference == (None if theirs is None else pytest.approx(theirs))


def test_agreement_is_of_those_who_judged():
    """Agreement is over queries of two or more; same and both bad are one preference."""
    found = results_of(
        judged(
            ("x", "Ann", "left"), ("x", "Bob", "left"), ("y", "Ann", "same"),
            ("y", "Bob", "both_bad"), ("z", "Ann", "right"), ("z", "Bob", "skip"),
        )
    ).agreement  # fmt: skip
    assert found.queries == 2
    assert found.preference == pytest.approx(1.0)
    assert found.answer is not None
    assert found.answer < 1


def test_table_of_judgements():
    """The exported table has a row for each judgement, with who stood where."""
    rows = results_of(judged(("x", "Ann", "left"), ("y", "Bob", "skip"))).to_arrow().to_pylist()
    assert rows[0] == {
        "query": "x", "assessor": "Ann", "outcome": "win", "answer": "left", "left": "new",
        "right": "old", "reason": "", "answered_at": "t",
    }  # fmt: skip
    assert rows[1]["outcome"] == "skipped"
