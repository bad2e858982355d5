"""A new log beside the one of the training: what moved is told, and what did not is left alone."""

from __future__ import annotations

import json
import re

import numpy as np
import pyarrow as pa
import pytest

import unskew
from logs import random_log
from unskew.log import log_summary
from unskew.log.drift import compare_log, stability_index
from unskew.log.keys import key_hashes
from unskew.log.log_summary import IdSample, LogSummary

SIZE = 6


def log(seed, n=800, *, scale=1.0, gap=0.0, ctr=0.3, first=1, docs=(0, 400), kinds="abc", **extra):
    """Sessions of one world, which the settings move."""
    rng = np.random.default_rng(seed)
    doc = np.concatenate([rng.choice(np.arange(*docs), SIZE, replace=False) for _ in range(n)])
    position = np.tile(np.arange(SIZE) + first, n)
    quality = np.sin(doc)
    price = np.exp(0.3 * quality) * scale
    price[rng.random(len(price)) < gap] = np.nan
    kind = np.array(list(kinds))[doc % len(kinds)]
    click = rng.random(n * SIZE) < ctr * (0.5 + 0.5 * (quality > 0)) / np.sqrt(position)
    columns = {
        "session": np.repeat(np.arange(n), SIZE), "query": np.repeat(rng.integers(0, 40, n), SIZE),
        "doc": doc, "position": position, "click": click.astype(int),
        "price": price, "kind": pa.array(kind).dictionary_encode(), **extra,
    }  # fmt: skip
    return unskew.read_log(pa.table(columns))


@pytest.fixture(scope="module")
def before():
    """What a model remembers."""
    return LogSummary.of(log(0))


NAMES = ("price", "kind")


@pytest.mark.parametrize("seed", range(1, 9))
def test_the_same_world_is_no_reason(before, seed):
    """Another day of the same world, large or small, is no reason to train again."""
    for n in (60, 800):
        found = compare_log(log(seed, n), NAMES, before)
        assert found.reasons == []
        assert not found.retrain
        assert max(one.stability_index for one in found.features) < 0.1
        assert found.unseen_documents == 0
        assert found.unseen_queries == 0


@pytest.mark.parametrize(
    ("moved", "reason"),
    [
        ({"scale": 1.5}, r"1 of 2 features moved \(stability index above 0.25\): price"),
        ({"gap": 0.6}, "1 of 2 features moved.*price"),
        ({"kinds": "cde"}, "1 of 2 features moved.*kind"),
        ({"ctr": 0.6}, "the CTR of a position moved by .*% on average"),
        ({"first": 4}, "results stand at other positions than in training"),
        ({"docs": (350, 750)}, "of what is shown are documents that the model never saw"),
    ],
)
def test_a_world_that_moved(before, moved, reason):
    """Each kind of change is told for what it is."""
    found = compare_log(log(1, **moved), NAMES, before)
    assert found.retrain
    (told,) = [text for text in found.reasons if text]
    assert re.search(reason, told)


def test_features_that_are_not_there(before):
    """A feature that the log lacks is a reason, one that the model does not know is none."""
    data = log(1, weight_kg=np.ones(800 * SIZE))
    found = compare_log(data, ("price", "kind", "stars"), before)
    assert found.lost_features == ["stars"]
    assert found.new_features == ["weight_kg"]
    assert found.reasons == ["1 of the model's features are not in the log: stars"]


def test_a_model_that_remembers_nothing():
    """Without a summary only the features are compared, and no number is invented."""
    found = compare_log(log(1), ("price", "kind"), None)
    assert not found.compared
    assert found.ctr_before is None
    assert found.features == ()
    assert found.to_dict()["retrain"] is False


def test_a_summary_as_json(before):
    """A summary comes back from JSON as it was."""
    assert LogSummary.from_dict(json.loads(json.dumps(before.to_dict()))) == before


def test_shares_by_hand():
    """Ten documents of equal exposure fill ten classes; a missing value has one of its own."""
    columns = {
        "session": [1] * 11, "query": [1] * 11, "doc": np.arange(11), "position": np.arange(1, 12),
        "click": [1] + [0] * 10, "x": [*map(float, range(10)), np.nan],
    }  # fmt: skip
    classes = LogSummary.of(unskew.read_log(pa.table(columns))).features["x"]
    assert classes.edges == tuple(map(float, range(9)))
    assert classes.shares == pytest.approx([1 / 11] * 11)


def test_the_index_by_hand():
    """(0.5 - 0.2) log(0.5 / 0.2) + (0.5 - 0.8) log(0.5 / 0.8), less what chance gives."""
    exact = 0.3 * np.log(2.5) - 0.3 * np.log(0.625)
    assert stability_index([0.2, 0.8], [0.5, 0.5], 10**9, 10**9) == pytest.approx(exact)
    assert stability_index([0.2, 0.8], [0.5, 0.5], 100, 100) == pytest.approx(exact - 0.02)
    assert stability_index([0.5, 0.5], [0.5, 0.5], 10, 10) == 0


def test_a_sample_of_many_ids():
    """A sample of a few thousand ids judges the share of new ones among very many."""
    sample = IdSample.of(np.arange(100_000))
    assert 1000 < len(sample.hashes) <= 4096
    new = np.arange(60_000, 140_000)
    judged, share = sample.unseen(new, np.ones(len(new)))
    assert judged > 1000
    assert share == pytest.approx(0.5, abs=0.05)


def test_ids_are_the_same_as_number_and_text():
    """An id hashes alike whether it was read as a number or as text."""
    assert (key_hashes(np.array([7, 8])) == key_hashes(np.array(["7", "8"], dtype=object))).all()
    assert len(set(key_hashes(np.array(["🦊", "007", "7"], dtype=object)).tolist())) == 3
    odd = np.array(["", "\ud800", "a", "aa", "a\0"], dtype=object)
    assert len(set(key_hashes(odd).tolist())) == 5
    assert len(key_hashes(np.empty(0, dtype=object))) == 0
    largest = np.array([2**64 - 1, 7], dtype=np.uint64)
    assert (key_hashes(largest) == key_hashes(np.array([str(2**64 - 1), "7"], dtype=object))).all()


def test_classes_of_a_large_log_rest_on_a_sample(monkeypatch):
    """Edges and shares of a part of the documents are about those of all."""
    data = random_log(5, n_queries=60, sessions_per_query=30)
    whole = LogSummary.of(data)
    monkeypatch.setattr(log_summary, "_MOST_DOCUMENTS", len(data.documents) // 2)
    part = LogSummary.of(data)
    assert part.n_documents == len(data.documents) // 2
    for name, classes in whole.features.items():
        assert part.features[name].edges != classes.edges
        weight = log_summary.shown_documents(data)
        k = data.features.names.index(name)
        shares = part.features[name].shares_of(data.features, k, weight)
        assert shares == pytest.approx(part.features[name].shares, abs=0.1)
    assert (part.documents, part.queries) == (whole.documents, whole.queries)


def test_samples_of_parts_are_the_sample_of_all():
    """Samples of ids in any pieces, sharing some, join to the sample of all ids."""
    ids = np.arange(30_000)
    pieces = [IdSample.of(part) for part in (ids[:20_000], ids[15_000:], ids[:10])]
    assert pieces[0].halvings > pieces[2].halvings
    assert IdSample.joined(pieces) == IdSample.of(ids)
    assert IdSample.joined([]).hashes == frozenset()
