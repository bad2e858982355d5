"""The worlds of the quality study: labelled queries, users who click on lists of them, sessions."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

import unskew
from unskew.datasets.generated import WORLDS
from unskew.datasets.opening import GeneratedSize, LabelledSource, open_labelled
from unskew.datasets.tables import features_table
from unskew.log.read import read_log
from unskew.simulate import click_model, rank_svm_policy, sample, score_policy

# Generated data: queries to learn from and queries to judge, features, documents a query.
TRAINING, TEST, FEATURES, DOCUMENTS = 2_500, 2_500, 32, 16.0
FEW = 40
CLICKS = ("pbm", "cascade", "trust", "dbn")
LISTS = ("weak", "strong")
SESSIONS = (10, 100)
REAL, FOLDS = ("mq2008", "mslr178"), 5
# Where debiasing cannot help: (clicks, lists, sessions a query, queries).
HARD = {
    "no position bias": ("none", "weak", 10, TRAINING),
    "lists in the order of the grades": ("pbm", "ideal", 20, TRAINING),
    "40 queries": ("pbm", "weak", 20, FEW),
    "one session a query": ("pbm", "weak", 1, TRAINING),
}


@dataclass(frozen=True, order=True)
class Cell:
    """One condition of the study; ``seed`` also says which fold of real data."""

    seed: int
    data: str
    clicks: str
    lists: str
    sessions: int
    queries: int = TRAINING

    @property
    def hard(self) -> str | None:
        """Which of the hard conditions it is, if any."""
        mine = (self.clicks, self.lists, self.sessions, self.queries)
        return next((name for name, one in HARD.items() if one == mine), None)

    @property
    def condition(self) -> tuple[str, str, str, int, int]:
        """Everything but the seed."""
        return self.data, self.clicks, self.lists, self.sessions, self.queries

    @property
    def judged_on(self) -> tuple[str, int]:
        """The same for cells with the same test queries."""
        return self.data, self.seed % FOLDS if self.data in REAL else self.seed


class Clicked(NamedTuple):
    """Labels to judge by, labels behind the clicks, and the log."""

    train: unskew.LabelledData
    test: unskew.LabelledData
    log: unskew.Impressions


def cells(seeds: list[int]) -> list[Cell]:
    """Every cell, seed by seed, in passes that are balanced, so that a study may be cut short.

    A pass has every data set with every click model once, the lists and the sessions in turn.
    """
    found = []
    turns = [(lists, sessions) for sessions in SESSIONS for lists in LISTS]
    for seed in seeds:
        for step in range(len(turns)):
            for c, clicks in enumerate(CLICKS):
                for d, data in enumerate((*WORLDS, *REAL)):
                    lists, sessions = turns[(step + c + d) % len(turns)]
                    found.append(Cell(seed, data, clicks, lists, sessions))
            if step == 0:
                found += [Cell(seed, world, *hard) for hard in HARD.values() for world in WORLDS]
    return found


def clicked(cell: Cell) -> Clicked:
    """The labels and the clicks of a cell."""
    train, test = _labels(cell.data, cell.seed, cell.queries)
    policy = (
        score_policy(train, train.relevance, seed=cell.seed)
        if cell.lists == "ideal"
        else rank_svm_policy(
            train, train=train, share={"weak": 0.01, "strong": 1.0}[cell.lists], seed=cell.seed
        )
    )
    model = click_model(
        "pbm" if cell.clicks == "none" else cell.clicks,
        max_grade=max(1, int(train.relevance.max())),
        **({"theta": 0.0} if cell.clicks == "none" else {}),
    )
    log = sample(
        train, model=model, policy=policy, sessions=cell.sessions * train.n_queries, seed=cell.seed
    )
    return Clicked(train, test, read_log(log, features=features_table(train), progress=False))


@lru_cache(maxsize=4)
def _labels(name: str, seed: int, queries: int) -> tuple[unskew.LabelledData, unskew.LabelledData]:
    if name in REAL:
        parts = _source(name).parts(seed % FOLDS + 1, seed)
        return parts.train, parts.test
    data = unskew.datasets.make_search_dataset(
        n_queries=queries + TEST, n_features=FEATURES, docs_per_query=DOCUMENTS, seed=seed,
        world=name,  # type: ignore[arg-type]
    )  # fmt: skip
    return (
        data.take_queries(np.arange(queries)),
        data.take_queries(np.arange(queries, queries + TEST)),
    )


@lru_cache(maxsize=4)
def _source(name: str) -> LabelledSource:
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("UNSKEW_DATA", beside))
    path = folder / "mq2008" if name == "mq2008" else folder / "mslr178" / "mslr178.txt.gz"
    if not path.exists():
        sys.exit(f"{path} is not there: set UNSKEW_DATA to the folder that holds {name}")
    return open_labelled(str(path), dataset=None, size=GeneratedSize(1))
