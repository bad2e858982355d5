"""The commands on every kind of bad log: an answer and an exit code, never a stack trace."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

import unskew
from uninformative import TABLES, THETA, table_of
from unskew.cli import main
from unskew.registry import CLICK_MODELS, METHODS

# Methods that train networks take their time and are in the matrix of the estimators.
QUICK = [entry.name for entry in METHODS.values() if entry.home and not entry.extra]
REFUSED = {
    "no click at all": "not a single click",
    "all clicked": "every result of the log was clicked",
    "one query": "one query|with a click",
    "constant features": "every feature has the same value|nothing to rank by",
    "no features": "no features|needs features",
}


def run(*arguments):
    """The exit code of the command line."""
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    return stop.value.code


@pytest.fixture(params=TABLES)
def case(request, tmp_path):
    """A kind of bad log, its file, and the option that names its contexts."""
    table = table_of(request.param)
    pq.write_table(table, tmp_path / "log.parquet")
    context = ("--context", "device") if "device" in table.column_names else ()
    return request.param, tmp_path / "log.parquet", context


def test_unskew_bias(case, capsys):
    """Curves of those that fit, reasons of the others; exit code 1 where none does."""
    kind, log, context = case
    methods = [word for name in QUICK for word in ("-m", name)]
    command = (
        "bias",
        log,
        *context,
        *methods,
        "--resamples",
        0,
        "--threads",
        1,
        "--quiet",
        "--json",
    )
    code = run(*command)
    shown = capsys.readouterr()
    if kind == "no click at all":
        assert code == 1
        assert "not a single click" in shown.err
        return
    found = json.loads(shown.out)["methods"]
    assert all((one["bias"] is None) == bool(one["reason"]) for one in found)
    assert code == (1 if kind == "all clicked" else 0)
    if kind != "all clicked":
        (curve,) = (one["bias"]["t_plus"] for one in found if one["method"] == "table-em")
        assert np.abs(np.array(curve) - THETA).max() < 0.12


def test_unskew_clicks(case, capsys):
    """Measures of those that fit, reasons of the others; exit code 1 where none does."""
    kind, log, context = case
    code = run("clicks", log, *context, "--quiet", "--json")
    shown = capsys.readouterr()
    if kind == "no click at all":
        assert code == 1
        assert "not a single click" in shown.err
        return
    found = {one["model"]: one for one in json.loads(shown.out)["models"]}
    assert set(found) == set(CLICK_MODELS)
    assert code == (1 if kind == "all clicked" else 0)
    if kind == "all clicked":
        assert all("every result of the log was clicked" in one["reason"] for one in found.values())
    if kind == "one click a session":
        assert "no session of the log has two clicks" in found["dbn"]["reason"]
    if kind == "a context seen once":
        assert any("'watch' has" in note for note in found["contextual"]["notes"])


def test_unskew_train(case, capsys, tmp_path):
    """`train --ranker click-model` writes a model, or says why not and writes nothing."""
    kind, log, context = case
    out = tmp_path / "model"
    small = ("--set", "n_estimators=10", "--threads", 1, "--quiet")
    code = run("train", log, *context, "--ranker", "click-model", "-o", out, *small)
    said = " ".join(capsys.readouterr().err.split())
    if kind in REFUSED:
        assert code == 1
        assert any(text in said for text in REFUSED[kind].split("|")), said
        assert not out.exists()
    else:
        assert code == 0
        assert np.isfinite(unskew.load(out).t_plus_).all()
