"""`unskew bias`: the table, the curves, the reasons, and JSON for programs."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import unskew
from shown import labelled
from unskew.bias import RelativeCTR
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
    assert all(len(line) <= 80 for line in lines)
    for name in ("pairwise", "pairwise t_minus", "randomization", "table-em", "relative-ctr"):
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
    curves = []
    for model in ([], ["--model", tmp_path / "model"]):
        assert run("bias", log, *options, *model) == 0
        curves.append(json.loads(capsys.readouterr().out)["methods"][0]["bias"]["t_plus"])
    assert curves[1] == unskew.bias.PairwiseDebiasing(scores=ranker).fit(data).t_plus.tolist()
    assert curves[0] != curves[1]


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
