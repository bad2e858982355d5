"""Metrics: by hand, against their definitions, against trec_eval and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unskew.errors import DataError, UsageError
from unskew.evaluation.evaluation import average_rank, evaluate
from unskew.evaluation.metrics import FROM_CLICKS, METRICS, ON_LABELS, parse_metric
from unskew.evaluation.reference import expected_metric, metric_of_order
from unskew.log.features import Features
from unskew.log.labelled import LabelledData

NAMES = [*ON_LABELS]


def one(name, score, grade, **options):
    """The metric of a single query."""
    metrics = [name]
    return evaluate(score, grade, np.zeros(len(score)), metrics=metrics, **options).mean[name]


def random_rows(seed, *, n_queries=60, tied=False):
    """Random queries of 1 to 30 rows with grades 0 to 4."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 30, n_queries)
    query = np.repeat(np.arange(n_queries), sizes)
    score = rng.normal(size=len(query))
    if tied:
        score = rng.integers(0, 4, len(query)) / 2.0
    return score, rng.integers(0, 5, len(query)), query


class TestByHand:
    """Values that can be checked with a pencil."""

    def test_ndcg(self):
        """Gains 3 and 1 in the wrong order give DCG 1 + 3/log2(3) over 3 + 1/log2(3)."""
        expected = (1 + 3 / np.log2(3)) / (3 + 1 / np.log2(3))
        assert one("ndcg@10", [2.0, 1.0, 0.0], [1, 2, 0]) == pytest.approx(expected, abs=1e-15)

    def test_ndcg_linear(self):
        """With linear gain the same list gives 1 + 2/log2(3) over 2 + 1/log2(3)."""
        expected = (1 + 2 / np.log2(3)) / (2 + 1 / np.log2(3))
        assert one("ndcg-linear", [2.0, 1.0, 0.0], [1, 2, 0]) == pytest.approx(expected, abs=1e-15)

    def test_map(self):
        """Relevant rows at ranks 1 and 3 of three: (1/1 + 2/3) / 2."""
        assert one("map", [3, 2, 1], [1, 0, 1]) == pytest.approx((1 + 2 / 3) / 2)

    def test_mrr(self):
        """The first relevant row stands at rank 2; a cut above it gives 0."""
        assert one("mrr", [3, 2, 1], [0, 1, 1]) == 0.5
        assert one("mrr@1", [3, 2, 1], [0, 1, 1]) == 0.0

    def test_err(self):
        """Satisfaction 3/16 at rank 1, else 15/16 at rank 2."""
        assert one("err@10", [2, 1], [2, 4]) == pytest.approx(3 / 16 + (13 / 16) * (15 / 16) / 2)

    def test_precision(self):
        """One relevant row in the first two, and a short list is divided by the cut too."""
        assert one("precision@2", [3, 2, 1], [0, 1, 1]) == 0.5
        assert one("precision@5", [3, 2, 1], [0, 1, 1]) == pytest.approx(2 / 5)

    def test_ties_average(self):
        """Two tied rows, one relevant: the mean of both orders."""
        assert one("mrr", [1, 1], [0, 1]) == pytest.approx((1 + 1 / 2) / 2)
        assert one("ndcg@1", [1, 1], [0, 1]) == pytest.approx(1 / 2)

    def test_ties_stable(self):
        """With stable ties the first row stays first."""
        assert one("mrr", [1, 1], [0, 1], ties="stable") == 0.5
        assert one("mrr", [1, 1], [1, 0], ties="stable") == 1.0

    def test_relevant_from(self):
        """Grades below relevant_from do not count for the binary metrics."""
        assert one("mrr", [3, 2, 1], [1, 2, 3], relevant_from=2) == 0.5


