"""The command that exports a model and checks an export."""

from __future__ import annotations

import json

import pytest

from logs import random_log
from unskew.cli import main
from unskew.rankers.lambdamart.ranker import UnbiasedLambdaMART


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The folder of a small model."""
    folder = tmp_path_factory.mktemp("models") / "shop"
    settings = {"n_estimators": 8, "verbose": 0, "n_jobs": 1, "random_state": 0}
    UnbiasedLambdaMART(**settings, min_data_in_leaf=5).fit(random_log(0)).save(folder)
    return str(folder)


def run(*arguments):
    """Run the program; returns its exit code."""
    with pytest.raises(SystemExit) as ended:
        main([str(a) for a in arguments])
    return ended.value.code


def test_export_and_check(model, tmp_path, capsys):
    """An export can be checked at once, and later by its folder alone."""
    out = tmp_path / "for-solr"
    assert run("export", model, "--to", "solr", "-o", out, "--version", "9.4", "--check") == 0
    first = capsys.readouterr().out
    assert "exported to" in first
    assert "200 samples scored as Solr 9.2 does: largest difference" in first
    assert run("export", out, "--check") == 0
    assert "largest difference" in capsys.readouterr().out
    assert json.loads((out / "model.json").read_text())["name"] == "for-solr"


def test_name_in_the_engine(model, tmp_path):
    """The model's name in the other system can be chosen."""
    assert run("export", model, "--to", "opensearch", "-o", tmp_path / "o", "--name", "shop-7") == 0
    assert json.loads((tmp_path / "o" / "model.json").read_text())["model"]["name"] == "shop-7"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--to", "solar", "-o", "x"), "there is no format 'solar' (did you mean 'solr'?)"),
        (("--to", "solr", "--version", "3", "-o", "x"), "version 3 of Solr is not known"),
        (("--to", "solr"), "--out is needed"),
        ((), "--to is needed"),
    ],
)
def test_wrong_calls(model, arguments, message, capsys):
    """A wrong call ends with code 2 and says what is wrong."""
    assert run("export", model, *arguments) == 2
    assert message in capsys.readouterr().err.replace("\n", " ")


def test_checking_what_is_no_export(model, capsys):
    """A model folder is no export, and the message says so."""
    assert run("export", model, "--check") == 1
    assert "holds 'lambdamart', but 'export' was asked for" in capsys.readouterr().err
