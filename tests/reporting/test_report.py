"""The report: the answer first, every question answered, nothing from elsewhere, clear errors."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from reporting_world import HOSTILE

import unskew
from unskew.errors import DataError, UsageError
from unskew.evaluation.log_evaluation import LOGGED
from unskew.evaluation.significance import holm
from unskew.log.inspection import FoundProblem, inspect_impressions
from unskew.position_bias import PositionBias
from unskew.reporting.answer import UNSURE, answer_html, first_click_ratio
from unskew.reporting.models import named_models
from unskew.reporting.page import Section, page, paragraph, table
from unskew.reporting.report import report

SECTIONS = [
    "Every model by the clicks", "Every model on labels", "Queries won and lost", "Where results go",
    "Exposure and popularity", "What the log holds", "Clicks by position", "Position bias",
    "Which features matter", "Settings and versions",
]  # fmt: skip


def quick(models, log, *arguments, **options):
    """A report without bootstraps."""
    options = {"methods": ["relative-ctr"], "n_resamples": 0, **options}
    return report(models, log, *arguments, **options)


class TestPage:
    """The HTML around everything."""

    def test_self_contained(self):
        """Nothing is loaded from anywhere, and the browser is told to allow nothing else."""
        html = page("T", "lead", [Section("S", paragraph("x"))])
        assert not re.search(r'(src|href)="(?!#)|@import|url\((?!#)', html)
        assert "default-src 'none'" in html
        assert html.startswith("<!DOCTYPE html>")

    def test_text_is_escaped(self):
        """Names with angle brackets stay text."""
        html = page("a<b", "x & y", [Section("<s>", paragraph("<p>") + table(["<h>"], [["<c>"]]))])
        assert "<s>" not in html
        assert "a&lt;b" in html
        assert "&lt;c&gt;" in html

    def test_small_print(self):
        """What follows a line break in a cell is small print, and numbers are set to the right."""
        assert '<td class="n">1<br><small>0 to 2</small></td>' in table(["a"], [["1\n0 to 2"]])
        assert "<td>one</td>" in table(["a"], [["one"]])


class TestAnswer:
    """Is it better, by how much, how sure, what next."""

    def test_it_comes_first(self, made):
        """The verdict stands above the list of contents, with the numbers of the findings."""
        top = made.html[: made.html.index('<nav class="contents"')]
        best = made.answer.best
        assert f"{best.relative:+.1%}" in top
        assert f"{best.low:+.1%} to {best.high:+.1%}" in top
        assert "What next" in top
        assert best.model in top

    def test_the_change_is_the_paired_difference(self, made):
        """The change is the doubly robust difference from the logged order, relative to that."""
        judged, best = made.findings.judged, made.answer.best
        live = judged.estimates[LOGGED]["dr"][best.metric].value
        (one,) = (
            d for d in judged.differences
            if (d.a, d.b, d.metric, d.estimator) == (best.model, LOGGED, best.metric, "dr")
        )  # fmt: skip
        assert best.relative == pytest.approx(one.difference / live)
        assert best.low == pytest.approx(one.interval.low / live)
        assert best.relative == max(change.relative for change in made.answer.changes)

    @pytest.mark.parametrize(
        ("change", "p", "clicks", "words", "sure"),
        [
            ((0.01, 0.03, 0.05), 0.003, 900.0, "is better than what is live", "sure at the 95%"),
            ((-0.05, -0.03, -0.01), 0.003, 900.0, "is worse than what is live", "sure at the 95%"),
            (
                (-0.01, 0.02, 0.05),
                0.2,
                900.0,
                "cannot be told from what",
                "the interval holds zero",
            ),
            ((0.01, 0.03, 0.05), 0.07, 900.0, "cannot be told from what", "corrected for 2 models"),
            ((0.01, 0.03, 0.05), 0.003, 9.0, "cannot be told from what", "too few clicks"),
        ],
    )
    def test_verdicts(self, made, change, p, clicks, words, sure):
        """The p-value decides, corrected for the number of models; few clicks decide nothing."""
        low, relative, high = change
        best = replace(
            made.answer.best, low=low, relative=relative, high=high, clicks=clicks, p_value=p
        )
        assert words in replace(made.answer, best=best).sentence
        shown = answer_html(replace(made.answer, best=best))
        assert words in shown
        assert sure in shown

    def test_p_values_are_corrected_by_family(self, made):
        """Holm's correction is over the models against what is live, and over pairs of models apart."""
        judged = made.findings.judged
        for metric in made.findings.metrics:
            pairs = [one for one in judged.differences if one.metric == metric]
            live = [one for one in pairs if one.b == LOGGED]
            assert len(pairs) == 3
            assert [one.p_corrected for one in live] == holm([one.p_value for one in live])
            (models,) = (one for one in pairs if one.b != LOGGED)
            assert models.p_corrected == models.p_value
        assert "debiased − raw" in made.html

    def test_the_answer_knows_how_uncertain_the_bias_is(self, world, made):
        """A bias measured on the log widens the interval; a given one is taken for known, as is said."""
        assert made.findings.judged.n_resamples == 20
        assert "takes the bias for known" not in made.html[: made.html.index("<nav")]
        bias = made.findings.curves.bias
        given = quick(world.models, world.log, bias=bias)
        assert given.findings.judged.n_resamples == 0
        assert "takes the bias for known" in given.html[: given.html.index("<nav")]
        one, other = made.answer.best, given.answer.best
        assert other.relative == pytest.approx(one.relative)
        assert one.high - one.low > other.high - other.low

    def test_the_same_order_is_no_better(self, world):
        """A model that repeats the logged order cannot be told from it."""
        one_list = world.table.filter(pc.equal(world.table["context"], "desktop"))
        log = unskew.read_log(one_list, features=world.features)
        position = np.zeros(len(log.documents))
        position[log.pages.document] = log.pages.position
        logged = SimpleNamespace(
            predict=lambda features: -position, position_bias_=PositionBias.none(10),
            feature_names_=log.features.names, categories_={},
        )  # fmt: skip
        found = quick({"same": logged}, log)
        assert found.answer.best.verdict == UNSURE
        assert found.answer.best.relative == pytest.approx(0, abs=1e-9)

    def test_the_order_of_models_does_not_matter(self, world, made):
        """Swapping the models changes no estimate: all are judged by one stated bias."""
        turned = report(dict(reversed(world.models.items())), world.log, world.test, n_resamples=20)
        assert turned.findings.curves.chosen == made.findings.curves.chosen
        for name in world.models:
            for metric in made.findings.metrics:
                one, other = (
                    found.findings.judged.estimates[name]["dr"][metric].value
                    for found in (made, turned)
                )
                assert one == pytest.approx(other)

    def test_first_click_ratio(self):
        """Sessions whose first click is at position k or above, over all sessions."""
        data = unskew.Impressions.from_arrays(
            None, [0, 1, 1, 1, 0, 0], session=[1, 1, 2, 2, 3, 3], query=[1] * 6, doc=[1, 2] * 3,
            position=[1, 2] * 3,
        )  # fmt: skip
        assert first_click_ratio(data, 1) == pytest.approx(1 / 3)
        assert first_click_ratio(data, 2) == pytest.approx(2 / 3)