class TestAgainstDefinition:
    """Kernels against the NumPy twin."""

    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize("k", [1, 3, 10])
    def test_without_ties(self, name, k):
        """Every kernel gives what the definition gives on the ordered grades."""
        score, grade, query = random_rows(1)
        found = evaluate(score, grade, query, metrics=[f"{name}@{k}"]).per_query[f"{name}@{k}"]
        for q, value in enumerate(found):
            rows = np.flatnonzero(query == q)
            ordered = grade[rows[np.argsort(-score[rows])]]
            expected = metric_of_order(name, ordered, k=k)
            assert value == pytest.approx(expected, abs=1e-12, nan_ok=True)

    @pytest.mark.parametrize("name", NAMES)
    @settings(max_examples=25, deadline=None)
    @given(
        rows=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4)), min_size=1, max_size=6),
        k=st.integers(1, 7),
    )
    def test_ties_are_the_mean_over_all_orders(self, name, rows, k):
        """The closed form for ties is the mean over every permutation of the tied rows."""
        score, grade = (np.array(column) for column in zip(*rows, strict=True))
        expected = expected_metric(name, score, grade, k=k)
        assert one(f"{name}@{k}", score, grade) == pytest.approx(expected, abs=1e-12, nan_ok=True)

    @pytest.mark.parametrize("name", NAMES)
    def test_row_order_does_not_matter(self, name):
        """Shuffling the rows changes nothing when ties are averaged."""
        score, grade, query = random_rows(3, tied=True)
        shuffled = np.random.default_rng(0).permutation(len(query))
        name = f"{name}@7"
        first = evaluate(score, grade, query, metrics=[name])
        second = evaluate(score[shuffled], grade[shuffled], query[shuffled], metrics=[name])
        assert second.mean[name] == pytest.approx(first.mean[name], abs=1e-12)


class TestParity:
    """The same numbers as the libraries people trust."""

    @pytest.mark.parametrize("tied", [False, True])
    @pytest.mark.parametrize("k", [1, 5, 10, None])
    @pytest.mark.parametrize("name", ["ndcg", "ndcg-linear"])
    def test_scikit_learn(self, name, k, tied):
        """NDCG equals scikit-learn's ndcg_score to 1e-10, with ties and without."""
        from sklearn.metrics import ndcg_score

        score, grade, query = random_rows(5, tied=tied)
        metric = name if k is None else f"{name}@{k}"
        found = evaluate(score, grade, query, metrics=[metric], empty=0).per_query[metric]
        gains = 2.0**grade - 1 if name == "ndcg" else grade
        checked = 0
        for q, value in enumerate(found):
            rows = query == q
            if rows.sum() > 1:  # scikit-learn refuses a list of one
                theirs = ndcg_score([gains[rows]], [score[rows]], k=k)
                assert value == pytest.approx(theirs, abs=1e-10)
                checked += 1
        assert checked > 40

    @pytest.mark.parametrize("tied", [False, True])
    @pytest.mark.parametrize(
        ("ours", "theirs"),
        [
            ("ndcg-linear", "ndcg"),
            ("ndcg-linear@5", "ndcg_cut_5"),
            ("ndcg-linear@10", "ndcg_cut_10"),
            ("map", "map"),
            ("map@5", "map_cut_5"),
            ("mrr", "recip_rank"),
            ("precision@5", "P_5"),
        ],
    )
    def test_trec_eval(self, ours, theirs, tied):
        """Linear NDCG, MAP, MRR and precision equal trec_eval's to 1e-10.

        trec_eval orders ties by descending document name, so the rows are named in that order and
        ties are stable.
        """
        import pytrec_eval

        score, grade, query = random_rows(6, tied=tied)
        found = evaluate(score, grade, query, metrics=[ours], ties="stable").per_query[ours]
        name = [f"d{len(query) - row:06d}" for row in range(len(query))]
        qrel, run = {}, {}
        for row, q in enumerate(query.tolist()):
            qrel.setdefault(str(q), {})[name[row]] = int(grade[row])
            run.setdefault(str(q), {})[name[row]] = float(score[row])
        family = "_".join(theirs.split("_")[:-1]) if theirs[-1].isdigit() else theirs
        asked = {f"{family}.{theirs.split('_')[-1]}" if theirs[-1].isdigit() else theirs}
        result = pytrec_eval.RelevanceEvaluator(qrel, asked).evaluate(run)
        with_relevant = [q for q in range(len(found)) if grade[query == q].any()]
        assert len(with_relevant) > 50
        for q in with_relevant:
            assert found[q] == pytest.approx(result[str(q)][theirs], abs=1e-10)


