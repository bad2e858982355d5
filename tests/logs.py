"""Small random click logs, and the plainest way to turn sessions into Impressions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from unskew.evaluation.reference import doubly_robust_dcg_of_query
from unskew.log.features import Features
from unskew.log.impressions import Documents, Impressions, Pages, Patterns
from unskew.pairs.reference import ClickedPage

DOCUMENTS_PER_QUERY = 10


def random_sessions(
    rng: np.random.Generator,
    *,
    n_queries: int = 6,
    sessions_per_query: int = 12,
    longest_page: int = 8,
    highest_grade: int = 3,
    gaps: bool = True,
    weights: bool = True,
) -> list[ClickedPage]:
    """Sessions with everything a log may hold.

    Pages of several lengths that share documents, positions with gaps, graded clicks, weights,
    sessions without a click, with one, and with every result clicked.
    """
    sessions = []
    for query in range(n_queries):
        documents = query * DOCUMENTS_PER_QUERY + np.arange(DOCUMENTS_PER_QUERY)
        pages = [
            rng.choice(documents, size=rng.integers(1, longest_page + 1), replace=False)
            for _ in range(4)
        ]
        for _ in range(sessions_per_query):
            page = pages[rng.integers(len(pages))]
            steps = rng.integers(1, 4 if gaps else 2, size=len(page))
            if not gaps or rng.random() < 0.5:
                steps[:] = 1
            chance = rng.choice([0.0, 0.3, 1.0], p=[0.1, 0.8, 0.1])
            clicked = rng.random(len(page)) < chance
            grade = clicked * rng.integers(1, highest_grade + 1, size=len(page))
            weight = float(rng.choice([0.5, 1.0, 2.5])) if weights else 1.0
            sessions.append(
                ClickedPage(
                    tuple(page.tolist()), tuple(np.cumsum(steps).tolist()),
                    tuple(grade.tolist()), weight,
                )
            )  # fmt: skip
    return sessions


def impressions_of(
    sessions: Sequence[ClickedPage], values: np.ndarray, names: Sequence[str] | None = None
) -> Impressions:
    """Group sessions into Impressions; row d of ``values`` holds the features of document d."""
    shown = sorted({(s.document, s.position) for s in sessions})
    page_of = {page: number for number, page in enumerate(shown)}
    patterns = Counter(
        (page_of[s.document, s.position], s.weight, tuple(enumerate(s.grade))) for s in sessions
    )
    kept = sorted(patterns)
    clicks = [[(slot, grade) for slot, grade in grades if grade] for _, _, grades in kept]
    query = np.arange(len(values), dtype=np.int32) // DOCUMENTS_PER_QUERY
    names = tuple(names or (f"f{k}" for k in range(values.shape[1])))
    return Impressions(
        queries=np.arange(query.max() + 1),
        contexts=np.empty(0, dtype=object),
        documents=Documents(query, np.arange(len(values)), Features(values, names)),
        pages=Pages(
            query=query[[document[0] for document, _ in shown]],
            offsets=_offsets([len(document) for document, _ in shown]),
            document=np.array([d for document, _ in shown for d in document], dtype=np.int32),
            position=np.array([k for _, position in shown for k in position], dtype=np.int32),
        ),
        patterns=Patterns(
            page=np.array([page for page, _, _ in kept], dtype=np.int32),
            context=np.full(len(kept), -1, dtype=np.int32),
            weight=np.array([weight for _, weight, _ in kept]),
            count=np.array([patterns[pattern] for pattern in kept]),
            offsets=_offsets([len(pattern) for pattern in clicks]),
            slot=np.array([slot for pattern in clicks for slot, _ in pattern], dtype=np.int32),
            grade=np.array([grade for pattern in clicks for _, grade in pattern], dtype=np.uint8),
        ),
    )


def random_log(
    seed: int, *, n_queries: int = 40, sessions_per_query: int = 20, n_features: int = 5
) -> Impressions:
    """A log whose clicks depend on the features and, more and more weakly, on the position."""
    rng = np.random.default_rng(seed)
    n = n_queries * DOCUMENTS_PER_QUERY
    values = rng.normal(size=(n, n_features))
    relevance = 1 / (1 + np.exp(-2 * values[:, 0] - values[:, 1]))
    sessions = []
    for query in range(n_queries):
        documents = query * DOCUMENTS_PER_QUERY + np.arange(DOCUMENTS_PER_QUERY)
        page = documents[np.argsort(-values[documents, 1], kind="stable")]
        chance = relevance[page] / np.arange(1, len(page) + 1)
        for _ in range(sessions_per_query):
            grade = (rng.random(len(page)) < chance).astype(int)
            sessions.append(
                ClickedPage(tuple(page.tolist()), tuple(range(1, 11)), tuple(grade.tolist()))
            )
    return impressions_of(sessions, values)


def pairs_log(click: Sequence[int], session: Sequence[int], query: Sequence[int]) -> Impressions:
    """A log of a few rows, two results a page."""
    n = len(click)
    return Impressions.from_arrays(
        np.arange(n)[:, None].astype(float), click, session=session, query=query,
        doc=np.arange(n), position=[1, 2] * (n // 2),
    )  # fmt: skip


def doubly_robust_dcg(
    data: Impressions,
    score: np.ndarray,
    theta: Sequence[float],
    prediction: np.ndarray,
    *,
    k: int = 10,
    clip: float = 0.1,
) -> tuple[np.ndarray, np.ndarray]:
    """The doubly robust DCG of every query by the readable twin, and how many sessions each has."""
    pages = data.pages
    sessions: list[list[list[tuple[int, int, int]]]] = [[] for _ in data.queries]
    for one in data.sessions():
        document = pages.document[pages.offsets[one.page] : pages.offsets[one.page + 1]]
        shown = zip(document.tolist(), one.position, strict=True)
        sessions[pages.query[one.page]].append([(d, at, int(at in one.clicked)) for d, at in shown])
    found = [
        doubly_robust_dcg_of_query(
            some, dict(enumerate(score)), list(theta), dict(enumerate(prediction)), k=k, clip=clip
        )
        for some in sessions
    ]
    return np.array(found), np.array([len(some) for some in sessions])


def _offsets(sizes: Sequence[int]) -> np.ndarray:
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)


def logged_pages(query: np.ndarray, page: np.ndarray, click: np.ndarray) -> Impressions:
    """Sessions of equal length without features: ``page`` has the places of documents in a query."""
    n = page.shape[1]
    return Impressions.from_arrays(
        None, click.ravel().astype(int), session=np.repeat(np.arange(len(query)), n),
        query=np.repeat(query, n), doc=(query[:, None] * n + page).ravel(),
        position=np.tile(np.arange(1, n + 1), len(query)),
    )  # fmt: skip


def by_hand(click, position, doc, session, query=None):
    """Impressions of a handful of rows."""
    doc = np.asarray(doc)
    return Impressions.from_arrays(
        doc[:, None].astype(float),
        np.asarray(click),
        session=np.asarray(session),
        query=np.zeros(len(doc), int) if query is None else np.asarray(query),
        doc=doc,
        position=np.asarray(position),
    )
