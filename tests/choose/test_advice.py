"""`unskew.advise` on simulated logs whose truth is known, on bad ones, and on real ones."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pyarrow as pa
import pytest

import unskew
from logs import pairs_log
from unskew import simulate
from unskew.datasets.tables import features_table
from unskew.errors import UsageError
from unskew.log.impressions import Impressions

LABELS = unskew.datasets.make_search_dataset(n_queries=150, n_features=16, seed=4)


def log_of(policy, sessions, *, labels=LABELS, features=True, seed=1):
    """A log of position-based clicks, and the examination relative to the top."""
    log = simulate.sample(labels, policy=policy, sessions=sessions, seed=seed)
    table = features_table(labels) if features else None
    truth = simulate.true_propensities(log).relative
    return unskew.read_log(log, features=table, progress=False), truth


def ranked(labels=LABELS):
    """A ranker that knows a tenth of the labels, and never changes."""
    return simulate.rank_svm_policy(labels, share=0.1)


def advised(data, **options):
    """The advice, with few resamples."""
    return unskew.advise(data, **{"n_resamples": 20, "n_jobs": 1, **options})


def answers(found):
    """The answer to each purpose."""
    return {one.purpose: one.answer for one in found.uses}


def trust(found):
    """How far each estimator is trusted."""
    return {one.method: one.trust for one in found.estimators}


def test_documents_that_never_move_without_features():
    """Nothing tells the bias: no curve is given, and shuffling is advised with a number."""
    data, _ = log_of(ranked(), 4_000, features=False)
    found = advised(data)
    assert found.bias is None
    assert set(trust(found).values()) == {"unfit"}
    assert set(answers(found).values()) == {"no"}
    assert found.method.name == "none"
    assert any("Shuffle the lists of about" in one for one in found.remedies)


def test_shuffled_as_many_sessions_as_advised_measure_the_bias():
    """The number of shuffled sessions that is advised makes the bias known to within about 0.05."""
    data, truth = log_of(ranked(), 4_000, features=False)
    (remedy,) = [one for one in advised(data).remedies if "Shuffle" in one]
    needed = int(remedy.split("about ")[1].split(" sessions")[0].replace(",", ""))
    errors = []
    for seed in range(5):
        shuffled, _ = log_of(simulate.random_policy(LABELS), needed, features=False, seed=seed)
        found = unskew.bias.Randomization(check=False).fit(shuffled)
        errors.append(np.abs(found.t_plus - truth).max())
    assert np.median(errors) < 0.1


def test_documents_that_never_move_with_features():
    """Features can tell the bias, with care: the advice is to debias in part."""
    data, truth = log_of(ranked(), 6_000)
    found = advised(data)
    assert found.bias_method == "regression-em"
    assert trust(found)["regression-em"] == "fragile"
    assert trust(found)["harvesting"] == "unfit"
    assert answers(found) == {
        "measure position bias": "partly", "train a ranker": "yes",
        "judge rankers offline": "partly",
    }  # fmt: skip
    assert found.method.name == "cautious"
    assert "--p 0.5" in found.method.command
    naive = unskew.bias.RelativeCTR().fit(data).t_plus
    assert np.abs(found.bias.t_plus - truth).max() < np.abs(naive - truth).max()


def test_documents_that_moved():
    """A ranker that explores moved them: harvesting is sound, near the truth, and debiasing wholly."""
    log, truth = _drifting()
    found = advised(log)
    assert found.bias_method == "harvesting"
    assert trust(found)["harvesting"] == "sound"
    assert set(answers(found).values()) == {"yes"}
    assert found.method.name == "debiased"
    naive = unskew.bias.RelativeCTR().fit(log).t_plus
    assert np.abs(found.bias.t_plus - truth).mean() < 0.5 * np.abs(naive - truth).mean()
    assert found.contents.moved_share > 0.5


def _drifting():
    live = simulate.rank_svm_policy(LABELS, share=1.0)
    return log_of(simulate.epsilon_policy(live, 0.3), 8_000)


def test_shuffled_sessions_are_found_without_being_told():
    """A context of shuffled sessions is recognised, and measures the bias."""
    live = simulate.sample(LABELS, policy=ranked(), sessions=3_000, seed=1)
    shuffled = simulate.sample(
        LABELS, policy=simulate.random_policy(LABELS), sessions=1_500, seed=2
    )
    number = pa.array(np.asarray(shuffled["session"]) + 3_000)
    shuffled = shuffled.set_column(shuffled.column_names.index("session"), "session", number)
    log = pa.concat_tables([
        live.append_column("arm", pa.array(["live"] * len(live))),
        shuffled.append_column("arm", pa.array(["mixed"] * len(shuffled))),
    ])  # fmt: skip
    data = unskew.read_log(log, context="arm", progress=False)
    found = advised(data)
    assert found.contents.shuffled_contexts == ("mixed",)
    assert found.bias_method == "randomization"
    assert "1,500 sessions" in found.estimators[0].reason
    wrong = advised(data, shuffled="live", n_resamples=0)
    assert (
        "do not look shuffled"
        in {one.method: one for one in wrong.estimators}["randomization"].reason
    )


def test_a_log_that_was_shuffled_as_a_whole():
    """Every estimator by intervention is sound, and the bias near the truth."""
    data, truth = log_of(simulate.random_policy(LABELS), 6_000)
    found = advised(data)
    assert found.contents.whole_log_shuffled
    assert found.bias_method == "randomization"
    assert np.abs(found.bias.t_plus - truth).max() < 0.12
    assert found.method.name == "debiased"


def test_lists_in_the_order_of_a_feature():
    """Where features give the position away, they are not trusted, and nothing else is."""
    rng = np.random.default_rng(0)
    n, length = 400, 6
    strength = np.tile(np.arange(length, 0, -1.0), n)
    click = rng.random(n * length) < 0.5 / np.tile(np.arange(1, length + 1), n)
    rows = np.repeat(np.arange(n), length)
    data = Impressions.from_arrays(
        strength[:, None], click.astype(int), session=rows, query=rows, doc=np.arange(n * length),
        position=np.tile(np.arange(1, length + 1), n),
    )  # fmt: skip
    found = advised(data)
    assert found.bias is None
    assert trust(found)["regression-em"] == "unfit"
    assert found.method.name == "blind"
    assert "--debias none" in found.method.command


@pytest.mark.parametrize(
    ("queries", "sessions", "evidence"),
    [(30, 3_000, "Only 30 queries have a click"), (300, 450, "There are 1.")],
)
def test_few_queries_and_one_session_a_query(queries, sessions, evidence):
    """Few queries, or hardly a session a query: positions are better ignored, and it says why."""
    labels = unskew.datasets.make_search_dataset(n_queries=queries, n_features=16, seed=4)
    policy = simulate.epsilon_policy(ranked(labels), 0.3)
    data, _ = log_of(policy, sessions, labels=labels)
    found = advised(data)
    assert found.method.name == "blind"
    assert evidence in found.method.evidence


def test_the_advice_for_few_queries_ranks_better():
    """With few queries behind lists that never change, ignoring positions ranks no worse."""
    gaps = []
    for seed in range(3):
        world = unskew.datasets.make_search_dataset(n_queries=340, n_features=16, seed=20 + seed)
        few = world.query < np.unique(world.query)[40]
        labels, test = (
            unskew.LabelledData.from_rows(
                world.features.take(np.flatnonzero(rows)), world.relevance[rows],
                world.query[rows], world.doc[rows],
            )
            for rows in (few, ~few)
        )  # fmt: skip
        data, _ = log_of(simulate.score_policy(labels, labels.relevance), 800, labels=labels)
        assert advised(data, n_resamples=0).method.name == "blind"
        quick = {"n_jobs": 1, "random_state": 0, "verbose": 0, "n_estimators": 60}
        values = []
        for debias in (None, "click-model"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of features that hardly help
                ranker = unskew.ClickModelRanker(debias=debias, **quick).fit(data)
            score = ranker.predict(test.features)
            values.append(unskew.evaluate(score, test, metrics=["ndcg@10"]).mean["ndcg@10"])
        gaps.append(values[0] - values[1])
    assert np.mean(gaps) > -0.01


def test_more_sessions_narrow_the_bias_as_promised():
    """A log with the number of sessions that is asked for has intervals about as wide as promised."""
    policy = simulate.random_policy(LABELS)
    found = advised(log_of(policy, 1_500, features=False)[0], n_resamples=100)
    (bias,) = [one for one in found.narrowing if one.what == "bias"]
    assert bias.within > bias.wanted
    again = advised(log_of(policy, bias.sessions_needed, features=False)[0], n_resamples=100)
    (narrowed,) = [one for one in again.narrowing if one.what == "bias"]
    assert narrowed.within == pytest.approx(bias.wanted, rel=0.4)
    (value,) = [one for one in found.narrowing if one.what == "dcg"]
    (surer,) = [one for one in again.narrowing if one.what == "dcg"]
    expected = value.within * np.sqrt(1_500 / bias.sessions_needed)
    assert surer.within == pytest.approx(expected, rel=0.25)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (pairs_log([0, 0, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]), "the log has no click"),
        (
            pairs_log([1, 1, 1, 1], [0, 0, 1, 1], [0, 0, 1, 1]),
            "every result of the log was clicked",
        ),
        (pairs_log([1, 0], [0, 0], [0, 0]), "one query"),
        (pairs_log([1, 0, 0, 1], [0, 0, 1, 1], [0, 0, 0, 0]), "one query"),
    ],
)
def test_tiny_logs_get_a_clear_no(data, reason):
    """No click, all clicked, one session and one query: nothing is promised, and it is said why."""
    found = advised(data)
    assert found.bias is None
    assert "yes" not in answers(found).values()
    assert any(reason in one.reason for one in found.estimators)
    assert found.headline.startswith("This log is not to")


def test_the_advice_is_plain_values():
    """JSON has everything, and the text begins with the answer."""
    found = advised(_drifting()[0])
    content = json.loads(json.dumps(found.to_dict()))
    assert content["headline"] == found.headline == str(found).splitlines()[0]
    assert content["contents"]["sessions"] == 8_000
    assert len(content["bias"]["t_plus"]) == content["contents"]["positions"]


def test_wrong_calls():
    """Something else than a log, and too few resamples, are refused."""
    with pytest.raises(UsageError, match="data must be Impressions, got list"):
        unskew.advise([1, 2])
    with pytest.raises(UsageError, match="n_resamples must be 0, or 20 or more"):
        advised(pairs_log([1, 0], [0, 0], [0, 0]), n_resamples=5)


def test_real_logs(real_data):
    """Yandex measures bias and trains nothing; Expedia trains, with care about its bias."""
    yandex = unskew.read_log(real_data / "yandex" / "sessions.parquet", progress=False)
    found = advised(yandex)
    assert answers(found) == {
        "measure position bias": "yes", "train a ranker": "no", "judge rankers offline": "yes",
    }  # fmt: skip
    # Few features are enough here, and quicker.
    kinds = ("rate", "inv", "rate_percent_diff")
    rivals = [f"comp{k}_{kind}" for k in range(1, 9) for kind in kinds]
    expedia = unskew.read_log(
        real_data / "expedia" / "searches.csv.gz", session="srch_id", query="srch_id",
        doc="prop_id", click="click_bool", context="random_bool", progress=False,
        ignore=["date_time", "booking_bool", "gross_bookings_usd", "source", *rivals],
    )  # fmt: skip
    found = advised(expedia, shuffled=1, n_resamples=0)
    assert found.bias_method == "randomization"
    assert trust(found)["regression-em"] == "fragile"
    assert answers(found)["train a ranker"] == "yes"
    assert found.method.name == "blind"
    assert not found.contents.shuffling_shows