class TestEmptyQueries:
    """Queries without a relevant document."""

    @pytest.mark.parametrize("name", [f"{name}@3" for name in NAMES])
    def test_left_out_or_counted(self, name):
        """Such a query is NaN and outside the mean, unless an option counts it as 0 or 1."""
        score, grade, query = [2, 1, 2, 1], [1, 1, 0, 0], [0, 0, 1, 1]
        skipped = evaluate(score, grade, query, metrics=[name])
        alone = skipped.per_query[name][0]
        assert np.isnan(skipped.per_query[name][1])
        assert skipped.mean[name] == alone
        assert skipped.n_queries[name] == 1
        for counted in (0, 1):
            found = evaluate(score, grade, query, metrics=[name], empty=counted)
            assert found.mean[name] == pytest.approx((alone + counted) / 2)

    def test_no_query_counts(self):
        """When no query has a relevant row the mean is NaN, without a warning."""
        assert np.isnan(one("map", [1, 2], [0, 0]))


class TestErrors:
    """What is refused, and how."""

    def test_nan_score(self):
        """A NaN score is an error that names the row."""
        with pytest.raises(DataError, match=r"score must be finite: row 2 has nan"):
            one("map", [1.0, np.nan], [0, 1])

    def test_infinite_relevance(self):
        """An infinite grade is an error too."""
        with pytest.raises(DataError, match=r"relevance must be finite: row 1 has inf"):
            one("map", [1.0, 2.0], [np.inf, 1])

    def test_negative_relevance(self):
        """A negative grade is refused."""
        with pytest.raises(DataError, match="relevance must be 0 or higher: row 2 has -1"):
            one("map", [1.0, 2.0], [0, -1])

    def test_grade_above_maximum(self):
        """ERR refuses a grade above max_grade; NDCG has no maximum."""
        with pytest.raises(DataError, match=r"at most max_grade=4 for ERR: row 2 has 5"):
            one("err@10", [1.0, 2.0], [0, 5])
        assert one("ndcg@10", [1.0, 2.0], [0, 5]) == 1.0

    def test_lengths(self):
        """Columns of different lengths are refused."""
        with pytest.raises(DataError, match="score has 3 rows, but query has 2"):
            evaluate([1, 2, 3], [0, 1], [1, 1])

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("ndgc@10", "metric 'ndgc@10' is not known"),
            ("ndcg@0", "cut at 0"),
            ("ndcg@-1", "is not known"),
            ("precision", "needs a cut"),
        ],
    )
    def test_names(self, name, message):
        """A metric that does not exist is refused with the list of those that do."""
        with pytest.raises(UsageError, match=message):
            parse_metric(name)

    def test_one_parser_for_labels_and_clicks(self):
        """Both sides read names alike, and each lists only what it can measure."""
        assert parse_metric("ndcg@10") == parse_metric("ndcg@10", FROM_CLICKS)
        assert parse_metric("click@1", FROM_CLICKS) == (METRICS["click"], 1)
        with pytest.raises(UsageError, match="choose among ndcg, ndcg-linear, map, mrr, err, pre"):
            parse_metric("click@1")
        with pytest.raises(UsageError, match="choose among dcg, ndcg, click, with a cut"):
            parse_metric("map@10", FROM_CLICKS)
        with pytest.raises(UsageError, match="metric 'ndcg' needs a cut"):
            parse_metric("ndcg", FROM_CLICKS)
        with pytest.raises(UsageError, match="is not known"):
            parse_metric("ndcg@999999999999999999999")

    @pytest.mark.parametrize(
        ("option", "message"),
        [
            ({"ties": "random"}, "ties must be one of"),
            ({"empty": 2}, "empty must be"),
            ({"empty": True}, "empty must be"),
            ({"relevant_from": 0}, "relevant_from must be above 0"),
            ({"metrics": "map"}, "metrics must be a list"),
            ({"metrics": []}, "metrics must be a list"),
        ],
    )
    def test_options(self, option, message):
        """An option with a value that makes no sense is refused."""
        with pytest.raises(UsageError, match=message):
            evaluate([1], [1], [1], **option)

    def test_no_rows(self):
        """No row at all is an error."""
        with pytest.raises(DataError, match="at least one row"):
            evaluate([], [], [])


