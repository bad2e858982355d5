"""Folders that version 0.1.0 saved: each loads, scores as then, and is saved anew."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import unskew
from unskew.registry import ranker_name
from unskew.store import read_kind

SAVED = Path(__file__).with_name("saved_by_0_1_0")
EXPECTED = json.loads((SAVED / "expected.json").read_text(encoding="utf-8"))


def close(found, expected, digits=12):
    """Equal to so many digits."""
    np.testing.assert_allclose(found, expected, rtol=10.0**-digits, atol=0)


def as_expected(ranker, name, data):
    """Scores, biases and rounds are those of the ranker that was saved.

    A network adds up numbers of seven digits, in an order that follows from the processor.
    """
    expected = EXPECTED[name]
    close(ranker.predict(data), expected["score"], digits=5 if name.startswith("neural") else 12)
    close(ranker.t_plus_, expected["t_plus"])
    close(ranker.t_minus_, expected["t_minus"])
    assert len(ranker.bias_history_) == expected["rounds"]
    assert ranker.best_round_ == expected.get("best_round")
    assert bool(ranker.validation_history_) == ("best_round" in expected)


@pytest.fixture(scope="module")
def data():
    """The log that the rankers were trained on, itself a folder of 0.1.0."""
    return unskew.load(SAVED / "impressions")


@pytest.mark.parametrize("name", EXPECTED)
def test_a_ranker_of_0_1_0_comes_back(name, data, tmp_path):
    """It scores as then; saved over a folder of the old kind it has the new one and loads again."""
    if name.startswith("neural"):
        pytest.importorskip("torch")
    ranker = unskew.load(SAVED / name)
    as_expected(ranker, name, data)
    old = tmp_path / "model"
    old.mkdir()
    for file in (SAVED / name).iterdir():
        (old / file.name).write_bytes(file.read_bytes())
    ranker.save(old)
    assert read_kind(old) == ranker_name(ranker)
    as_expected(unskew.load(old), name, data)


def test_every_sample_is_expected():
    """No sample lies there unread."""
    folders = {path.name for path in SAVED.iterdir() if path.is_dir()}
    assert folders == {"impressions", *EXPECTED}
