"""Logs for the tests of fitted click models."""

from __future__ import annotations

from typing import Any

import numpy as np

import unskew
from labelled_data import make_data
from unskew.clicks import ClickModel
from unskew.log.impressions import Impressions
from unskew.log.labelled import LabelledData


def shuffled_log(
    model: ClickModel, *, sessions: int = 60_000, seed: int = 1
) -> tuple[Impressions, LabelledData]:
    """Clicks of a model on shuffled pages of ten of few documents, and the labels behind them."""
    labels = make_data(n_queries=8, docs=10, seed=3)
    policy = unskew.simulate.random_policy(labels, length=10)
    table = unskew.simulate.sample(labels, model=model, policy=policy, sessions=sessions, seed=seed)
    context = "context" if model.contexts else None
    return unskew.read_log(table, context=context), labels


def log_of(rows: list[dict[str, Any]], **columns: str) -> Impressions:
    """A log of rows with the fields session, query, doc, position, click and perhaps others."""
    found = {name: [row[name] for row in rows] for name in rows[0]}
    return Impressions.from_arrays(None, found.pop("click"), **found)


def fixed_pages(click: np.ndarray) -> Impressions:
    """One page of one query, shown as often as ``click`` has rows."""
    n, length = click.shape
    return Impressions.from_arrays(
        None,
        click.ravel(),
        session=np.repeat(np.arange(n), length),
        query=["q"] * click.size,
        doc=np.tile(np.arange(length), n),
        position=np.tile(np.arange(1, length + 1), n),
    )


def moving_pages(click: np.ndarray, seed: int = 0) -> Impressions:
    """Pages of one query in a random order in each session."""
    n, length = click.shape
    rng = np.random.default_rng(seed)
    doc = np.array([rng.permutation(length) for _ in range(n)])
    return Impressions.from_arrays(
        None,
        click.ravel(),
        session=np.repeat(np.arange(n), length),
        query=["q"] * click.size,
        doc=doc.ravel(),
        position=np.tile(np.arange(1, length + 1), n),
    )
