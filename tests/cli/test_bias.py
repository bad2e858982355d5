"""`unskew bias`: the table, the curves, the reasons, and JSON for programs."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import unskew
from shown import labelled
from unskew.bias import Randomization, RelativeCTR
from unskew.cli import main
from unskew.simulate import random_policy, sample, score_policy


def run(*arguments):
    """The exit code of the command line."""
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    return stop.value.code


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """Half of the sessions ranked, half shuffled, marked in a column; no features."""
    data = labelled(n_queries=20)
    ranked = sample(data, policy=score_policy(data, data.relevance), sessions=1500, seed=1)
    mixed = sample(data, policy=random_policy(data), sessions=1500, seed=2)
    rows = [
        table.append_column("arm", pa.array([arm] * len(table)))
        for arm, table in (("live", ranked), ("shuffled", mixed))
    ]
    rows[1] = rows[1].set_column(0, "session", pa.array(np.asarray(rows[1]["session"]) + 1500))
    path = tmp_path_factory.mktemp("bias") / "clicks.parquet"
    pq.write_table(pa.concat_tables(rows), path)
    return path


OPTIONS = ("--context", "arm", "--quiet")


def test_side_by_side(log, capsys):
    """Curves of the methods that fit, times, and the reasons of the others."""
    assert run("bias", log, *OPTIONS, "--shuffled", "shuffled") == 0
    shown = capsys.readouterr().out
    assert "█" in shown
    lines = shown.splitlines()
    # In a narrow terminal the curves come in several blocks.
    heads = " ".join(line for line in lines if line.startswith("position "))
    assert all(len(line) <= 80 for line in lines if "█" in line)
    assert "with 95% intervals" in shown
    assert any("[" in line and "█" in line for line in lines)
    for name in ("randomization", "harvesting", "table-em", "relative-ctr"):
        assert name in heads
    assert "regression-em" not in heads
    assert "does not fit: the log has no features" in " ".join(shown.split())


def test_json_equals_the_api(log, capsys):
    """--json gives programs the curves of the API, and the reasons."""
    assert run("bias", log, *OPTIONS, "--json", "-m", "relative-ctr", "-m", "randomization") == 0
    first, second = json.loads(capsys.readouterr().out)["methods"]
    data = unskew.read_log(log, context="arm", progress=False)
    assert first["bias"]["t_plus"] == RelativeCTR().fit(data).t_plus.tolist()
    assert second["bias"] is None
    assert "were not shuffled" in second["reason"]


def test_nothing_fits(log, capsys):
    """The exit code is 1 if no method fits the log."""
    assert run("bias", log, *OPTIONS, "-m", "randomization") == 1
    assert "does not fit" in capsys.readouterr().out


def test_scores_of_a_model(tmp_path, log, capsys):
    """--model gives pairwise debiasing the scores of a saved ranker."""
    labels = labelled(n_queries=20)
    columns = {"query": labels.query, "doc": labels.doc, "good": labels.features.values[:, 0]}
    pq.write_table(pa.table(columns), tmp_path / "features.parquet")
    data = unskew.read_log(log, context="arm", features=columns, progress=False)
    ranker = unskew.UnbiasedLambdaMART(n_estimators=3, verbose=0).fit(data)
    ranker.save(tmp_path / "model")
    options = [*OPTIONS, "--features", tmp_path / "features.parquet", "-m", "pairwise", "--json"]
    assert run("bias", log, *options) == 1
    assert "--model" in json.loads(capsys.readouterr().out)["methods"][0]["reason"]
    assert run("bias", log, *options, "--model", tmp_path / "model") == 0
    (found,) = json.loads(capsys.readouterr().out)["methods"]
    expected = unskew.bias.PairwiseDebiasing(scores=ranker).fit(data)
    assert found["bias"]["t_plus"] == expected.t_plus.tolist()
    assert "no measure of examination" in found["notes"][0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--shuffled", "maybe"], "Its contexts: live, shuffled"),
        (["-m", "pairwize"], "there is no method 'pairwize' (did you mean 'pairwise'?)"),
        (["-m", "clicked"], "cannot be estimated alone"),
    ],
)
def test_wrong_calls(log, capsys, arguments, message):
    """The exit code is 2 and the error says what there is."""
    assert run("bias", log, *OPTIONS, *arguments) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_training_by_the_name_of_a_method(tmp_path, log):
    """--debias of unskew train reads the same registry."""
    labels = labelled(n_queries=20)
    columns = {"query": labels.query, "doc": labels.doc, "good": labels.features.values[:, 0]}
    pq.write_table(pa.table(columns), tmp_path / "features.parquet")
    options = ("--features", tmp_path / "features.parquet", "--ignore", "arm", "--quiet")
    settings = ("--n-estimators", "2", "--debias", "relative-ctr", "--threads", "1")
    assert run("train", log, "-o", tmp_path / "model", *options, *settings) == 0
    data = unskew.read_log(log, features=columns, ignore=["arm"], progress=False)
    assert unskew.load(tmp_path / "model").position_bias_.equals(RelativeCTR().fit(data))


def test_a_bias_is_a_file(tmp_path, log, capsys):
    """-o writes the curve of one method; bias, train and evaluate read it."""
    file = tmp_path / "bias.json"
    assert run("bias", log, *OPTIONS, "-m", "harvesting", "--resamples", 30, "-o", file) == 0
    content = json.loads(file.read_text())
    assert content["method"] == "harvesting"
    assert np.shape(content["interval_plus"]) == (2, 10)
    capsys.readouterr()
    assert run("bias", log, *OPTIONS, "-m", "relative-ctr", "--bias", file, "--json") == 0
    methods = json.loads(capsys.readouterr().out)["methods"]
    assert methods[1]["method"] == "bias.json"
    assert methods[1]["bias"]["t_plus"] == content["t_plus"]
    small = ("--set", "n_estimators=3", "--quiet", "--context", "arm")
    features = with_features(tmp_path)
    model = tmp_path / "model"
    assert run("train", log, "-o", model, "--debias", file, *features, *small) == 0
    assert unskew.load(model).t_plus_.tolist() == content["t_plus"]
    command = ("evaluate", model, "--log", log, "--bias", file, *features)
    assert run(*command, "--context", "arm", "--quiet") == 0


def with_features(folder):
    """The option that gives the features of the log."""
    labels = labelled(n_queries=20)
    columns = {"query": labels.query, "doc": labels.doc, "good": labels.features.values[:, 0]}
    pq.write_table(pa.table(columns), folder / "of.parquet")
    return ("--features", folder / "of.parquet")


def test_train_takes_shuffled_sessions(tmp_path, log, capsys):
    """--shuffled measures the bias in the sessions of one context, as `unskew bias` does."""
    command = ("train", log, "-o", tmp_path / "model", *with_features(tmp_path), *OPTIONS)
    assert run(*command, "--shuffled", "shuffled", "--set", "n_estimators=3") == 0
    data = unskew.read_log(log, context="arm", progress=False)
    measured = Randomization(context="shuffled").fit(data)
    assert unskew.load(tmp_path / "model").t_plus_.tolist() == measured.t_plus.tolist()
    assert run(*command, "--shuffled", "mixed") != 0
    assert "--shuffled: the log has no context 'mixed'" in told(capsys)
    assert run(*command, "--shuffled", "shuffled", "--debias", "pairwise") != 0
    assert "--shuffled goes with" in told(capsys)


def told(capsys):
    """What the command said, on one line."""
    found = capsys.readouterr()
    return " ".join((found.out + found.err).split())


def test_curves_per_context(log, capsys):
    """--by-context gives each context its curves."""
    command = ("bias", log, *OPTIONS, "-m", "relative-ctr", "--by-context", "--resamples", 0)
    assert run(*command, "--json") == 0
    found = json.loads(capsys.readouterr().out)["contexts"]
    data = unskew.read_log(log, context="arm", progress=False)
    for arm in ("live", "shuffled"):
        expected = RelativeCTR().fit(data.in_context(arm)).t_plus.tolist()
        assert found[arm]["methods"][0]["bias"]["t_plus"] == expected
    assert run(*command) == 0
    assert "context shuffled" in capsys.readouterr().out


def test_a_monotone_curve(log, capsys):
    """--monotone gives a curve that never rises."""
    command = (
        "bias",
        log,
        *OPTIONS,
        "-m",
        "relative-ctr",
        "--resamples",
        0,
        "--json",
        "--monotone",
    )
    assert run(*command) == 0
    curve = json.loads(capsys.readouterr().out)["methods"][0]["bias"]["t_plus"]
    assert (np.diff(curve) <= 0).all()


def test_files_and_methods_that_do_not_go_together(tmp_path, log, capsys):
    """-o needs one method; a file that is no bias is refused."""
    assert run("bias", log, *OPTIONS, "-o", tmp_path / "bias.json") != 0
    assert "--out writes one curve: give one --method" in told(capsys)
    (tmp_path / "mine.json").write_text("{}")
    one = ("bias", log, *OPTIONS, "-m", "relative-ctr", "--resamples", 0)
    assert run(*one, "-o", tmp_path / "mine.json") != 0
    assert "nothing in it says that Unskew wrote it" in told(capsys)
    for overwrite in (("--overwrite",), ()):
        assert run(*one, "-o", tmp_path / "mine.json", *overwrite) == 0
    capsys.readouterr()
    (tmp_path / "other.json").write_bytes(b"\x00\x01")
    assert run("bias", log, *OPTIONS, "--bias", tmp_path / "other.json", "-m", "relative-ctr") != 0
    assert "is no JSON" in told(capsys)
    command = ("train", log, "-o", tmp_path / "m", *with_features(tmp_path), *OPTIONS)
    assert run(*command, "--debias", tmp_path / "none.json") != 0
    assert "is not there" in told(capsys)
