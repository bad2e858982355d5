"""The demo: what it shows is what it found, and debiasing wins."""

from __future__ import annotations

import re

import numpy as np
import pytest

from unskew.cli import main
from unskew.demo import story as story_module
from unskew.demo.page import demo_report
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


@pytest.fixture(scope="module")
def made(story):
    """The page of the demo."""
    return demo_report(story)


def test_report(story, made):
    """The page is the report on clicks that no ranker has seen, with the truth at its end."""
    assert set(made.findings.models) == {CLICKS, DEBIASED}
    assert made.findings.data is story.held_out
    assert made.answer.best.model == DEBIASED
    assert made.answer.best.verdict == "better"
    mean = story.evaluations[LABELS].mean["ndcg@10"]
    assert f"{mean:.4f}" in made.html
    for text in ("true examination", "What debiasing changes", "How it was made"):
        assert text in made.html
    assert not re.search(r'(src|href)="(?!#)|@import|url\((?!#)', made.html)


def test_held_out_clicks_are_of_other_queries(story):
    """The clicks of the report are on queries that were not trained on."""
    assert story.held_out.n_sessions == story.setting.held_out
    assert not set(story.held_out.queries) & set(story.impressions.queries)


def test_the_estimate_is_near_the_truth(story, made):
    """The bias that judges the rankers is close to the true examination, and so is what it says."""
    curves = made.findings.curves
    assert curves.chosen == "regression-em"
    assert np.abs(curves.bias.t_plus - story.true_bias).max() < 0.08


def test_command(tmp_path, capsys, monkeypatch):
    """The command prints the tables and the path of the report it wrote."""
    small = Setting(n_train=60, n_test=40, sessions=2_000, held_out=2_000, n_estimators=5)
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