class TestSections:
    """Everything else."""

    def test_every_question_has_a_section(self, made):
        """The sections are all there, in order, each found by the list of contents."""
        found = re.findall(r"<h2>(.*?)</h2>", made.html)
        assert found == SECTIONS
        for anchor in re.findall(r'href="#([\w-]+)"', made.html):
            assert f'id="{anchor}"' in made.html

    def test_the_numbers_are_those_of_the_log(self, world, made):
        """Sizes, CTRs with intervals, and the clicks of every context are on the page."""
        for number in (world.log.n_sessions, world.log.n_queries, world.log.n_clicks):
            assert f"{number:,}" in made.html
        assert "CTR by position and context" in made.html
        assert "desktop (1,500 sessions)" in made.html

    def test_bias_by_method_and_by_round(self, made):
        """There are curves of several methods with intervals, and the path of what was learned."""
        fitted = {one.method for one in made.findings.curves.outcomes if one.bias is not None}
        assert {"harvesting", "table-em", "relative-ctr"} <= fitted
        assert made.findings.curves.chosen == "harvesting"
        assert "Position bias by method" in made.html
        assert "debiased: t_plus over the rounds" in made.html
        assert "raw: t_plus over the rounds" not in made.html

    def test_metrics_of_every_model(self, world, made):
        """Means with intervals on labels and from clicks, and paired differences."""
        for name, evaluation in made.findings.labels.evaluations.items():
            assert f"{evaluation.mean['ndcg@10']:.4f}" in made.html
            wanted = unskew.evaluate(world.models[name].predict(world.test.features), world.test)
            assert evaluation.mean["ndcg@10"] == pytest.approx(wanted.mean["ndcg@10"])
        assert "debiased − raw" in made.html
        assert "debiased − logged order" in made.html

    def test_examples_show_documents(self, world, made):
        """Won and lost queries stand with their lists and why a result moved."""
        assert re.search(r"<h4>\d+: \+\d+% expected clicks</h4>", made.html)
        assert re.search(r"Why \S+ rose from \d+ to \d+", made.html)

    def test_what_was_tried(self, world):
        """A model that carries its choice shows the winner, the reasons and every trial."""
        model = world.models["raw"]
        trials = ({"title": "cascade <model>", "leaves": 15, "held_out": -0.51234567},)
        model.choice_ = SimpleNamespace(winner="pbm", reasons=["it won"], trials=trials, blends=())
        try:
            html = quick({"raw": model}, world.log).html
        finally:
            del model.choice_
        for text in (
            "What was tried",
            "Chosen: pbm.",
            "it won",
            "cascade &lt;model&gt;",
            "-0.5123",
        ):
            assert text in html

    def test_problems_are_told(self, world):
        """What is wrong with a log stands on the page and in the warnings of the answer."""
        seen = replace(
            inspect_impressions(world.log, "clicks.csv"), left_out=3,
            problems=[FoundProblem("two_queries", 3, "row 7 has <two> queries")],
        )  # fmt: skip
        html = quick(world.models, world.log, inspection=seen).html
        assert "two queries (3): row 7 has &lt;two&gt; queries" in html
        assert "3 sessions were left out" in html

    def test_a_given_bias_judges(self, world):
        """A bias that is given is what all rankings are judged by, and it is drawn."""
        given = PositionBias.from_propensities(1 / np.arange(1, 11))
        found = quick(world.models, world.log, bias=given).findings
        assert found.judged.propensity == pytest.approx(given.t_plus)
        shown = quick(world.models, world.log, curves={"the truth": given})
        assert shown.findings.curves.chosen != "the truth"
        assert "the truth" in shown.html

    def test_settings_and_versions(self, made):
        """Every setting of every model and the versions are there."""
        assert "min_sum_hessian_in_leaf" in made.html
        assert unskew.__version__ in made.html

    def test_same_input_same_page(self, world):
        """The page repeats itself."""
        assert quick(world.models, world.log).html == quick(world.models, world.log).html

    def test_a_large_log_is_sampled(self, world):
        """Whole queries are drawn for what needs scores, and the page says so."""
        found = quick(world.models, world.log, most_documents=300)
        assert found.findings.sample.data.n_queries < world.log.n_queries
        assert "drawn at random" in found.html
        assert found.findings.inspection.sessions == world.log.n_sessions

    def test_hostile_names(self, world):
        """Queries, documents, contexts and models with markup in their names stay text."""
        table = world.table
        for name in ("query", "doc"):
            texts = pa.array([f"{HOSTILE}{one}" for one in table[name].to_pylist()])
            table = table.set_column(table.schema.get_field_index(name), name, texts)
        features = world.features
        for name in ("query", "doc"):
            texts = pa.array([f"{HOSTILE}{one}" for one in features[name].to_pylist()])
            features = features.set_column(features.schema.get_field_index(name), name, texts)
        log = unskew.read_log(table, features=features)
        html = quick({HOSTILE: world.models["raw"]}, log, title=HOSTILE).html
        assert "<script>window.taken" not in html
        assert "<img" not in html

    @pytest.mark.parametrize("kind", ["PropensityRankSVM", "ClickModelRanker"])
    def test_other_rankers(self, world, kind):
        """A ranker of any kind can be reported on."""
        options = {"n_estimators": 5} if kind == "ClickModelRanker" else {}
        model = getattr(unskew, kind)(verbose=0, n_jobs=1, random_state=1, **options).fit(world.log)
        html = quick(model, world.log).html
        assert f"Features of {kind}" in html

    def test_no_second_model_no_labels(self, world):
        """One model and no labels are enough."""
        html = quick(world.models["raw"], world.log).html
        assert "Every model on labels" not in html

    def test_small(self, made):
        """The page stays far below two megabytes."""
        assert len(made.html.encode()) < 1_000_000


