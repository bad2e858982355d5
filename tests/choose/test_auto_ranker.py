"""AutoRanker and `unskew.fit`: what is chosen, what is kept, and what is refused."""

from __future__ import annotations

import json
import re
import time

import numpy as np
import pytest

import unskew
from logs import random_log
from shown import Shown, log_of
from unskew.choose.candidates import blind
from unskew.choose.ranker import AutoRanker
from unskew.choose.search import Search
from unskew.errors import DataError, StoreError, UsageError
from unskew.rankers.training import TrainingRound

QUIET = {"random_state": 0, "n_jobs": 1, "verbose": 0}


@pytest.fixture(scope="module")
def log():
    """Clicks that follow the features, and the position ever more weakly."""
    return random_log(0, n_queries=30, sessions_per_query=20)


@pytest.fixture(scope="module")
def fitted(log):
    """The whole search."""
    return unskew.fit(log, **QUIET)


@pytest.fixture(scope="module")
def short(log):
    """A search of few trials."""
    return unskew.fit(log, trials=4, **QUIET)


@pytest.fixture(scope="module", params=["lightgbm", "xgboost"])
def model(request, log, short):
    """A search of few trials with each booster."""
    if request.param == "lightgbm":
        return short
    return unskew.fit(log, trials=2, booster=request.param, **QUIET)


class TestWhatIsChosen:
    """The model and the record of how it came about."""

    def test_the_choice_tells_everything(self, fitted):
        """Every part was tried or left out for a reason; weights add up to 1, choices are explained."""
        choice = fitted.choice_
        parts = {trial["part"] for trial in choice.trials}
        assert parts == {"blind", "debiased", "finish", "raw", "pairwise"}
        assert sum(choice.weights.values()) == pytest.approx(1.0)
        assert 0 <= choice.trust <= 1
        models = [t["settings"]["click_model"] for t in choice.trials if t["part"] == "debiased"]
        assert {"pbm", "ubm", "cascade", "trust"} <= set(models)
        reasons = " ".join(choice.reasons)
        assert re.search(r"larger trees were left out: .* likelier by \d+ in all", reasons)
        assert "it explains the clicks of held-out queries best" in reasons
        assert "both halves correlate by" in reasons
        told = r"tell \d+% of the logged order, and .* DCG of held-out queries by [+-]\d+\.\d% ± \d"
        assert re.search(told, reasons)
        assert "doubly robust DCG of held-out queries" in reasons
        assert "Pairwise Debiasing is" in reasons
        shown = str(choice)
        assert f"chosen: {choice.winner}" in shown
        assert all(trial["title"] in shown for trial in choice.trials)

    def test_a_compacted_folder_is_the_log(self, log, short, tmp_path):
        """The path of saved Impressions gives the model of the Impressions."""
        log.save(tmp_path / "log")
        again = unskew.fit(tmp_path / "log", trials=4, **QUIET)
        assert again.predict(log.features.values).tolist() == (
            short.predict(log.features.values).tolist()
        )

    def test_every_fold_has_both_halves(self, fitted):
        """Each half is as many models as there are folds, each judged on other queries."""
        folds = {
            part: sorted({t["fold"] for t in fitted.choice_.trials if t["part"] == part})
            for part in ("blind", "debiased", "raw")
        }
        assert all(found == [0, 1, 2, 3, 4] for found in folds.values())

    def test_larger_trees_where_clicks_tell_enough(self, log, monkeypatch):
        """Every fold has a model of more leaves, drawn apart, and the reasons name both sizes."""
        monkeypatch.setattr("unskew.choose.search.ENOUGH_FOR_LARGER", 0.0)
        choice = unskew.fit(log, **QUIET).choice_
        larger = [t for t in choice.trials if t["part"] == "larger"]
        assert [t["fold"] for t in larger] == [0, 1, 2, 3, 4]
        small = {t["settings"]["num_leaves"] for t in choice.trials if t["part"] == "debiased"}
        (leaves,) = {t["settings"]["num_leaves"] for t in larger}
        assert len(small) == 1
        assert leaves > max(small)
        assert choice.weights["larger"] == pytest.approx(choice.weights["debiased"])
        assert f"with trees of {max(small)} and {leaves} leaves" in " ".join(choice.reasons)

    def test_one_click_a_session(self, log):
        """Models that learn from what follows a click are left out; the others are tried."""
        once = log.take_patterns(np.flatnonzero(np.diff(log.patterns.offsets) < 2))
        ranker = unskew.fit(once, trials=6, **QUIET)
        parts = [t for t in ranker.choice_.trials if t["part"] == "debiased"]
        assert {t["settings"]["click_model"] for t in parts} == {"pbm", "ubm", "trust"}

    def test_the_scores_rank_by_what_was_clicked_for(self, fitted):
        """The first two features made the clicks: the scores follow them."""
        rng = np.random.default_rng(5)
        values = rng.normal(size=(500, 5))
        score = fitted.predict(values)
        order = [abs(np.corrcoef(score, values[:, k])[0, 1]) for k in range(5)]
        assert max(order) > 0.5

    def test_relevance_is_calibrated(self, fitted, log):
        """By click model and relevance there are as many clicks as the log has."""
        likelihood = fitted.click_model_.on(log)
        expected = likelihood.predict(fitted.predict_relevance(log))
        clicks = (expected.mass * expected.conditional).sum()
        assert clicks == pytest.approx(log.n_clicks, rel=0.1)

    def test_the_same_seed_gives_the_same_model(self, log, short):
        """Folds and candidates depend on the seed alone."""
        again = unskew.fit(log, trials=4, **QUIET)
        np.testing.assert_array_equal(again.predict(log), short.predict(log))

    def test_without_a_debiased_half(self, log):
        """debias=None ignores positions and says so."""
        ranker = unskew.fit(log, debias=None, **QUIET)
        assert ranker.choice_.weights == pytest.approx({"blind": 0.5, "raw": 0.5})
        assert ranker.choice_.trust == 0
        assert "positions are ignored" in ranker.choice_.reasons[0]
        np.testing.assert_array_equal(ranker.t_plus_, 1.0)

    def test_an_examination_that_is_given(self, log):
        """It is held by the debiased half, and the model says it."""
        curve = 1.0 / np.arange(1, log.max_position + 1)
        ranker = unskew.fit(log, debias=curve, trials=8, **QUIET)
        np.testing.assert_allclose(ranker.t_plus_, curve)


