"""`unskew train` and `unskew rank`: the same models as the API, and errors with the right code."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as parquet
import pytest

import unskew
from unskew.cli import main
from unskew.registry import RANKERS

SETTINGS = ("--n-estimators", "8", "--min-data-in-leaf", "3", "--random-state", "0", "--quiet")
QUICK = {"n_estimators": 8, "min_data_in_leaf": 3, "random_state": 0, "verbose": 0}


def run(*arguments):
    """The exit code of the command line."""
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    return stop.value.code


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """A click log as a Parquet file: 30 queries, 5 sessions each, 6 results a page."""
    rng = np.random.default_rng(0)
    n_queries, n_sessions, n = 30, 5, 6
    features = np.repeat(rng.normal(size=(n_queries, n, 2)), n_sessions, axis=0).reshape(-1, 2)
    position = np.tile(np.arange(1, n + 1), n_queries * n_sessions)
    query = np.repeat(np.arange(n_queries), n_sessions * n)
    chance = 1 / (1 + np.exp(-2 * features[:, 0])) / position
    table = pa.table({
        "session": np.repeat(np.arange(n_queries * n_sessions), n),
        "query": query,
        "doc": query * 100 + position,
        "position": position,
        "click": (rng.random(len(query)) < chance).astype(int),
        "bm25": features[:, 0],
        "age": features[:, 1],
    })  # fmt: skip
    path = tmp_path_factory.mktemp("log") / "clicks.parquet"
    parquet.write_table(table, path)
    return path


@pytest.fixture(scope="module")
def model(log, tmp_path_factory):
    """A model that the command line trained."""
    path = tmp_path_factory.mktemp("model") / "model"
    assert run("train", log, "-o", path, *SETTINGS) == 0
    return path


def test_command_line_and_api_give_the_same_model(log, model):
    """The trees and biases of `unskew train` are those of `fit`, bit for bit."""
    data = unskew.read_log(str(log), progress=False)
    ranker = unskew.UnbiasedLambdaMART(**QUICK).fit(data)
    trained = unskew.load(model)
    np.testing.assert_array_equal(trained.predict(data.features), ranker.predict(data.features))
    assert trained.position_bias_.equals(ranker.position_bias_)


def test_a_compacted_log_gives_the_same_model(log, model, tmp_path):
    """Training on the folder of `unskew compact` is training on the log."""
    assert run("compact", log, "-o", tmp_path / "compact", "--quiet") == 0
    assert run("train", tmp_path / "compact", "-o", tmp_path / "model", *SETTINGS) == 0
    data = unskew.load(tmp_path / "compact")
    expected = unskew.load(model).predict(data.features)
    np.testing.assert_array_equal(unskew.load(tmp_path / "model").predict(data.features), expected)


def test_settings_come_from_a_file_and_options_win(log, tmp_path):
    """--config holds any setting, --set any of the booster's; an option beats the file."""
    (tmp_path / "settings.toml").write_text(
        'n_estimators = 5\np = 1.0\ndebias = "clicked"\nmax_depth = 3\nmin_data_in_leaf = 3\n'
    )
    code = run(
        "train", log, "-o", tmp_path / "model", "--config", tmp_path / "settings.toml",
        "--p", "0.25", "--set", "lambda_l2=1.5", "--quiet",
    )  # fmt: skip
    assert code == 0
    params = unskew.load(tmp_path / "model").get_params()
    assert params["n_estimators"] == 5
    assert params["p"] == 0.25
    assert params["debias"] == "clicked"
    assert params["max_depth"] == 3
    assert params["lambda_l2"] == 1.5


@pytest.mark.parametrize(
    ("debias", "expected"),
    [("none", None), ("1,0.5,0.4,0.3,0.2,0.1", [1, 0.5, 0.4, 0.3, 0.2, 0.1])],
)
def test_debias_on_the_command_line(log, tmp_path, debias, expected):
    """None and propensities can be written as options."""
    assert run("train", log, "-o", tmp_path / "m", "--debias", debias, *SETTINGS) == 0
    assert unskew.load(tmp_path / "m").get_params()["debias"] == expected


def test_the_summary_draws_the_bias(log, tmp_path, capsys):
    """The last screen has the log, the trees, the important features and both curves."""
    run("train", log, "-o", tmp_path / "model", *SETTINGS)
    shown = capsys.readouterr().out
    assert "150 sessions of 30 queries" in shown
    assert "8 trees in" in shown
    assert "most important: bm25" in shown
    assert shown.count("█") > 20
    assert "t_plus" in shown
    assert len(shown.splitlines()) < 24


