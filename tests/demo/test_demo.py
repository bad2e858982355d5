"""The demo: what it shows is what it found, and debiasing wins."""

from __future__ import annotations

import re

import numpy as np
import pytest

from unskew.cli import main
from unskew.demo import story as story_module
from unskew.demo.page import demo_page
from unskew.demo.story import CLICKS, DEBIASED, LABELS, Setting, tell


@pytest.fixture(scope="module")
def story():
    """The demo as it is shipped, on a seed that is not the shipped one."""
    return tell(3)


def test_debiasing_beats_raw_clicks(story):
    """The interval of the gain excludes zero; labels are better still."""
    assert story.gain.interval.low > 0
    assert story.gain.p_corrected < 0.01
    mean = {name: found.mean["ndcg@10"] for name, found in story.evaluations.items()}
    assert mean[CLICKS] < mean[DEBIASED] < mean[LABELS]


def test_bias_curves(story):
    """The true curve is the eye-tracking one, and the estimate falls with it."""
    assert story.true_bias[:2] == pytest.approx([1.0, 0.61 / 0.68])
    estimate = story.estimated_bias.t_plus
    assert np.corrcoef(estimate, story.true_bias)[0, 1] > 0.95


def test_results_move(story):
    """Raw clicks keep the logged order more than debiasing does, the grades least."""
    spread = {name: ranks[-1] - ranks[0] for name, ranks in story.average_ranks.items()}
    assert spread[CLICKS] > spread[DEBIASED] > spread["by grade"] > 0


def test_report(story):
    """The page holds the table and the pictures, and loads nothing."""
    html = demo_page(story)
    mean = story.evaluations[DEBIASED].mean["ndcg@10"]
    assert f"{mean:.4f}" in html
    assert html.count("<svg") == 3
    assert not re.search(r"(src|href)=|url\(|@import|<script", html)


def test_command(tmp_path, capsys, monkeypatch):
    """The command prints the tables and the path of the report it wrote."""
    small = Setting(n_train=60, n_test=40, sessions=2_000, n_estimators=5)
    monkeypatch.setattr(story_module, "Setting", lambda: small)
    with pytest.raises(SystemExit) as end:
        main(["demo", "-o", str(tmp_path / "out"), "--seed", "2"])
    assert end.value.code == 0
    shown = capsys.readouterr()
    report = tmp_path / "out" / "report.html"
    assert report.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert str(report) in shown.out.replace("\n", "")
    for word in ("raw clicks", "Pairwise Debiasing", "labels", "position bias"):
        assert word in shown.out
    assert "training on" in shown.err
