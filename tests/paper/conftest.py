"""A miniature of the study: everything runs, nothing means anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from unskew.datasets.opening import EIGHTHS, GeneratedSize, open_labelled
from unskew.paper.experiments import EXPERIMENTS, runs_of
from unskew.paper.profiles import Profile
from unskew.paper.running import run_all
from unskew.paper.runs import Study

MINIATURE = Profile(
    "miniature",
    "seconds",
    seeds=2,
    sessions=400,
    p_values=(0.0, 1.0),
    thetas=(0.0, 1.0),
    betas=(0.5, 1.0),
    shares=(0.5, 1.0),
    lists=("weak", "ideal"),
    peer_share=0.5,
    trees=3,
    epochs=3,
    patience=2,
    generated=GeneratedSize(40, 16, 8.0),
)


@pytest.fixture(scope="session")
def study() -> Study:
    """The study of the miniature."""
    source = open_labelled("generated", dataset=None, size=MINIATURE.generated, split=EIGHTHS)
    return Study(source, MINIATURE, threads=1)


@pytest.fixture(scope="session")
def done(study: Study, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the results of every experiment; tests must not change it."""
    folder = tmp_path_factory.mktemp("paper")
    run_all(study, runs_of(study, list(EXPERIMENTS)), folder, jobs=1)
    return folder