def test_continuing_on_the_command_line(log, model, tmp_path):
    """--init-model goes on from a saved model."""
    assert run("train", log, "-o", tmp_path / "more", "--init-model", model, *SETTINGS) == 0
    assert unskew.load(tmp_path / "more").trees_.n_rounds == 16


def test_held_out_clicks_stop_early(log, tmp_path, capsys):
    """--validation takes a log; the measure is in the summary."""
    code = run(
        "train", log, "-o", tmp_path / "model", "--validation", log,
        "--early-stopping-rounds", "3", *SETTINGS,
    )  # fmt: skip
    assert code == 0
    assert "validation 0." in capsys.readouterr().out
    assert unskew.load(tmp_path / "model").best_round_ is not None


def test_labels_train_and_validate(tmp_path):
    """--labels trains on LETOR text, and --validation takes it too."""
    rng = np.random.default_rng(0)
    lines = []
    for query in range(20):
        for x, y in rng.normal(size=(8, 2)):
            lines.append(f"{int(x > 0.5)} qid:{query} 1:{x:.4f} 2:{y:.4f}\n")
    (tmp_path / "labels.txt").write_text("".join(lines))
    code = run(
        "train", tmp_path / "labels.txt", "--labels", "-o", tmp_path / "model",
        "--validation", tmp_path / "labels.txt", *SETTINGS,
    )  # fmt: skip
    assert code == 0
    assert unskew.load(tmp_path / "model").validation_history_[-1] > 0.9


RANKER_SETTINGS = {
    "auto": {"trials": 2},
    "lambdamart": {"n_estimators": 3, "num_leaves": 5},
    "click-model": {"n_estimators": 3, "click_model": "ubm"},
    "ranksvm": {"max_rounds": 2, "C": 10.0},
    "dnn": {"hidden": [8, 4], "n_epochs": 2},
}


@pytest.mark.parametrize("name", RANKERS)
def test_every_ranker_of_the_registry_is_reached(name, log, tmp_path, capsys):
    """--ranker trains any ranker, --set reaches its settings, and the model is that of the API."""
    pytest.importorskip("torch" if name == "dnn" else "lightgbm")
    settings = RANKER_SETTINGS[name]
    given = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    options = ("--ranker", name, "--random-state", "3", "--debias", "none", "-q", "--threads", "1")
    assert run("train", log, "-o", tmp_path / "model", *options, *given) == 0
    shown = capsys.readouterr().out
    assert "t_plus" in shown
    assert "saved to" in shown
    kind = RANKERS[name].load()
    ranker = kind(debias=None, random_state=3, n_jobs=1, verbose=0, **settings)
    data = unskew.read_log(str(log), progress=False)
    trained = unskew.load(tmp_path / "model")
    assert type(trained) is kind
    np.testing.assert_array_equal(trained.predict(data), ranker.fit(data).predict(data))


def test_without_a_word_everything_is_chosen(log, tmp_path, capsys):
    """The table of what was tried is printed and kept; a setting of a ranker means that ranker."""
    assert run("train", log, "-o", tmp_path / "a", "--trials", "3", "-q", "--threads", "1") == 0
    shown = capsys.readouterr().out
    assert "click likelihood, position ignored" in shown
    assert "chosen: " in shown
    chosen = unskew.load(tmp_path / "a")
    assert type(chosen).__name__ == "AutoRanker"
    assert len(chosen.choice_.trials) == 3
    more = ("--init-model", tmp_path / "a", "-q", "--threads", "1")
    assert run("train", log, "-o", tmp_path / "b", *more) == 0
    assert type(unskew.load(tmp_path / "b")).__name__ == "AutoRanker"
    assert run("train", log, "-o", tmp_path / "c", "--n-estimators", "2", "-q") == 0
    assert type(unskew.load(tmp_path / "c")).__name__ == "UnbiasedLambdaMART"
    budget = ("--seconds", "0.000001", "-q")
    assert run("train", log, "-o", tmp_path / "d", *budget) == 2
    assert "too little for a single trial" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "d").exists()


