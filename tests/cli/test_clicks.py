"""`unskew clicks`: the table, JSON for programs, and the relevance table."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import unskew
from shown import labelled
from unskew.cli import main
from unskew.simulate import random_policy, sample, score_policy


def run(*arguments):
    """The exit code of the command line."""
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    return stop.value.code


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """Cascade clicks on shuffled pages."""
    data = labelled(n_queries=20)
    path = tmp_path_factory.mktemp("clicks") / "clicks.parquet"
    table = sample(data, model="dbn", policy=random_policy(data), sessions=3000, seed=1)
    pq.write_table(table, path)
    return path


def test_models_side_by_side(log, capsys):
    """Every model has its row, the best first; those that do not fit say why."""
    assert run("clicks", log, "--quiet") == 0
    shown = capsys.readouterr().out
    lines = [line.split()[0] for line in shown.splitlines() if line.strip()]
    assert lines.index("dbn") < lines.index("pbm") < lines.index("contextual")
    assert "contextual does not fit: all sessions have the same context" in " ".join(shown.split())


def test_json_equals_the_api(log, capsys):
    """The numbers are those of `compare_click_models`."""
    assert run("clicks", log, "--json", "--quiet", "-m", "pbm", "-m", "ubm") == 0
    found = json.loads(capsys.readouterr().out)["models"]
    outcomes = unskew.clicks.compare_click_models(unskew.read_log(log), models=["pbm", "ubm"])
    assert [one["model"] for one in found] == [one.name for one in outcomes]
    for one, outcome in zip(found, outcomes, strict=True):
        assert one["log_likelihood"] == outcome.measures.log_likelihood
        assert one["conditional_perplexity"] == outcome.measures.conditional_perplexity
        assert len(one["bias"]["t_plus"]) == 10


def test_the_relevance_of_the_best(log, tmp_path, capsys):
    """The table is that of the best model on all sessions."""
    out = tmp_path / "relevance.parquet"
    assert run("clicks", log, "-m", "pbm", "-m", "dbn", "-o", out) == 0
    captured = capsys.readouterr()
    assert "documents by dbn" in captured.err
    table = pq.read_table(out)
    expected = unskew.clicks.fit_click_model(unskew.read_log(log), "dbn").to_arrow()
    assert table.column_names == expected.column_names
    assert np.array_equal(table["relevance"].to_numpy(), expected["relevance"].to_numpy())


def test_what_is_missing_is_said(tmp_path, capsys):
    """A log whose documents never move gets a note beside the table."""
    data = labelled(n_queries=20)
    policy = score_policy(data, data.relevance)
    pq.write_table(sample(data, policy=policy, sessions=2000, seed=1), tmp_path / "log.parquet")
    assert run("clicks", tmp_path / "log.parquet", "-m", "pbm", "--quiet") == 0
    assert "pbm: no document links position(s)" in " ".join(capsys.readouterr().out.split())


def test_a_log_that_fits_no_model(tmp_path, capsys):
    """The exit code is 1 if no model fits, and each says why."""
    n = 100
    table = pa.table(
        {
            "session": np.repeat(np.arange(n), 2),
            "query": np.zeros(2 * n, dtype=int),
            "doc": np.tile([1, 2], n),
            "position": np.tile([1, 2], n),
            "click": np.tile([0, 1, 0, 0], n // 2),
        }
    )
    pq.write_table(table, tmp_path / "log.parquet")
    assert run("clicks", tmp_path / "log.parquet", "--quiet", "-m", "dbn", "-m", "dcm") == 1
    shown = capsys.readouterr().out
    assert "dbn does not fit: no session of the log has two clicks" in shown
    assert "dcm does not fit: no session" in shown


def test_wrong_calls_are_named(log, tmp_path, capsys):
    """A model that does not exist, and a file that cannot be written."""
    assert run("clicks", log, "-m", "nosuch", "--quiet") == 2
    assert "click model 'nosuch' is not known" in capsys.readouterr().err
    assert run("clicks", log, "-o", tmp_path / "out.xyz", "--quiet") == 2
