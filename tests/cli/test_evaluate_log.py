"""`unskew evaluate --log`: one stated bias for all, the logged order beside them, what is refused."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import unskew
from kinds import FILES, IDS, small_data, write
from unskew.cli import main
from unskew.evaluation.log_evaluation import LOGGED


def call(*arguments):
    """Run the program; the exit code."""
    with pytest.raises(SystemExit) as end:
        main([str(a) for a in arguments])
    return end.value.code


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A held-out log of a ranker that drifts, its features, and two models with biases unlike."""
    folder = tmp_path_factory.mktemp("evaluate")
    call(
        "simulate", "generated", "--queries", 120, "--sessions", 4000, "--policy", "drifting",
        "-o", folder / "log.parquet",
    )  # fmt: skip
    data = unskew.read_log(
        folder / "log.parquet", features=folder / "log.features.parquet", progress=False
    )
    for name, debias in (("flat", None), ("steep", 0.3 ** np.arange(10))):
        ranker = unskew.UnbiasedLambdaMART(
            debias=debias, n_estimators=8, n_jobs=1, random_state=0, verbose=0
        )
        ranker.fit(data).save(folder / name)
    ranker = unskew.ClickModelRanker(n_estimators=10, n_jobs=1, random_state=0, verbose=0)
    ranker.fit(data).save(folder / "clicks")
    call("compact", folder / "log.parquet", "--features", folder / "log.features.parquet", "-q",
         "-o", folder / "compact")  # fmt: skip
    return folder


def evaluated(capsys, *arguments):
    """What --json prints."""
    capsys.readouterr()
    assert call("evaluate", *arguments, "--json", "--threads", 1, "-q") == 0
    return json.loads(capsys.readouterr().out)


def test_swapping_the_models_changes_nothing(folder, capsys):
    """No model's own bias judges the others: the order of the arguments does not matter."""
    log = ("--log", folder / "compact")
    one = evaluated(capsys, folder / "flat", folder / "steep", *log)
    two = evaluated(capsys, folder / "steep", folder / "flat", *log)
    assert one["rankers"] == two["rankers"]
    assert one["propensity"] == two["propensity"]
    assert one["bias"]["source"].startswith("harvesting on this log (sound: ")
    truth = json.loads((folder / "log.propensities.json").read_text())["propensity"]
    np.testing.assert_allclose(one["propensity"], np.array(truth) / truth[0], atol=0.12)


def test_compacted_and_raw_agree(folder, capsys):
    """A compacted folder and the log that it was made from give the same numbers."""
    raw = ("--log", folder / "log.parquet", "--features", folder / "log.features.parquet")
    one = evaluated(capsys, folder / "flat", *raw)
    two = evaluated(capsys, folder / "flat", "--log", folder / "compact")
    assert one == two


@pytest.mark.parametrize("bias", ["file", "model", "method"])
def test_every_kind_of_bias(folder, capsys, bias):
    """A file, a model's folder and the name of a method state the bias, and are named."""
    given = {"file": folder / "log.propensities.json", "model": folder / "steep"}
    value = given.get(bias, "table-em")
    found = evaluated(capsys, folder / "flat", "--log", folder / "compact", "--bias", value)
    expected = {"file": 0.68, "model": 1.0, "method": 1.0}[bias]
    assert found["propensity"][0] == pytest.approx(expected)
    assert str(value) in found["bias"]["source"]
    if bias == "model":
        assert any("lies below the clip" in note for note in found["notes"])


def test_differences_and_baseline(folder, capsys):
    """Everything is compared with the logged order, and with --baseline with nothing else."""
    found = evaluated(capsys, folder / "flat", folder / "steep", "--log", folder / "compact",
                      "--baseline", LOGGED, "--metrics", "dcg@5", "--estimator", "dr")  # fmt: skip
    assert [(c["a"], c["b"]) for c in found["comparisons"]] == [("flat", LOGGED), ("steep", LOGGED)]
    for one in found["comparisons"]:
        own = found["rankers"][one["a"]]["dr"]["dcg@5"]["value"]
        logged = found["rankers"][LOGGED]["dr"]["dcg@5"]["value"]
        assert one["difference"] == pytest.approx(own - logged)
        assert one["interval"][0] < one["difference"] < one["interval"][1]


def test_a_click_model_predicts(folder, capsys):
    """The prediction of DR comes from a click-model ranker or a fitted click model; IPS stays."""
    log = ("--log", folder / "compact", "--bias", folder / "log.propensities.json", "--clip", 0.5)
    plain = evaluated(capsys, folder / "flat", *log)
    for given in (folder / "clicks", "pbm"):
        found = evaluated(capsys, folder / "flat", *log, "--click-model", given)
        assert found["rankers"]["flat"]["ips"] == plain["rankers"]["flat"]["ips"]
        assert found["rankers"]["flat"]["dr"] != plain["rankers"]["flat"]["dr"]
        value = found["rankers"]["flat"]["dr"]["dcg@10"]["value"]
        assert value == pytest.approx(plain["rankers"]["flat"]["dr"]["dcg@10"]["value"], rel=0.2)


def test_the_bias_is_uncertain_where_it_was_measured(folder, capsys):
    """Intervals widen where the bias was measured; --resamples 0 and a file take it for known."""
    log = ("--log", folder / "compact", "--metrics", "dcg@5", "--estimator", "dr")
    unsure = evaluated(capsys, folder / "flat", *log)
    known = evaluated(capsys, folder / "flat", *log, "--resamples", 0)
    assert (unsure["resamples"], known["resamples"]) == (50, 0)

    def width(found):
        low, high = found["rankers"]["flat"]["dr"]["dcg@5"]["interval"]
        return high - low

    assert width(unsure) > width(known)
    given = ("--bias", folder / "log.propensities.json")
    assert evaluated(capsys, folder / "flat", *log, *given)["resamples"] == 0
    assert call("evaluate", folder / "flat", *log, *given, "--resamples", 30, "-q") == 2
    assert "--resamples goes with a bias that is measured" in capsys.readouterr().err