def odd_log(case):
    """A small log that is odd in one way."""
    rng = np.random.default_rng(3)
    queries, sessions, length = {"one query": (1, 30, 4), "one session": (1, 1, 3)}.get(
        case, (6, 60, 5)
    )
    length = {"one position": 1, "long lists": 60}.get(case, length)
    rows = []
    for session in range(sessions):
        query = int(rng.integers(queries))
        docs = query * 100 + rng.permutation(length + 3)[:length]
        places = np.arange(1, length + 1)
        if case == "gaps":
            places = np.sort(rng.permutation(3 * length)[:length]) + 1
        if case == "second pages":
            places += 40
        clicked = rng.random(length) < (0.9 if case == "one session" else 0.3)
        grade = rng.integers(1, 4, length) if case == "grades" else 1
        rows += [
            (session, query, int(d), int(k), int(c))
            for d, k, c in zip(docs, places, clicked * grade, strict=True)
        ]
    session, query, doc, position, click = map(np.array, zip(*rows, strict=True))
    features = np.stack([doc % 7, (doc * 13) % 11], axis=1).astype(float)
    if case == "versions":
        features[:, 1] += rng.integers(0, 2, len(doc))
    weight = (session % 2).astype(float) if case == "weights of zero" else None
    return unskew.Impressions.from_arrays(
        features, click, session=session, query=query, doc=doc, position=position, weight=weight
    )


