"""Search spaces: what is tried, where a search begins, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from unskew.choose.search_space import (
    DEFAULT_SPACES,
    Choice,
    Span,
    parse_dimension,
    sampled_settings,
    space_for,
    starting_settings,
)
from unskew.errors import UsageError
from unskew.registry import RANKERS


@pytest.mark.parametrize("ranker", DEFAULT_SPACES)
def test_defaults_fit_their_ranker(ranker):
    """Every point of a default space makes a ranker whose settings are allowed."""
    kind = RANKERS[ranker].load()
    space = space_for(ranker, None)
    for number in range(1, 20):
        made = kind(**sampled_settings(space, {}, number, seed=3))
        made._check()
    made = kind(**starting_settings(ranker, space, {}))
    assert made.get_params(deep=False) == kind().get_params(deep=False)


def test_points_cover_a_span():
    """Whole numbers come with both ends, numbers on a logarithmic scale by their logarithms."""
    space = {"leaves": Span(4, 63), "rate": Span(0.01, 1.0), "kind": Choice(("a", "b", "c"))}
    points = [sampled_settings(space, {"fixed": 1}, number, seed=0) for number in range(1, 301)]
    leaves = np.array([one["leaves"] for one in points])
    assert leaves.min() == 4
    assert leaves.max() >= 61
    assert np.mean(leaves < 16) == pytest.approx(0.5, abs=0.05)
    assert np.mean([one["rate"] < 0.1 for one in points]) == pytest.approx(0.5, abs=0.02)
    assert [one["kind"] for one in points].count("b") == pytest.approx(100, abs=3)
    assert {one["fixed"] for one in points} == {1}


def test_points_follow_the_seed_and_the_number():
    """The same seed and number give the same settings, others others."""
    space = {"p": Span(0.0, 2.0)}
    one = sampled_settings(space, {}, 5, seed=1)
    assert one == sampled_settings(space, {}, 5, seed=1)
    assert one != sampled_settings(space, {}, 6, seed=1)
    assert one != sampled_settings(space, {}, 5, seed=2)


def test_a_search_begins_within_its_space():
    """The first trial has the defaults, moved into the space where they lie outside."""
    given = {
        "learning_rate": (0.1, 0.3), "debias": ["clicked", None], "p": [0.5, 1],
        "n_estimators": (5, 9), "lambda_l2": (0.0, 2.0),
    }  # fmt: skip
    assert starting_settings("lambdamart", space_for("lambdamart", given), {}) == {
        "learning_rate": 0.1, "debias": "clicked", "p": 0.5,
        "n_estimators": None,  # follows the data
        "lambda_l2": 1.0,  # a parameter of the booster
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("num_leaves=4..63", ("num_leaves", Span(4, 63))),
        ("learning_rate=0.01..0.3", ("learning_rate", Span(0.01, 0.3))),
        ("debias=pairwise, none", ("debias", Choice(("pairwise", None)))),
        ("p=0,0.5,1", ("p", Choice((0, 0.5, 1)))),
    ],
)
def test_text_is_read(text, expected):
    """A dimension of the command line is a span or a list of values."""
    assert parse_dimension(text) == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"ranker": "nosuch", "space": None}, "ranker must be one of"),
        ({"ranker": "ranksvm", "space": {"c": [1]}}, "ranksvm has no setting 'c'"),
        ({"ranker": "ranksvm", "space": {}}, "space is empty"),
        ({"ranker": "ranksvm", "space": {"C": 3}}, r"space\['C'\] must be a list of values"),
        ({"ranker": "ranksvm", "space": {"C": (3, 1)}}, "low < high"),
    ],
)
def test_spaces_that_make_no_sense(given, message):
    """An unknown ranker or setting, an empty space and a span from high to low are refused."""
    with pytest.raises(UsageError, match=message):
        space_for(given["ranker"], given["space"])


@pytest.mark.parametrize("text", ["p", "p=", "=1", "p=a..b"])
def test_text_that_makes_no_sense(text):
    """A dimension that cannot be read is refused."""
    with pytest.raises(UsageError, match="--space"):
        parse_dimension(text)
