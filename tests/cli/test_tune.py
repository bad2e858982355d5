"""`unskew tune`: a search on the command line, its table, its model, what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

import unskew
from kinds import IDS, small_data, write
from unskew.cli import main

QUICK = (
    "--set", "n_estimators=3", "--set", "min_data_in_leaf=2", "--folds", 2, "--threads", 1, "-q",
    "--bias", "none",
)  # fmt: skip


def call(*arguments):
    """Run the program; the exit code."""
    with pytest.raises(SystemExit) as end:
        main([str(a) for a in arguments])
    return end.value.code


@pytest.fixture
def log(tmp_path):
    """A small log with features."""
    return write(small_data("text").log, tmp_path / "log.parquet")


def test_a_search_on_screen(log, tmp_path, capsys):
    """The table shows the trials, and the model has it with it."""
    options = ("--trials", 3, "--space", "p=0..2", "--space", "debias=pairwise,none")
    assert call("tune", log, "-o", tmp_path / "model", *options, *QUICK) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "3 trials of lambdamart on 48 sessions of 8 queries" in shown
    assert "the defaults" in shown
    model = unskew.load(tmp_path / "model")
    assert [one["number"] for one in model.tuning_["trials"]] == [0, 1, 2]
    assert model.n_estimators == 3


def test_compacted_and_raw_agree(log, tmp_path, capsys):
    """A compacted folder and its log give the same search; --json prints its table."""
    assert call("compact", log, "-o", tmp_path / "compact", "-q") == 0
    found = []
    for source, out in ((log, "a"), (tmp_path / "compact", "b")):
        capsys.readouterr()
        options = ("--trials", 2, "--space", "num_leaves=3..9", "--json")
        assert call("tune", source, "-o", tmp_path / out, *options, *QUICK) == 0
        found.append(json.loads(capsys.readouterr().out))
    for one in found:
        for trial in one["trials"]:
            trial.pop("seconds")
    assert found[0] == found[1]


@pytest.mark.parametrize("kind", IDS)
def test_every_kind_of_id(kind, tmp_path):
    """The search does not depend on what ids look like."""
    models = []
    for one in (kind, "small integers"):
        source = write(small_data(one).log, tmp_path / f"{len(models)}.parquet")
        out = tmp_path / f"model{len(models)}"
        assert call("tune", source, "-o", out, "--trials", 2, "--space", "p=0..2", *QUICK) == 0
        models.append(unskew.load(out))
    candidates = small_data(kind).candidates.select(["bm25", "age"])
    np.testing.assert_allclose(*(model.predict(candidates) for model in models), rtol=1e-12)


def test_a_search_goes_on_from_its_file(log, tmp_path, capsys):
    """--resume keeps the trials, and a second call adds to them."""
    file = tmp_path / "trials.json"
    for trials in (1, 2):
        options = ("--trials", trials, "--space", "p=0..2", "--resume", file)
        assert call("tune", log, "-o", tmp_path / "model", *options, *QUICK) == 0
        assert len(json.loads(file.read_text())["trials"]) == trials


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("--ranker", "nosuch"), 2, "--ranker must be one of"),
        (("--space", "p"), 2, "--space needs name=low..high"),
        (("--ranker", "ranksvm", "--space", "q=1,2"), 2, "ranksvm has no setting 'q'"),
        (("--space", "n_estimators=3..9"), 2, "n_estimators is fixed and in the space as well"),
        (("--bias", "nosuch.json"), 2, "--bias must be a file of 'unskew bias -o', or none"),
        (("--seconds", "0.0001"), 2, "too small for a single trial of lambdamart"),
    ],
)
def test_errors(log, tmp_path, capsys, options, code, message):
    """A wrong call ends with 2 and a sentence that says why, and writes nothing."""
    assert call("tune", log, "-o", tmp_path / "model", *QUICK, *options) == code
    assert message in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "model").exists()
