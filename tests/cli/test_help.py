"""The help: every option once, lists from the registries, and an answer at once."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from unskew.cli.app import app
from unskew.clicks import CLICK_MODELS
from unskew.paper.profiles import PROFILES
from unskew.registry import METHODS, RANKERS
from unskew.trees.boosters import BOOSTERS

READ_A_LOG = ("inspect", "compact", "bias", "clicks", "train", "evaluate")


def parameters(command):
    """The parameters of a command, by name."""
    return {p.name: p for p in typer.main.get_command(app).commands[command].params}


def help_of(*command):
    """The help of a command on one line."""
    result = CliRunner().invoke(app, [*command, "--help"], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    return " ".join(result.output.split())


@pytest.mark.parametrize("command", READ_A_LOG)
def test_commands_that_read_a_log_have_the_same_options(command):
    """Names, defaults, help texts and panels of reading are those of `inspect`."""
    expected, found = parameters("inspect"), parameters(command)
    for name in set(expected) - {"log", "as_json", "against", "help"}:
        one, other = expected[name], found[name]
        assert (one.opts, one.default, one.help) == (other.opts, other.default, other.help)
        assert one.rich_help_panel == other.rich_help_panel


@pytest.mark.parametrize("command", [*READ_A_LOG, "demo", "simulate", "rank"])
def test_quiet_means_the_same(command):
    """Every command that takes a while can be told to show no progress."""
    assert parameters(command)["quiet"].opts == ["--quiet", "-q"]


@pytest.mark.parametrize(
    ("command", "names"),
    [
        (("train",), [*METHODS, *RANKERS, *BOOSTERS]),
        (("bias",), METHODS),
        (("clicks",), CLICK_MODELS),
        (("simulate",), [*CLICK_MODELS, "ranksvm, random, drifting, labels", "(pbm, ubm, trust)"]),
        (("paper", "table"), PROFILES),
    ],
)
def test_lists_come_from_the_registries(command, names):
    """The help names everything that can be chosen, and leaves no placeholder."""
    text = help_of(*command)
    for name in names:
        assert name in text
    assert not re.search(r"\{[a-z_]+(:\w+)?\}", text.partition("─ Options")[2])


@pytest.mark.parametrize("command", [(), ("train",), ("inspect",), ("evaluate",)])
def test_help_loads_nothing_heavy(command):
    """The help of a command answers before DuckDB, Numba, LightGBM or scikit-learn are loaded."""
    code = (
        "import sys\nfrom unskew.cli import app\nfrom typer.testing import CliRunner\n"
        f"assert CliRunner().invoke(app, [*{command!r}, '--help']).exit_code == 0\n"
        "print(*{'duckdb', 'numba', 'lightgbm', 'sklearn', 'pyarrow', 'torch'} & set(sys.modules))"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout.split() == []