class TestLikeAnyOther:
    """It predicts, ranks, explains, continues, saves, loads and exports."""

    def test_saving_and_loading(self, model, log, tmp_path):
        """Scores, choice and click model come back from the folder."""
        model.save(tmp_path / "model")
        again = unskew.load(tmp_path / "model")
        assert type(again) is AutoRanker
        np.testing.assert_array_equal(again.predict(log), model.predict(log))
        np.testing.assert_array_equal(again.predict_relevance(log), model.predict_relevance(log))
        assert again.choice_.to_dict() == model.choice_.to_dict()
        assert again.position_bias_.equals(model.position_bias_)
        assert len(again.bias_history_) == len(model.bias_history_) > 0

    def test_a_choice_that_is_none_is_refused(self, short, tmp_path):
        """A folder whose choice names an unknown part is no model."""
        broken = short.choice_.to_dict() | {"weights": {"luck": 1.0}}
        with pytest.raises(ValueError, match="choice has an unknown part"):
            type(short.choice_).from_dict(broken)
        short.save(tmp_path / "model")
        file = tmp_path / "model" / "choice.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"choice": broken}))
        with pytest.raises(StoreError, match=r"choice\.json|unknown part"):
            unskew.load(tmp_path / "model")

    def test_explanations_add_up(self, model, log):
        """The contributions of the features and the baseline are the score."""
        found = model.explain(log.features)
        total = found.contributions.sum(axis=1) + found.baseline
        np.testing.assert_allclose(total, model.predict(log), atol=1e-4)

    def test_ranking_and_posterior(self, model, log):
        """Candidates are ranked, and clicks and features together judge documents."""
        ranking = model.rank(log.features.values[:6], query=[1, 1, 1, 2, 2, 2])
        assert len(ranking.score) == 6
        judged = model.posterior(log)
        assert len(judged) == len(log.documents)
        assert ((judged.relevance > 0) & (judged.relevance < 1)).all()

    def test_it_is_continued_on_new_clicks(self, short, tmp_path):
        """The trees grow on, from the folder too; nothing is chosen again."""
        more = random_log(9, n_queries=30, sessions_per_query=20)
        short.save(tmp_path / "model")
        again = AutoRanker(**QUIET).fit(more, init_model=tmp_path / "model")
        assert again.trees_.n_rounds >= short.trees_.n_rounds
        assert again.choice_.winner == short.choice_.winner
        other = unskew.UnbiasedLambdaMART(n_estimators=2, verbose=0).fit(more)
        with pytest.raises(UsageError, match="init_model must be an AutoRanker"):
            AutoRanker(**QUIET).fit(more, init_model=other)

    @pytest.mark.parametrize("to", ["elasticsearch", "solr", "vespa", "xgboost"])
    def test_it_is_exported(self, model, to, tmp_path):
        """As one sum of trees, and the exported model scores the same."""
        from unskew.export.exporting import check_export, export_model

        assert check_export(export_model(model, to, tmp_path / "out")).agrees