ODD = [
    "plain", "one query", "one session", "one position", "long lists", "gaps", "second pages",
    "grades", "versions", "weights of zero",
]  # fmt: skip


@pytest.mark.parametrize("case", ODD)
def test_odd_logs(case):
    """A log that is small or odd is reported on, and no text on the page says nan."""
    model = unskew.UnbiasedLambdaMART(n_estimators=3, n_jobs=1, verbose=0).fit(odd_log("plain"))
    found = report(model, odd_log(case), n_resamples=0)
    assert not re.search(r"\bnan\b", found.html)
    assert found.answer.best.verdict in {"better", "worse", "unsure"}


class TestInputs:
    """What a report is given."""

    def test_folders(self, world, tmp_path):
        """Models, logs and labels may be paths; models are called as their folders are."""
        world.models["raw"].save(tmp_path / "model-a")
        world.log.save(tmp_path / "log")
        found = quick([tmp_path / "model-a"], tmp_path / "log", out=tmp_path / "r.html")
        assert list(found.findings.models) == ["model-a"]
        assert (tmp_path / "r.html").read_text(encoding="utf-8") == found.html

    def test_names(self, world):
        """Rankers of one kind are numbered."""
        models = list(world.models.values())
        assert list(named_models(models)) == ["UnbiasedLambdaMART", "UnbiasedLambdaMART 2"]

    def test_notebook(self, made):
        """A notebook shows the page in a frame, and the repr is the answer."""
        assert made._repr_html_().startswith("<iframe srcdoc=")
        assert made.answer.sentence in repr(made)

    def test_another_feature_set(self, world):
        """A model of other features is an error that names the model, the features and the log."""
        features = world.features.rename_columns(
            [f"other_{n}" if n not in ("query", "doc") else n for n in world.features.column_names]
        )
        log = unskew.read_log(world.table, features=features)
        with pytest.raises(DataError, match=r"model 'raw' was trained with the .*does not have"):
            quick(world.models, log)

    def test_no_features(self, world):
        """So is a log without features."""
        log = unskew.read_log(world.table)
        with pytest.raises(DataError, match="does not have: it has none"):
            quick(world.models, log)

    def test_no_model(self, world):
        """A report without a model is an error."""
        with pytest.raises(UsageError, match="a report needs a model"):
            report([], world.log)

    def test_not_a_model(self, world, tmp_path):
        """What is not a fitted ranker is refused."""
        with pytest.raises(UsageError, match="a model must be a fitted ranker"):
            report([3], world.log)
        with pytest.raises(UsageError, match="is not fitted"):
            report(unskew.UnbiasedLambdaMART(), world.log)
        world.log.save(tmp_path / "log")
        with pytest.raises(UsageError, match="is not a model"):
            report(tmp_path / "log", world.log)

    def test_no_clicks(self, world):
        """A log without a click cannot judge anything, and says so."""
        unclicked = np.flatnonzero(np.diff(world.log.patterns.offsets) == 0)
        with pytest.raises((DataError, UsageError), match=r"no click|no position bias"):
            quick(world.models, world.log.take_patterns(unclicked))

    def test_unknown_judge(self, world):
        """A curve that is not there cannot judge."""
        with pytest.raises(UsageError, match="judge_by must be one of relative-ctr, debiased"):
            quick(world.models, world.log, judge_by="nobody")
