"""Interleaving: two rankings become one list, and each document remembers who put it there.

A click then votes for a ranker. Every user compares both rankers on the same page, which is why far
fewer sessions are needed than in an A/B test.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unskew.errors import DataError, UsageError

A, B = "A", "B"
TEAMS = (A, B)

# The exponent of probabilistic interleaving in the paper that introduced it.
SOFTNESS = 3.0


@dataclass(frozen=True)
class Mixed:
    """One list out of two.

    ``team`` is ``"A"``, ``"B"``, or None for a document that both rankers put there alike. ``credit`` is
    what a click on the document says: 1 for A, -1 for B, or something between.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.online import Mixed, team_draft
    >>> mixed = team_draft(["x", "y"], ["y", "z"], np.random.default_rng(0), length=2)
    >>> isinstance(mixed, Mixed), len(mixed.doc), len(mixed.team)
    (True, 2, 2)

    """

    doc: tuple[Any, ...]
    team: tuple[str | None, ...]
    credit: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        """The list as plain values."""
        return {"doc": list(self.doc), "team": list(self.team), "credit": list(self.credit)}


def team_draft(
    a: Sequence[Hashable],
    b: Sequence[Hashable],
    rng: np.random.Generator,
    *,
    length: int | None = None,
) -> Mixed:
    """Team-draft interleaving (Radlinski, Kurup and Joachims, CIKM 2008).

    In every round a coin decides who picks first; then each ranker in turn adds its best document that
    is not yet there, as captains choose teams. ``length`` cuts the list.

    >>> rng = np.random.default_rng(0)
    >>> mixed = team_draft(["x", "y", "z"], ["y", "x", "z"], rng)
    >>> sorted(mixed.doc), len(mixed.team)
    (['x', 'y', 'z'], 3)
    """
    lists = _checked(a, b)
    size = _length(lists, length)
    doc: list[Any] = []
    team: list[str] = []
    there: set[Any] = set()
    heads = [0, 0]
    while len(doc) < size:
        first = int(rng.integers(2))
        for picker in (first, 1 - first):
            head = _next(lists[picker], heads[picker], there)
            heads[picker] = head
            if head < len(lists[picker]) and len(doc) < size:
                doc.append(lists[picker][head])
                team.append(TEAMS[picker])
                there.add(doc[-1])
    return Mixed(tuple(doc), tuple(team), tuple(1.0 if t == A else -1.0 for t in team))


def competitive_pairs(
    a: Sequence[Hashable],
    b: Sequence[Hashable],
    rng: np.random.Generator,
    *,
    length: int | None = None,
) -> Mixed:
    """Team draft in which only documents the rankers disagree on belong to a team.

    Where both would pick the same document it is shown and belongs to nobody. Where they differ, the two
    picks stand side by side, a coin deciding which is above: a competitive pair. A pick whose partner
    does not fit on the page, or whose opponent has no document left, belongs to nobody either. Airbnb
    (Zhang et al. 2025, arXiv 2508.00751) and GrowthBook give credit this way.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.online import competitive_pairs
    >>> mixed = competitive_pairs(["x", "y", "z"], ["y", "x", "z"], np.random.default_rng(0))
    >>> sorted(mixed.doc)
    ['x', 'y', 'z']

    """
    lists = _checked(a, b)
    size = _length(lists, length)
    doc: list[Any] = []
    team: list[str | None] = []
    there: set[Any] = set()
    heads = [0, 0]
    while len(doc) < size:
        for k in (0, 1):
            heads[k] = _next(lists[k], heads[k], there)
        picks = [lists[k][heads[k]] for k in (0, 1) if heads[k] < len(lists[k])]
        if len(picks) == 2 and picks[0] != picks[1]:
            first = int(rng.integers(2))
            fits = len(doc) + 2 <= size
            for k in (first, 1 - first)[: 2 if fits else 1]:
                doc.append(picks[k])
                team.append(TEAMS[k] if fits else None)
        else:
            doc.append(picks[0])
            team.append(None)
        there.update(doc[-2:])
    credit = tuple(0.0 if t is None else 1.0 if t == A else -1.0 for t in team)
    return Mixed(tuple(doc), tuple(team), credit)


def probabilistic(
    a: Sequence[Hashable],
    b: Sequence[Hashable],
    rng: np.random.Generator,
    *,
    length: int | None = None,
    softness: float = SOFTNESS,
) -> Mixed:
    """Probabilistic interleaving (Hofmann, Whiteson and de Rijke, CIKM 2011).

    Each ranker becomes a distribution over the documents that are left, P(d) in proportion to
    rank(d) ** -softness. For every place a coin chooses a ranker, which draws a document. Every order of
    the documents can occur, so no pair of rankings goes unnoticed.

    The credit of a click is its expectation over the coins that the list leaves open,

        credit = (P_A(d) - P_B(d)) / (P_A(d) + P_B(d))

    which has less variance than the coin that was thrown.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.online import probabilistic
    >>> mixed = probabilistic(["x", "y", "z"], ["y", "x", "z"], np.random.default_rng(0), length=2)
    >>> len(mixed.doc), len(mixed.credit)
    (2, 2)

    """
    if not 0 < softness < float("inf"):
        raise UsageError(f"softness must be above 0, got {softness}")
    lists = _checked(a, b)
    size = _length(lists, length)
    documents = list(dict.fromkeys([*lists[0], *lists[1]]))
    weight = np.zeros((2, len(documents)))
    for k in (0, 1):
        place = {document: rank for rank, document in enumerate(lists[k], start=1)}
        weight[k] = [place[d] ** -softness if d in place else 0.0 for d in documents]
    doc, team, credit = [], [], []
    for _ in range(size):
        total = weight.sum(axis=1)
        chance = np.divide(
            weight, total[:, None], out=np.zeros_like(weight), where=total[:, None] > 0
        )
        picker = int(rng.integers(2))
        if not total[picker]:  # this ranker has no document left
            picker = 1 - picker
        at = int(rng.choice(len(documents), p=chance[picker]))
        doc.append(documents[at])
        team.append(TEAMS[picker])
        credit.append(float((chance[0, at] - chance[1, at]) / (chance[0, at] + chance[1, at])))
        weight[:, at] = 0.0
    return Mixed(tuple(doc), tuple(team), tuple(credit))


METHODS: Mapping[str, Callable[..., Mixed]] = {
    "team-draft": team_draft,
    "competitive-pairs": competitive_pairs,
    "probabilistic": probabilistic,
}


def _checked(a: Sequence[Hashable], b: Sequence[Hashable]) -> tuple[list[Any], list[Any]]:
    lists = (list(a), list(b))
    for name, ranking in zip(TEAMS, lists, strict=True):
        if not ranking:
            raise DataError(f"ranking {name} is empty; interleaving needs two rankings")
        seen: set[Any] = set()
        for rank, document in enumerate(ranking, start=1):
            if document in seen:
                raise DataError(
                    f"ranking {name} has document {document!r} twice, again at rank {rank}; each "
                    "document may stand in a ranking once"
                )
            seen.add(document)
    return lists


def _length(lists: tuple[list[Any], list[Any]], length: int | None) -> int:
    if length is not None and length < 1:
        raise UsageError(f"length must be 1 or more, got {length}")
    most = len({*lists[0], *lists[1]})
    return most if length is None else min(length, most)


def _next(ranking: Sequence[Any], head: int, there: set[Any]) -> int:
    """The place of the best document that is not yet in the list, from ``head`` on."""
    while head < len(ranking) and ranking[head] in there:
        head += 1
    return head