def test_the_ranker_may_stand_in_the_file(log, tmp_path):
    """--config may name the ranker, and the option wins over it."""
    (tmp_path / "svm.toml").write_text('ranker = "ranksvm"\nrandom_state = 0\n')
    call = ("train", log, "-o", tmp_path / "svm", "--config", tmp_path / "svm.toml", "--quiet")
    assert run(*call) == 0
    assert type(unskew.load(tmp_path / "svm")).__name__ == "PropensityRankSVM"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--ranker", "svm"),
            "--ranker must be one of auto, lambdamart, click-model, ranksvm, dnn, got",
        ),
        (("--ranker", "ranksvm", "--num-leaves", "7"), "ranksvm has no setting 'num_leaves'"),
        (("--ranker", "ranksvm", "--set", "max_round=7"), "did you mean 'max_rounds'?"),
        (("--ranker", "ranksvm", "--debias", "dual-learning"), "not with ranksvm"),
    ],
)
def test_what_a_ranker_does_not_have_is_refused(log, tmp_path, capsys, options, message):
    """The error names the ranker and what it has, and nothing is written."""
    assert run("train", log, "-o", tmp_path / "model", "--quiet", *options) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "model").exists()


def test_a_ranker_that_cannot_be_continued_says_so(log, model, tmp_path, capsys):
    """--init-model with a ranker that is not made of trees is an error."""
    options = ("--ranker", "ranksvm", "--init-model", model, "--quiet")
    assert run("train", log, "-o", tmp_path / "model", *options) == 2
    assert "cannot be continued" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_rank_orders_candidates(log, model, tmp_path, kind):
    """Every candidate comes back once with its score and rank, each query's best first."""
    table = parquet.read_table(log).select(["doc", "age", "bm25", "query"]).slice(0, 60)
    candidates, out = tmp_path / f"candidates.{kind}", tmp_path / f"ranked.{kind}"
    (parquet.write_table if kind == "parquet" else csv.write_csv)(table, str(candidates))
    assert run("rank", model, candidates, "-o", out) == 0
    ranked = (parquet.read_table if kind == "parquet" else csv.read_csv)(str(out)).to_pydict()
    assert list(ranked) == ["query", "doc", "score", "rank"]
    values = np.column_stack([table["bm25"].to_numpy(), table["age"].to_numpy()])
    ranking = unskew.load(model).rank(values, query=table["query"], doc=table["doc"])
    assert ranked["doc"] == ranking.doc.tolist()
    np.testing.assert_allclose(ranked["score"], ranking.score, rtol=1e-12)
    assert ranked["rank"] == ranking.rank.tolist()
    best = tmp_path / f"best.{kind}"
    assert run("rank", model, candidates, "-o", best, "--top", "2") == 0
    read = parquet.read_table if kind == "parquet" else csv.read_csv
    assert max(read(str(best))["rank"].to_pylist()) == 2


def test_errors_say_what_and_have_their_code(log, model, tmp_path, capsys):
    """Wrong calls exit with 2, wrong data with 1, each with a sentence."""
    out = tmp_path / "model"

    def fails(code, text, *arguments):
        assert run(*arguments) == code
        message = " ".join(capsys.readouterr().err.split())
        assert text in message
        assert not out.exists()

    fails(2, "p must be 0 or higher", "train", log, "-o", out, "--p", "-1", *SETTINGS)
    fails(2, "--debias must be pairwise", "train", log, "-o", out, "--debias", "x", *SETTINGS)
    fails(2, "--set needs name=value", "train", log, "-o", out, "--set", "x", *SETTINGS)
    fails(
        2,
        "nonsense: neither a parameter",
        "train",
        log,
        "-o",
        out,
        "--set",
        "nonsense=1",
        *SETTINGS,
    )
    fails(2, "--out must end in .parquet or .csv", "rank", model, log, "-o", out)
    (tmp_path / "bad.toml").write_text("p = = 1")
    fails(1, "is not TOML", "train", log, "-o", out, "--config", tmp_path / "bad.toml", *SETTINGS)
    (tmp_path / "section.toml").write_text("[trees]\np = 1")
    fails(2, "section(s) ['trees']", "train", log, "-o", out, "--config", tmp_path / "section.toml")
    csv.write_csv(pa.table({"query": [1], "bm25": [0.5]}), str(tmp_path / "few.csv"))
    fails(
        1, "lacks the column(s) ['doc', 'age']", "rank", model, tmp_path / "few.csv", "-o", "x.csv"
    )
    fails(1, "is not there", "rank", tmp_path / "none", log, "-o", "x.csv")


def test_a_model_folder_is_readable(model):
    """The manifest beside the trees is plain JSON with the bias and the feature names."""
    manifest = json.loads((model / "unskew.json").read_text())
    assert manifest["feature_names"] == ["bm25", "age"]
    assert manifest["position_bias"]["t_plus"][0] == 1.0