class TestTheBudget:
    """Trials, seconds, callbacks, Ctrl-C."""

    def test_trials(self, short):
        """No more trainings than allowed; what they found is the model, and it says why it ended."""
        assert len(short.choice_.trials) == 4
        assert "the budget ended the search after 4 trials" in short.choice_.reasons

    def test_one_trial(self, log):
        """A single training is the likelihood that ignores positions."""
        ranker = unskew.fit(log, trials=1, **QUIET)
        assert ranker.choice_.weights == {"blind": 1.0}

    def test_seconds(self):
        """The search ends about when it is told to, whatever a training takes."""
        large = random_log(1, n_queries=300, sessions_per_query=30)
        unskew.fit(large, trials=2, **QUIET)  # whatever is compiled once
        started = time.perf_counter()
        unskew.fit(large, **QUIET)
        whole = time.perf_counter() - started
        started = time.perf_counter()
        ranker = unskew.fit(large, seconds=0.4 * whole, **QUIET)
        assert time.perf_counter() - started < 0.8 * whole  # room for a busy machine
        assert "the budget ended the search" in " ".join(ranker.choice_.reasons)

    def test_a_large_log(self, log):
        """Of more documents than it may look at it takes those of some queries, and says so."""
        enough = unskew.fit(log, trials=2, most_documents=len(log.documents), **QUIET)
        assert "drawn at random" not in " ".join(enough.choice_.reasons)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("unskew.choose.splits.FEWEST_QUERIES", 5)
            part = unskew.fit(log, trials=2, most_documents=150, **QUIET)
            again = unskew.fit(log, trials=2, most_documents=150, **QUIET)
        said = rf"learned from 15 queries drawn at random of {log.n_queries}: with all of them"
        assert re.search(said, " ".join(part.choice_.reasons))
        np.testing.assert_array_equal(part.predict(log.features), again.predict(log.features))
        assert not np.allclose(part.predict(log.features), enough.predict(log.features))

    def test_a_budget_for_nothing(self, log):
        """Too few seconds for one training is an error that says so."""
        with pytest.raises(UsageError, match=r"seconds=1e-06 is too little for a single trial"):
            unskew.fit(log, seconds=1e-6, **QUIET)

    def test_callbacks_see_every_trial_and_may_end_the_search(self, log):
        """They get the number, the bias and the held-out likelihood."""
        seen: list[TrainingRound] = []

        def third(now):
            seen.append(now)
            return now.number == 3

        ranker = AutoRanker(**QUIET).fit(log, callbacks=[third])
        assert [now.number for now in seen] == [1, 2, 3]
        assert seen[0].metric[0] == "log-likelihood"
        assert len(ranker.choice_.trials) == 3
        assert ranker.validation_history_ == [now.metric[1] for now in seen]

    def test_ctrl_c_keeps_what_was_found(self, log):
        """After three trials, in the middle of the fourth: the model of three, with a warning."""
        three = AutoRanker(trials=3, **QUIET).fit(log)
        with pytest.warns(UserWarning, match="the 3 trials that were complete"):
            ranker = _interrupted_in_trial(4).fit(log)
        np.testing.assert_array_equal(ranker.predict(log), three.predict(log))
        assert ranker.interrupted_
        assert "the search was interrupted after 3 trials" in ranker.choice_.reasons

    def test_ctrl_c_before_anything_was_found(self, log):
        """Nothing is kept, and nothing pretends to be a model."""
        ranker = _interrupted_in_trial(1)
        with pytest.raises(KeyboardInterrupt):
            ranker.fit(log)
        assert not hasattr(ranker, "position_bias_")


