"""A study: which queries are asked, and that sides and orders are fair."""

from __future__ import annotations

import pytest
from scipy.stats import binomtest

from unskew.errors import DataError, UsageError
from unskew.online.judging.database import Given
from unskew.online.judging.items import Items
from unskew.online.judging.queries import Query
from unskew.online.judging.questions import Desk
from unskew.online.judging.rankings import Ranking
from unskew.online.judging.study import a_is_left, make_study, order_of

A = Ranking("new", {"x": ("1", "2"), "y": ("1", "2"), "z": ("3",), "only": ("1",)})
B = Ranking("old", {"x": ("2", "1"), "y": ("1", "2"), "z": ("4",)})


def test_identical_lists_are_not_asked():
    """Queries of both rankings are asked where the lists differ, as in the paper."""
    study = make_study(A, B)
    assert list(study.questions) == ["x", "y", "z"]
    assert [question.query.query for question in study.asked] == ["x", "z"]
    assert sorted(study.shown()) == [("x", "1"), ("x", "2"), ("z", "3"), ("z", "4")]


def test_top_is_what_is_compared():
    """Lists that differ only below the top are the same."""
    with pytest.raises(DataError, match="the same first 1 documents for every one of the 1"):
        make_study(Ranking("a", {"x": ("1", "2")}), Ranking("b", {"x": ("1", "3")}), top=1)


@pytest.mark.parametrize(
    ("queries", "message"),
    [
        (["x", "no", "nor"], "2 of the 3 queries are in neither ranking, the first is 'no'"),
        (["x", "only"], "1 of the 2 queries are in new but not in old, the first is 'only'"),
    ],
)
def test_unranked_queries(queries, message):
    """A query that one ranker did not rank cannot be judged, and the error names it."""
    with pytest.raises(DataError, match=message):
        make_study(A, B, queries=[Query(q) for q in queries])


def test_rankings_without_a_common_query():
    """Two rankings of different queries are an error that shows some of both."""
    with pytest.raises(DataError, match="no query is in both rankings: a has '1', b has '01'"):
        make_study(Ranking("a", {"1": ("x",)}), Ranking("b", {"01": ("y",)}))


def test_sample():
    """A sample is drawn by the seed among the queries whose lists differ."""
    a = Ranking("a", {str(k): ("1", "2") for k in range(100)})
    b = Ranking("b", {str(k): ("2", "1") if k % 2 else ("1", "2") for k in range(100)})
    drawn = {seed: list(make_study(a, b, sample=10, seed=seed).questions) for seed in (1, 2)}
    assert list(make_study(a, b, sample=10, seed=1).questions) == drawn[1] != drawn[2]
    assert all(int(query) % 2 for query in drawn[1])
    with pytest.raises(UsageError, match="sample is 51, but only 50 queries"):
        make_study(a, b, sample=51)
    with pytest.raises(UsageError, match="sample must be 1 or higher, got 0"):
        make_study(a, b, sample=0)


def test_sides_are_fair_coins():
    """A is on the left half of the time, independently for each assessor."""
    queries = [f"q{k}" for k in range(2000)]
    ann = [a_is_left(7, "Ann", query) for query in queries]
    bob = [a_is_left(7, "Bob", query) for query in queries]
    alike = sum(x == y for x, y in zip(ann, bob, strict=True))
    for heads in (sum(ann), sum(bob), alike):
        assert binomtest(heads, 2000).pvalue > 1e-4
    assert ann != [a_is_left(8, "Ann", query) for query in queries]


def test_names_do_not_run_into_each_other():
    """Assessor and query are told apart, whatever characters they have."""
    assert order_of(1, "ab", "c") != order_of(1, "a", "bc")


def test_desk_deals_each_question_once():
    """An assessor gets every question once, in an order of their own that new ones do not disturb."""
    queries = {k: f"q{k}" for k in range(1, 21)}
    a = Ranking("a", dict.fromkeys(queries.values(), ("1", "2")))
    b = Ranking("b", dict.fromkeys(queries.values(), ("2", "1")))
    study = make_study(a, b)
    desk = Desk({k: study.questions[query] for k, query in queries.items()}, Items({}), 3)

    def dealt(name, desk):
        given = []
        while (number := desk.next(name, given)) is not None:
            given.append(Given(len(given), number, "same", ""))
        return [entry.question for entry in given]

    ann = dealt("Ann", desk)
    assert sorted(ann) == list(queries)
    assert dealt("Bob", desk) != ann == dealt("Ann", desk)
    fewer = Desk({k: q for k, q in desk.questions.items() if k <= 10}, Items({}), 3)
    assert dealt("Ann", fewer) == [k for k in ann if k <= 10]


def test_sides_show_the_lists():
    """Left and right are the two lists, with each document's place in the other."""
    a = Ranking("a", {"x": ("1", "2", "3")})
    b = Ranking("b", {"x": ("2", "4", "3")})
    desk = Desk({1: make_study(a, b).questions["x"]}, Items({}), 0)
    names = [name for name in "abcdefgh" if desk.a_is_left(name, 1)]
    left, right = desk.sides(names[0], 1)
    assert [(c.place, c.item.doc, c.elsewhere) for c in left.cards] == [
        (1, "1", None), (2, "2", 1), (3, "3", 3),
    ]  # fmt: skip
    assert [c.item.doc for c in right.cards] == ["2", "4", "3"]
