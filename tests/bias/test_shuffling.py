"""Whether lists were shuffled: fixed rankings, shuffled lists, mixtures, and logs that cannot tell."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from shown import Shown, labelled, log_of, simulated
from unskew.bias import shuffling_of
from unskew.bias.shuffling import Shuffling


def test_a_fixed_ranking_correlates_fully():
    """A document that always stands where it stood: 1, and plainly not shuffled."""
    found = shuffling_of(log_of(Shown("abcd", times=20), Shown("xyz", times=9, query="r")))
    assert found.correlation == 1.0
    assert found.can_tell
    assert not found.shuffled


def test_two_sessions_by_hand():
    """Two sessions of three: a stays (1 * 1), b and c swap (0 * 1 each); squares add to 4 / 2."""
    found = shuffling_of(log_of(Shown("abc"), Shown("acb")))
    assert found.correlation == pytest.approx((1 * 1 + 0 * 1 + 1 * 0) / ((2 + 1 + 1) / 2))


def test_every_order_once_is_shuffled():
    """All orders of four documents: the correlation is that of drawing without repetition."""
    orders = [Shown("".join(order)) for order in itertools.permutations("abcd")]
    found = shuffling_of(log_of(*orders))
    assert found.correlation == pytest.approx(-1 / 23)
    assert found.shuffled


def test_shuffled_lists_stay_within_their_standard_error():
    """Over many shuffled logs the correlation has mean 0 and the standard deviation it claims."""
    rng = np.random.default_rng(0)
    scores = []
    for _ in range(60):
        sessions = [Shown("".join(rng.permutation(list("abcdef")))) for _ in range(8)]
        found = shuffling_of(log_of(*sessions))
        scores.append(found.correlation / found.standard_error)
    assert abs(np.mean(scores)) < 4 / np.sqrt(60)
    assert 0.7 < np.std(scores) < 1.3


@pytest.mark.parametrize(("share", "shuffled"), [(0.5, False), (0.8, False), (1.0, True)])
def test_a_mixture_is_not_shuffled(share, shuffled):
    """Ranked sessions among shuffled ones are noticed: their share squared is the correlation."""
    rng = np.random.default_rng(1)
    ranked = "abcdefgh"
    sessions = [
        Shown("".join(rng.permutation(list(ranked))) if rng.random() < share else ranked)
        for _ in range(2000)
    ]
    found = shuffling_of(log_of(*sessions))
    assert found.correlation == pytest.approx((1 - share) ** 2, abs=0.05)
    assert found.shuffled is shuffled


def test_jitter_is_not_shuffled():
    """Lists whose documents move, but mostly a little, are not shuffled."""
    data = labelled(n_queries=5)
    rng = np.random.default_rng(2)
    orders = [np.argsort(data.relevance[:10] + rng.normal(size=10)) for _ in range(300)]
    found = shuffling_of(log_of(*(Shown("".join("abcdefghij"[k] for k in o)) for o in orders)))
    assert 0.1 < found.correlation < 0.9
    assert not found.shuffled


def test_simulated_shuffling_is_recognised():
    """A log of a policy that shuffles every list passes."""
    data, _ = simulated(labelled(n_queries=20), sessions=2000)
    found = shuffling_of(data)
    assert found.can_tell
    assert found.shuffled


@pytest.mark.parametrize("sessions", [[Shown("abc")], [Shown("a", times=50)], [Shown("abc")] * 2])
def test_some_logs_cannot_tell(sessions):
    """Documents seen once, pages of one result, or hardly a repetition: no verdict."""
    assert not shuffling_of(log_of(*sessions)).can_tell


def test_gaps_in_positions_are_no_movement():
    """The same list with a gap between its results is the same list."""
    data = log_of(
        Shown("abcd", times=9), Shown("abcd", times=9, positions=(1, 2, 4, 5))
    )  # fmt: skip
    assert shuffling_of(data).correlation == 1.0


def test_a_document_that_never_leaves_the_middle_cannot_tell():
    """Pages of one result have no places to move between: there is no correlation."""
    found = shuffling_of(log_of(Shown("a", (1,), 5)))
    assert np.isnan(found.correlation)
    assert not found.can_tell


def test_documents_seen_once_say_nothing():
    """A document that is seen once has no other place to be compared with."""
    twice = (Shown("abc"), Shown("acb"))
    alone = shuffling_of(log_of(*twice))
    beside = shuffling_of(log_of(*twice, Shown("xyz", query="r"), Shown("uvw", query="s")))
    assert beside.correlation == pytest.approx(alone.correlation)
    assert beside.standard_error == pytest.approx(alone.standard_error)


def test_pages_of_one_result_say_nothing():
    """A page of one result has no order: with any number of them the answer is the same."""
    twice = (Shown("abc"), Shown("acb"))
    alone = shuffling_of(log_of(*twice))
    single = [Shown(doc, times=5, query=f"r{doc}") for doc in "uvwxyz"]
    beside = shuffling_of(log_of(*twice, *single))
    assert beside.correlation == pytest.approx(alone.correlation)
    assert beside.standard_error == pytest.approx(alone.standard_error)


def test_the_smallest_log_that_can_be_measured():
    """Two sessions that swap two documents: each stands half a place from the middle, both ways."""
    found = shuffling_of(log_of(Shown("ab"), Shown("ba")))
    assert found.correlation == pytest.approx(-1.0)
    assert np.isfinite(found.standard_error)


def test_the_standard_error_by_hand():
    """Swapped pairs shown twice and lists of three shown thrice: the root of 1 + 24 over 1 + 12.

    A position among two has the variance 1/4 and one among three 2/3. Two documents of 2 pairs each
    make 2 * 2 * 2 * (1/4)**2 * 2/1 = 1, three of 6 pairs each 3 * 2 * 6 * (2/3)**2 * 3/2 = 24; the
    variances of their pairs add up to 2 * 2 * 1/4 and 3 * 6 * 2/3.
    """
    data = log_of(Shown("ab"), Shown("ba"), *(Shown(three, query="r") for three in ("uvw",) * 3))
    assert shuffling_of(data).standard_error == pytest.approx(5 / 13)


def test_a_document_seen_again_in_the_middle_alone():
    """Without a repetition off the middle of the page there is nothing to correlate."""
    found = shuffling_of(log_of(Shown("abc"), Shown("xby")))
    assert np.isnan(found.correlation)
    assert np.isnan(found.standard_error)
    assert not found.can_tell


def test_the_limits_of_a_verdict():
    """A standard error of a quarter can tell; 0.01 and two standard errors still count as chance."""
    assert Shuffling(0.0, 0.25).can_tell
    assert not Shuffling(0.0, 0.2501).can_tell
    assert Shuffling(0.51, 0.25).shuffled
    assert not Shuffling(0.5101, 0.25).shuffled
