"""Cells and counts against plain loops over sessions."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from unskew.clicks.fitting.cells import States, cells_of
from unskew.clicks.fitting.log_clicks import LogClicks
from unskew.clicks.fitting.movement import linked_states
from unskew.clicks.fitting.walks import chain_counts
from unskew.log.impressions import Impressions

N_POSITIONS = 4


@pytest.fixture
def data() -> Impressions:
    """Sessions with gaps in positions, positions beyond the last, contexts, weights and versions."""
    rng = np.random.default_rng(5)
    rows = []
    for session in range(300):
        length = int(rng.integers(1, 6))
        position = np.sort(rng.choice(np.arange(1, 8), length, replace=False))
        docs = rng.choice(7, length, replace=False)
        context = ["phone", "desktop"][session % 2]
        weight = [1.0, 2.5][session % 3 == 0]
        for k in range(length):
            click = int(rng.random() < 0.35)
            rows.append((session, session % 4, docs[k], position[k], click, weight, context))
    session, query, doc, position, click, weight, context = map(np.array, zip(*rows, strict=True))
    feature = rng.integers(0, 2, len(rows)).astype(float)[:, None]
    return Impressions.from_arrays(
        feature, click.astype(int), session=session, query=query, doc=doc, position=position,
        weight=weight.astype(float), context=context,
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["position", "last click", "context"])
def test_cells_are_the_sums_over_sessions(data: Impressions, kind: str) -> None:
    """Each cell counts the sessions that showed a document in a state, and those that clicked it."""
    shown: Counter = Counter()
    clicks: Counter = Counter()
    for session in data.sessions():
        last = 0
        for doc, position in zip(session.doc, session.position, strict=True):
            k = min(position, N_POSITIONS)
            more = {
                "position": None,
                "last click": min(last, k - 1),
                "context": session.context,
            }[kind]
            key = (session.query, doc, k, more)
            shown[key] += session.weight
            if position in session.clicked:
                clicks[key] += session.weight
                last = position
    states = {
        "position": States.by_position(N_POSITIONS),
        "last click": States.by_last_click(N_POSITIONS),
        "context": States.by_context(N_POSITIONS, data.contexts),
    }[kind]
    log = LogClicks(data, by_version=False)
    cells = cells_of(log, states)
    found = {}
    for d, s, n, c in zip(*cells, strict=True):
        more = None
        if states.last_click is not None:
            more = states.last_click[s]
        elif states.context is not None:
            more = states.contexts[states.context[s]]
        key = (data.queries[log.query[d]], log.doc[d], states.position[s], more)
        assert key not in found
        found[key] = (n, c)
    assert set(found) == set(shown)
    for key, (n, c) in found.items():
        assert (n, c) == pytest.approx((shown[key], clicks[key]))


def test_chain_counts_are_the_sums_over_sessions(data: Impressions) -> None:
    """What lies above a last click is counted as examined, by document and by place."""
    log = LogClicks(data, by_version=False)
    counts = chain_counts(log.arrays, log.n_documents, N_POSITIONS)
    number = {key: d for d, key in enumerate(zip(data.queries[log.query], log.doc, strict=True))}
    examined, clicks, passed, told = np.zeros((4, log.n_documents))
    walked, skipped = np.zeros((2, N_POSITIONS))
    silent = 0.0
    for session in data.sessions():
        if not session.clicked:
            silent += session.weight
            continue
        for doc, position in zip(session.doc, session.position, strict=True):
            d, k = number[session.query, doc], min(position, N_POSITIONS) - 1
            if position > session.clicked[-1]:
                break
            examined[d] += session.weight
            if position not in session.clicked:
                skipped[k] += session.weight
                continue
            clicks[d] += session.weight
            told[d] += session.weight * (position != session.position[-1])
            passed[d] += session.weight * (position != session.clicked[-1])
            walked[k] += session.weight * (position != session.clicked[-1])
    expected = {
        "examined": examined, "clicks": clicks, "passed": passed, "told": told, "walked": walked,
        "skipped": skipped,
    }  # fmt: skip
    for name, value in expected.items():
        assert getattr(counts, name) == pytest.approx(value), name
    assert counts.silent.sum() == pytest.approx(silent)
    assert counts.shown.sum() == pytest.approx(data.patterns.mass.sum())


def test_feature_versions_are_one_document(data: Impressions) -> None:
    """A document whose features changed is one document, or one for each version if asked."""
    assert LogClicks(data).n_documents == len(data.documents) > data.n_documents
    log = LogClicks(data, by_version=False)
    assert log.n_documents == data.n_documents == len(set(zip(log.query, log.doc, strict=True)))


def test_totals_count_every_impression_once(data: Impressions) -> None:
    """Impressions and clicks of the documents add up to those of the log."""
    shown, clicks = LogClicks(data, by_version=False).totals()
    weights = [(s.weight, len(s.doc), len(s.clicked)) for s in data.sessions()]
    assert shown.sum() == pytest.approx(sum(w * n for w, n, _ in weights))
    assert clicks.sum() == pytest.approx(sum(w * c for w, _, c in weights))


def test_links_add_up() -> None:
    """States are linked through documents and through other states."""
    document = np.array([0, 0, 1, 1, 2])
    state = np.array([0, 3, 3, 1, 2])
    assert linked_states(document, state, n_documents=3, n_states=5).tolist() == [0, 0, 2, 0, 4]