def _interrupted_in_trial(number):
    """A ranker whose user presses Ctrl-C in the second round of that trial."""

    class Impatient(AutoRanker):
        def _watched(self, search):
            over = search.budget.over

            def pressed(seen):
                if search.budget.done == number and seen.number == 2:
                    raise KeyboardInterrupt
                return over(seen)

            search.budget.over = pressed

    return Impatient(**QUIET)


class TestWhatIsRefused:
    """A clear answer, never a model that silently ranks by noise."""

    def test_no_click(self):
        """There is nothing to learn from."""
        data = log_of(Shown("abc", (), 30), Shown("bca", (), 5))
        with pytest.raises(DataError, match="the log has no features"):
            unskew.fit(data, **QUIET)
        silent = random_log(0, n_queries=4, sessions_per_query=5)
        silent = silent.take_patterns(np.flatnonzero(np.diff(silent.patterns.offsets) == 0))
        with pytest.raises(DataError, match="the log has no click: there is nothing to learn from"):
            unskew.fit(silent, **QUIET)

    @pytest.mark.parametrize("sessions", [1, 50])
    def test_one_query(self, sessions):
        """Nothing is left to judge by, be it one session or many."""
        data = random_log(0, n_queries=1, sessions_per_query=sessions)
        with pytest.raises(
            DataError, match=r"the log has 1 query with a click.*--ranker lambdamart"
        ):
            unskew.fit(data, **QUIET)

    def test_noise(self):
        """Features that say nothing about clicks give a warning that the ranking is chance."""
        rng = np.random.default_rng(0)
        n = 40 * 10 * 3
        data = unskew.Impressions.from_arrays(
            rng.normal(size=(n, 2)), rng.random(n) < 0.3, session=np.repeat(np.arange(120), 10),
            query=np.repeat(np.arange(40), 30), position=np.tile(np.arange(1, 11), 120),
        )  # fmt: skip
        with pytest.warns(UserWarning, match="no more than chance, and so is this ranking"):
            unskew.fit(data, trials=2, **QUIET)

    def test_labels_and_validation(self, log):
        """Labels need no choice, and held-out data is the ranker's own business."""
        with pytest.raises(UsageError, match="labels have no bias: train UnbiasedLambdaMART"):
            AutoRanker(**QUIET).fit_labels(log)
        with pytest.raises(UsageError, match="holds out queries by itself"):
            AutoRanker(**QUIET).fit(log, validation=log)

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"trials": 0}, "trials must be a whole number, 1 or higher, got 0"),
            ({"most_documents": 0}, "most_documents must be a whole number, 1 or higher, got 0"),
            ({"seconds": -1}, "seconds must be a number above 0, or None, got -1"),
            ({"booster": "catboost"}, "booster must be one of"),
            ({"debias": "pairwise"}, "not with auto"),
        ],
    )
    def test_settings(self, log, settings, message):
        """Each by its name."""
        with pytest.raises(UsageError, match=message):
            unskew.fit(log, **{**QUIET, **settings})
        with pytest.raises(UsageError, match="has no setting 'num_leaves'"):
            AutoRanker().set_params(num_leaves=3)


def test_a_large_log_is_explored_on_a_part(monkeypatch):
    """Click models are compared on some of the queries, the others are trained on all."""
    log = random_log(0, n_queries=30, sessions_per_query=10)
    monkeypatch.setattr("unskew.choose.search.EXPLORED", 100)
    monkeypatch.setattr("unskew.choose.splits.FEWEST_QUERIES", 5)
    sizes = {}

    class Watched(Search):
        def _run_trial(self, candidate, number, fold, fitted, **options):
            sizes.setdefault(candidate.part, []).append(len(fold.training.documents))
            return super()._run_trial(candidate, number, fold, fitted, **options)

    monkeypatch.setattr("unskew.choose.ranker.Search", Watched)
    ranker = unskew.fit(log, **QUIET)
    assert min(sizes["debiased"]) < 0.6 * len(log.documents)
    assert sizes["debiased"][-5:] == [len(log.documents)] * 5
    assert set(sizes["blind"]) == {len(log.documents)}
    assert ranker.choice_.weights
    assert blind(4).title == "click likelihood, position ignored"
