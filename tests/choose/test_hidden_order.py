"""How much of the logged order features do not tell: against a plain twin, and where it is known."""

from __future__ import annotations

import numpy as np
import pytest

from unskew.choose.hidden_order import RIDGE, hidden_share
from unskew.datasets import make_search_dataset
from unskew.datasets.tables import features_table
from unskew.log.impressions import Impressions
from unskew.log.read import read_log
from unskew.simulate import click_model, sample, score_policy


@pytest.fixture(scope="module")
def labels():
    """Labelled queries of ten documents and more."""
    return make_search_dataset(n_queries=200, n_features=16, docs_per_query=14, seed=3)


def _hidden(data, fold):
    """What is hidden from the features alone."""
    return hidden_share(data, fold, np.zeros(len(data.documents)))


def _log(labels, score):
    """A log behind lists by such a score."""
    log = sample(
        labels, model=click_model("pbm", max_grade=4), seed=1, sessions=10 * labels.n_queries,
        policy=score_policy(labels, score, length=10),
    )  # fmt: skip
    data = read_log(log, features=features_table(labels), progress=False)
    return data, np.arange(data.n_queries) % 5


def test_features_tell_the_lists_of_a_linear_ranker(labels):
    """Most of the order can be told, and less of it if a feature of the ranker is not there."""
    weights = np.append([3.0, 2.0], np.full(14, 0.3))
    data, fold = _log(labels, labels.features.values @ weights)
    whole = _hidden(data, fold)
    assert 0.1 < whole < 0.45
    data.features.values[:, :2] = 0.0
    assert _hidden(data, fold) > whole + 0.3


def test_lists_that_only_trees_can_tell(labels):
    """What is far from the middle stands high: a score that says so tells what features cannot."""
    values = labels.features.values[:, 0]
    level = np.abs(values - np.median(values))
    data, fold = _log(labels, level)
    assert _hidden(data, fold) > 0.8
    score = np.abs(data.features.values[:, 0] - np.median(values))
    assert hidden_share(data, fold, score) < 0.5


def test_lists_by_what_no_feature_tells(labels):
    """By numbers drawn at random, the same in every session, all of it is hidden."""
    score = np.random.default_rng(0).normal(size=len(labels))
    assert _hidden(*_log(labels, score)) > 0.95


def _moving(*, told, noise, n_queries=40, n_sessions=30):
    """Lists by a feature, by a number of each document that nobody knows, and by chance."""
    rng = np.random.default_rng(5)
    values, unknown = rng.normal(size=(n_queries * 10, 4)), rng.normal(size=n_queries * 10)
    level = told * values[:, 0] + unknown * (1.0 - told)
    pages = [
        q * 10 + np.argsort(level[q * 10 : q * 10 + 10] + noise * rng.normal(size=10))
        for q in range(n_queries)
        for _ in range(n_sessions)
    ]
    rows = np.concatenate(pages)
    data = Impressions.from_arrays(
        values[rows], (rng.random(len(rows)) < 0.3).astype(int), doc=rows, query=rows // 10,
        session=np.repeat(np.arange(len(pages)), 10), position=np.tile(np.arange(1, 11), len(pages)),
    )  # fmt: skip
    return data, np.arange(data.n_queries) % 5


def test_documents_that_move_at_random_hide_nothing():
    """Lists in a new order in every session cannot be told, and know nothing either."""
    assert _hidden(*_moving(told=0.5, noise=1e9)) < 0.02


def test_one_result_a_page():
    """Where no document stands beside another there is no order to tell."""
    values = np.random.default_rng(0).normal(size=(20, 2))
    data = Impressions.from_arrays(
        values,
        [1, 0] * 10,
        session=np.arange(20),
        query=np.arange(20),
        position=np.ones(20, dtype=int),
    )
    assert _hidden(data, np.arange(20) % 2) == 0.0


@pytest.mark.parametrize("n_sessions", [1, 2, 12])
def test_against_a_plain_twin(n_sessions):
    """Every impression as a row, every sum a loop over queries."""
    data, fold = _moving(told=0.6, noise=0.5, n_sessions=n_sessions)
    mass = np.bincount(data.patterns.page, data.patterns.mass, minlength=len(data.pages))
    rows = []
    for page in range(len(data.pages)):
        for entry in range(data.pages.offsets[page], data.pages.offsets[page + 1]):
            where = -np.log(data.pages.position[entry])
            rows += [(data.documents.query[data.pages.document[entry]],
                      data.pages.document[entry], where)] * round(mass[page])  # fmt: skip
    query, doc, where = (np.array(column) for column in zip(*rows, strict=True))
    values = (data.features.values - data.features.values[np.unique(doc)].mean(0)) / (
        data.features.values[np.unique(doc)].std(0)
    )
    left = total = 0.0
    for held_out in range(5):
        gram, target = np.zeros((4, 4)), np.zeros(4)
        n = 0
        for q in np.flatnonzero(fold != held_out):
            docs = np.unique(doc[query == q])
            # The regression is of the logarithm of the mean position.
            y = np.array([-np.log(np.mean(np.exp(-where[doc == d]))) for d in docs])
            x = values[docs] - values[docs].mean(0)
            gram, target, n = gram + x.T @ x, target + x.T @ (y - y.mean()), n + len(docs)
        beta = np.linalg.solve(gram + RIDGE * n * np.eye(4), target)
        for q in np.flatnonzero(fold == held_out):
            mine, said = where[query == q], (values @ beta)[doc[query == q]]
            missed = (mine - mine.mean()) - (said - said.mean())
            for d in np.unique(doc[query == q]):
                at = doc[query == q] == d
                noise = mine[at].var() / (at.sum() - 1) if at.sum() > 1 else 0.0
                left += at.sum() * (missed[at].mean() ** 2 - noise)
            total += ((mine - mine.mean()) ** 2).sum()
    assert _hidden(data, fold) == pytest.approx(left / total, rel=0.01)
