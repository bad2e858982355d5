"""`unskew paper`: what a user types and reads."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from unskew.cli.app import app, main
from unskew.paper.experiments import FIGURES

runner = CliRunner()


def test_the_help_names_every_figure():
    """Table, figure, all, render; and the names of the figures."""
    text = runner.invoke(app, ["paper", "--help"]).output
    for command in ("table", "figure", "all", "render"):
        assert command in text
    text = " ".join(runner.invoke(app, ["paper", "figure", "--help"]).output.split())
    for name in FIGURES:
        assert name in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["figure", "biass"], "there is no figure 'biass': choose from reranking, bias"),
        (["table", "--profile", "fast"], "--profile must be one of quick, full, yahoo"),
        (["table", "--data", "nowhere"], "nowhere is not there"),
        (["render", "-o", "nowhere"], "holds no results"),
    ],
)
def test_a_wrong_call_is_explained(arguments, message, capsys, tmp_path, monkeypatch):
    """The error says what is wrong and what to give instead, and nothing is written."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["paper", *arguments])
    assert ended.value.code in (1, 2)
    assert message in " ".join(capsys.readouterr().err.split())
    assert not list(tmp_path.iterdir())


def test_a_figure_from_nothing(tmp_path, capsys, monkeypatch):
    """One command trains, draws and prints; the second time it only draws."""
    monkeypatch.setattr("unskew.paper.running.os.cpu_count", lambda: 1)
    call = [
        "paper", "figure", "bias", "--queries", "40", "--sessions", "300", "--seeds", "1", "--jobs",
        "1", "-o", str(tmp_path),
    ]  # fmt: skip
    for done in (0, 3):
        with pytest.raises(SystemExit) as ended:
            main(call)
        assert ended.value.code == 0
        captured = capsys.readouterr()
        assert "t_minus" in captured.out
        assert f"3 runs, {done} of them are done already" in captured.err
    for name in ("results.parquet", "results.md", "report.html", "bias.png", "bias.svg"):
        assert (tmp_path / name).is_file()