def test_on_screen(folder, capsys):
    """The bias, the leading estimate and the differences stand there in words and tables."""
    capsys.readouterr()
    assert call("evaluate", folder / "flat", "--log", folder / "compact", "--threads", 1) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for text in ("All rankers are judged by one bias: harvesting on this log", "doubly robust",
                 "logged order", "paired differences", "intervals over queries",
                 "the intervals know how uncertain it is"):  # fmt: skip
        assert text in shown


def test_shuffled_sessions_measure_the_bias(tmp_path, capsys):
    """--shuffled measures the bias in the sessions of one context, and all sessions judge."""
    log = tmp_path / "log.parquet"
    call(
        "simulate",
        "generated",
        "--queries",
        40,
        "--sessions",
        3000,
        "--policy",
        "random",
        "-o",
        log,
    )
    table = pq.read_table(log)
    arm = np.where(table["session"].to_numpy() % 2 == 0, "shuffled", "live")
    pq.write_table(table.append_column("arm", pa.array(arm)), log)
    options = ("--log", log, "--features", tmp_path / "log.features.parquet", "--context", "arm")
    found = evaluated(capsys, *options, "--score", "view_1", "--shuffled", "shuffled")
    assert found["bias"]["source"] == "randomization on this log, the sessions of context shuffled"
    assert found["sessions"] == 3000
    whole = evaluated(capsys, *options, "--score", "view_1")
    assert "the lists of the whole log look shuffled" in whole["bias"]["source"]


@pytest.mark.parametrize("kind", IDS)
@pytest.mark.parametrize("ending", FILES)
def test_every_kind_of_id_and_file(kind, ending, tmp_path, capsys):
    """Ids of every kind in files of every kind give the same numbers."""
    log = write(small_data(kind).log, tmp_path / f"log.{ending}")
    plain = write(small_data("small integers").log, tmp_path / "plain.parquet")
    bias = tmp_path / "bias.json"
    bias.write_text(json.dumps({"propensity": [1.0, 0.5, 0.33, 0.25, 0.2]}))
    options = ("--score", "bm25", "--bias", bias)
    one = evaluated(capsys, "--log", log, *options)
    two = evaluated(capsys, "--log", plain, *options)
    assert one["comparisons"] == two["comparisons"]
    assert one["rankers"] == two["rankers"]


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("--bias", "harvest"), 2, "--bias must be a file, the folder of a model or a method"),
        (("--bias", "randomization"), 1, "--bias randomization does not fit this log"),
        (("--shuffled", "x"), 2, "--shuffled: the log has no context 'x'"),
        (("--click-model", "flat"), 2, "--click-model must be the folder of a click-model ranker"),
        (("--clip", 2), 2, "clip must lie in [0, 1]"),
        (("--by", "user"), 2, "by must be one of"),
        (("--estimator", "ipw"), 2, "estimator must be one of"),
        (("--baseline", "other"), 2, "baseline must be one of ['flat', 'logged order']"),
        (("--metrics", "map"), 2, "metric 'map' is not known"),
    ],
)
def test_errors(folder, capsys, options, code, message):
    """A wrong call ends with 2, wrong data with 1, and a sentence that says why."""
    arguments = (folder / "flat", "--log", folder / "compact", "--threads", 1)
    assert call("evaluate", *arguments, *options) == code
    assert message in " ".join(capsys.readouterr().err.split())


def test_options_of_a_log_are_refused_on_labels(tmp_path, capsys):
    """Labels have no position bias: --bias there is an error, not silently ignored."""
    labels = write(small_data("text").labels, tmp_path / "labels.parquet")
    assert call("evaluate", "--labels", labels, "--score", "bm25", "--bias", "x.json") == 2
    assert "--bias has no effect here: it goes with --log" in capsys.readouterr().err


def test_a_log_that_tells_nothing(tmp_path, capsys):
    """Where no document moves and there are no features, the bias must be given; the error says so."""
    table = small_data("text").log.drop_columns(["bm25", "age"])
    log = write(table, tmp_path / "log.parquet")
    assert call("evaluate", "--log", log) == 1
    error = " ".join(capsys.readouterr().err.split())
    assert "nothing in this log tells position bias from relevance" in error
    assert "Give a bias that was measured elsewhere" in error
    silent = table.set_column(
        table.column_names.index("click"), "click", pa.array([0] * table.num_rows)
    )
    assert call("evaluate", "--log", write(silent, tmp_path / "silent.parquet")) == 1
    assert "holds not a single click" in " ".join(capsys.readouterr().err.split())


def test_real_logs(real_data, capsys):
    """Yandex is judged by documents that moved, Expedia by its shuffled searches."""
    yandex = evaluated(capsys, "--log", real_data / "yandex" / "sessions.parquet")
    assert yandex["bias"]["source"].startswith("harvesting on this log")
    assert yandex["rankers"][LOGGED]["dr"]["click@1"]["value"] == pytest.approx(0.2566, abs=1e-4)
    names = {"session": "srch_id", "query": "srch_id", "doc": "prop_id", "click": "click_bool"}
    columns = [part for role, name in names.items() for part in (f"--{role}", name)]
    expedia = evaluated(
        capsys, "--log", real_data / "expedia" / "searches.csv.gz", *columns, "--score",
        "prop_location_score1", "--context", "random_bool", "--shuffled", 1,
    )  # fmt: skip
    assert expedia["sessions"] == 1409
    assert len(expedia["comparisons"]) == 9
