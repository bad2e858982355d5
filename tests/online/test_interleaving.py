"""Mixed lists: what they hold, that they favour nobody, and who wins how often."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unskew.clicks import click_model
from unskew.errors import DataError, UsageError
from unskew.online import Mixed, competitive_pairs, probabilistic, read_interleaving, team_draft
from unskew.online.interleaving import METHODS

EQUALLY_LONG = {"team-draft": team_draft, "competitive-pairs": competitive_pairs}


class Coins:
    """A generator whose coins are known beforehand."""

    def __init__(self, coins: tuple[int, ...]) -> None:
        self._coins = iter(coins)

    def integers(self, _: int) -> int:
        """The next coin."""
        return next(self._coins)


def outcomes(method: Any, a: list[Any], b: list[Any], length: int | None = None) -> list[Mixed]:
    """The list of every sequence of coins, all of them equally probable."""
    rounds = len({*a, *b})
    return [method(a, b, Coins(coins), length=length) for coins in product((0, 1), repeat=rounds)]


def test_a_team_draft_by_hand() -> None:
    """A picks first, then B first: x of A, y of B, then z of B and w of A."""
    mixed = team_draft(["x", "y", "w", "z"], ["y", "x", "z", "w"], Coins((0, 1)))  # type: ignore[arg-type]
    assert mixed.doc == ("x", "y", "z", "w")
    assert mixed.team == ("A", "B", "B", "A")
    assert mixed.credit == (1.0, -1.0, -1.0, 1.0)


def test_competitive_pairs_by_hand() -> None:
    """The document both put first is nobody's; the two that follow compete, B's coin on top."""
    mixed = competitive_pairs(["x", "y", "w"], ["x", "w", "y"], Coins((1,)))  # type: ignore[arg-type]
    assert mixed.doc == ("x", "w", "y")
    assert mixed.team == (None, "B", "A")
    assert mixed.credit == (0.0, -1.0, 1.0)
    cut = competitive_pairs(["x", "y", "w"], ["x", "w", "y"], Coins((1,)), length=2)  # type: ignore[arg-type]
    assert cut.team == (None, None), "half a pair competes with nobody"


def test_probabilistic_credit_by_hand() -> None:
    """At the top, A's first and B's second document: P_A = 1 / (1 + 1/8), P_B = (1/8) / (1 + 1/8)."""
    mixed = probabilistic(["x", "y"], ["y", "x"], np.random.default_rng(0))
    top = 1.0 if mixed.doc[0] == "x" else -1.0
    assert mixed.credit[0] == pytest.approx(top * (1 - 1 / 8) / (1 + 1 / 8))
    assert mixed.credit[1] == 0.0, "both rankers can only draw the document that is left"


rankings = st.integers(1, 8).flatmap(
    lambda n: st.tuples(st.permutations(range(n)), st.permutations(range(n)))
)


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=60, deadline=None)
@given(pair=rankings, seed=st.integers(0, 2**32 - 1), length=st.integers(1, 10))
def test_lists_are_whole(method: str, pair: Any, seed: int, length: int) -> None:
    """A list has every document once, as many as asked for, and teams that differ by one at most."""
    a, b = pair
    mixed = METHODS[method](a, b, np.random.default_rng(seed), length=length)
    assert len(mixed.doc) == min(length, len(a)) == len(set(mixed.doc))
    assert set(mixed.team) <= {"A", "B", None}
    assert all(-1 <= credit <= 1 for credit in mixed.credit)
    if method != "probabilistic":
        assert abs(mixed.team.count("A") - mixed.team.count("B")) <= 1
        shown = set(mixed.doc)
        for k, ranking in enumerate((a, b)):
            own = [d for d, t in zip(mixed.doc, mixed.team, strict=True) if t == "AB"[k]]
            assert own == sorted(own, key=ranking.index), "a team's documents keep their order"
        best = {a[0], b[0]}
        assert best & shown, "the best of at least one ranker is on the page"
    again = METHODS[method](a, b, np.random.default_rng(seed), length=length)
    assert again == mixed, "same seed, same list"


@pytest.mark.parametrize("method", EQUALLY_LONG)
@settings(max_examples=40, deadline=None)
@given(pair=rankings)
def test_blind_clicks_favour_nobody(method: str, pair: Any) -> None:
    """Whatever the rankings: over all coins the credit of every position is exactly 0."""
    found = outcomes(EQUALLY_LONG[method], *map(list, pair))
    credit = np.array([mixed.credit for mixed in found])
    assert np.allclose(credit.mean(axis=0), 0.0)


def test_blind_clicks_favour_nobody_with_probabilities() -> None:
    """Probabilistic lists: the mean credit of every position is 0 within four standard errors."""
    rng = np.random.default_rng(0)
    credit = np.array([probabilistic(list("abcd"), list("dbac"), rng).credit for _ in range(4_000)])
    error = credit.std(axis=0) / np.sqrt(len(credit))
    assert (np.abs(credit.mean(axis=0)) <= 4 * error + 1e-12).all()


def test_identical_rankers_tie() -> None:
    """Identical rankers: no credit at all, or in a team draft as much for the one as the other."""
    same = list("abcde")
    for method in (competitive_pairs, probabilistic):
        assert set(method(same, same, np.random.default_rng(1)).credit) == {0.0}
    drawn = outcomes(team_draft, same, same)
    assert all(mixed.doc == tuple(same) for mixed in drawn)
    assert np.allclose(np.mean([mixed.credit for mixed in drawn], axis=0), 0.0)


def test_rankings_of_different_documents() -> None:
    """Rankers need not know the same documents; whoever has none left is passed over."""
    rng = np.random.default_rng(0)
    mixed = team_draft([1], [2, 3, 4], rng)
    assert sorted(mixed.doc) == [1, 2, 3, 4]
    assert mixed.team.count("A") == 1
    alone = competitive_pairs([1], [2, 3, 4], rng)
    assert alone.team.count("B") == 1, "without an opponent there is no competition"
    assert sorted(probabilistic([1], [2, 3, 4], rng).doc) == [1, 2, 3, 4]


@pytest.mark.parametrize("method", METHODS)
def test_wrong_rankings(method: str) -> None:
    """Empty rankings, documents twice and lengths below 1 are refused."""
    mix, rng = METHODS[method], np.random.default_rng(0)
    with pytest.raises(DataError, match="ranking B is empty"):
        mix([1], [], rng)
    with pytest.raises(DataError, match="ranking A has document 2 twice, again at rank 3"):
        mix([2, 1, 2], [1], rng)
    with pytest.raises(UsageError, match="length must be 1 or more, got 0"):
        mix([1], [1], rng, length=0)


def _click_patterns(chance: Any) -> Iterator[tuple[tuple[int, ...], float]]:
    """Every pattern of independent clicks with its probability."""
    for clicks in product((0, 1), repeat=len(chance)):
        yield clicks, float(np.prod(np.where(clicks, chance, 1 - chance)))


def _theory(method: Any, a: list[int], b: list[int], grades: dict[int, int]) -> tuple[float, float]:
    """The exact probabilities that an impression prefers A and B, over all coins and clicks."""
    model = click_model("pbm")
    lists = outcomes(method, a, b)
    wins = [0.0, 0.0]
    for mixed in lists:
        chance = model.click_probabilities([grades[d] for d in mixed.doc])
        for clicks, probability in _click_patterns(chance):
            credit = float(np.dot(clicks, mixed.credit))
            if credit:
                wins[0 if credit > 0 else 1] += probability / len(lists)
    return wins[0], wins[1]


@pytest.mark.parametrize("method", EQUALLY_LONG)
def test_the_better_ranker_wins_as_often_as_theory_says(method: str) -> None:
    """Simulated users prefer the better ranker at the rate that enumeration gives, and it wins."""
    mix = EQUALLY_LONG[method]
    a, b, grades = [0, 1, 2, 3], [1, 3, 0, 2], {0: 4, 1: 3, 2: 1, 3: 0}
    theory = _theory(mix, a, b, grades)
    assert theory[0] > theory[1], "A puts the relevant documents higher"
    model = click_model("pbm")
    rng = np.random.default_rng(7)
    n = 4_000
    rows: dict[str, list[Any]] = {"session": [], "position": [], "team": [], "click": []}
    for session in range(n):
        mixed = mix(a, b, rng)
        chance = model.click_probabilities([grades[d] for d in mixed.doc])
        rows["session"] += [session] * 4
        rows["position"] += [1, 2, 3, 4]
        rows["team"] += mixed.team
        rows["click"] += (rng.random(4) < chance).astype(int).tolist()
    found = read_interleaving(rows)
    for wins, share in zip(
        (found.impressions.wins_a, found.impressions.wins_b), theory, strict=True
    ):
        assert abs(wins / n - share) < 4 * np.sqrt(share * (1 - share) / n)
    assert found.winner == "A"
    assert found.impressions.interval is not None
    assert theory[0] / sum(theory) in found.impressions.interval


def test_two_documents_by_hand() -> None:
    """Opposite orders of a good and a bad document: A wins the good one alone, at either place."""
    model = click_model("pbm")
    # The coin puts the good document first or second; teams are A for the good, B for the bad.
    first, second = (model.click_probabilities(g) for g in ([4, 0], [0, 4]))
    a = (first[0] * (1 - first[1]) + second[1] * (1 - second[0])) / 2
    b = (first[1] * (1 - first[0]) + second[0] * (1 - second[1])) / 2
    assert _theory(team_draft, [0, 1], [1, 0], {0: 4, 1: 0}) == pytest.approx((a, b))