class TestAverageRank:
    """The average rank per original position."""

    def test_by_hand(self):
        """Two lists, one kept and one reversed: positions 1 and 2 land at rank 1.5 on average."""
        found = average_rank([2, 1, 1, 2], [1, 2, 1, 2], [0, 0, 1, 1])
        assert found.tolist() == [1.5, 1.5]

    def test_ties_share_the_mean_rank(self):
        """Tied rows share the mean of their ranks."""
        assert average_rank([1, 1, 0], [1, 2, 3], [0, 0, 0]).tolist() == [1.5, 1.5, 3.0]

    def test_gap(self):
        """A position that never occurs has no average."""
        found = average_rank([1, 0], [1, 3], [0, 0])
        assert np.isnan(found[1])
        assert found[[0, 2]].tolist() == [1.0, 2.0]

    def test_position_from_one(self):
        """Position 0 is refused."""
        with pytest.raises(DataError, match="whole number from 1, got 0"):
            average_rank([1, 0], [0, 1], [0, 0])


def test_a_chart_of_one_query_and_of_two():
    """The dots of a chart have intervals as soon as there are two queries to resample."""
    one = evaluate([2.0, 1.0], [0, 1], [1, 1], metrics=["mrr"]).plot().dots[0]
    assert (one.low, one.value, one.high) == (0.5, 0.5, 0.5)
    two = evaluate([2.0, 1.0, 1.0, 2.0], [0, 1, 0, 1], [1, 1, 2, 2], metrics=["mrr"])
    dot = two.plot().dots[0]
    assert dot.low < dot.value < dot.high
    assert dot.look == one.look == 0


@pytest.mark.parametrize("grade", [0, -1, 1001, 5000])
def test_the_highest_grade_is_one_whose_gain_is_finite(grade):
    """A scale of grades that has no gains is refused before anything is computed."""
    with pytest.raises(UsageError, match=rf"max_grade must be in \[1, 1000\], got {grade}"):
        evaluate([1.0, 2.0], [0, 1], [1, 1], metrics=["err@10"], max_grade=grade)
    found = evaluate([1.0, 2.0], [0, 1], [1, 1], metrics=["err@10"], max_grade=1)
    assert found.mean["err@10"] == 0.5


@pytest.mark.parametrize("name", ["ndcg", "map", "mrr", "precision@1"])
def test_queries_do_not_tie_with_each_other(name):
    """The lowest score of a query and the highest of the next may be equal: each is on its own."""
    first, second = ([3.0, 1.0], [0, 2]), ([1.0, 0.0], [0, 1])
    both = evaluate([*first[0], *second[0]], [*first[1], *second[1]], [0, 0, 1, 1], metrics=[name])
    assert both.per_query[name].tolist() == [one(name, *first), one(name, *second)]


def test_labels_bring_their_queries():
    """Labelled data has queries of its own; those that are given go before them."""
    score, relevance = [2.0, 1.0, 1.0, 2.0], np.array([0.0, 1.0, 0.0, 1.0])
    features, query = Features(np.zeros((4, 0)), ()), np.array([1, 1, 2, 2])
    labels = LabelledData(features, relevance, query, np.arange(4))
    assert evaluate(score, labels, metrics=["mrr"]).per_query["mrr"].tolist() == [0.5, 1.0]
    found = evaluate(score, labels, [7, 7, 5, 5], metrics=["mrr"])
    assert dict(zip(found.queries.tolist(), found.per_query["mrr"].tolist(), strict=True)) == {
        7: 0.5, 5: 1.0
    }  # fmt: skip


def test_average_precision_of_ties_by_hand():
    """Two relevant rows that tie have precision 1; with a third row it is the mean of three orders."""
    assert one("map", [1.0, 1.0], [1, 1]) == pytest.approx(1.0)
    orders = [(1 + 1) / 2, (1 + 2 / 3) / 2, (1 / 2 + 2 / 3) / 2]
    assert one("map", [1.0, 1.0, 1.0], [1, 0, 1]) == pytest.approx(sum(orders) / 3)
    assert one("map", [2.0, 1.0, 1.0], [0, 1, 1]) == pytest.approx((1 / 2 + 2 / 3) / 2)
