"""Columns that know the outcome or the position are found by name; honest ones are not."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import unskew
from unskew.log.leaks import find_leaks

N, SIZE = 300, 8


def log(seed=0, **columns):
    """A log in which the price matters, with further columns; positions are shuffled."""
    rng = np.random.default_rng(seed)
    position = np.concatenate([rng.permutation(SIZE) + 1 for _ in range(N)])
    price = rng.normal(size=N * SIZE)
    click = rng.random(N * SIZE) < 0.5 / position + 0.1 * (price > 0.5)
    given = {
        name: make(rng, position, click.astype(float), price) for name, make in columns.items()
    }
    table = {
        "session": np.repeat(np.arange(N), SIZE), "query": np.repeat(np.arange(N) % 60, SIZE),
        "doc": rng.permutation(N * SIZE), "position": position, "click": click.astype(int),
        "price": price, **given,
    }  # fmt: skip
    return unskew.read_log(pa.table(table))


OUTCOMES = {
    "bought": lambda rng, position, click, price: click * (rng.random(len(click)) < 0.5),
    "dwell": lambda rng, position, click, price: click * rng.exponential(30, len(click)),
    "basket": lambda rng, position, click, price: np.where(click > 0, price * 0, np.nan),
}
POSITIONS = {
    "rank": lambda rng, position, click, price: position.astype(float),
    "propensity": lambda rng, position, click, price: 1.0 / position,
    "page": lambda rng, position, click, price: np.ceil(position / 4),
}
HONEST = {
    "old_score": lambda rng, position, click, price: -position + rng.normal(size=len(click)),
    "sparse": lambda rng, position, click, price: (rng.random(len(click)) < 0.02).astype(float),
    "constant": lambda rng, position, click, price: np.ones(len(click)),
    "gaps": lambda rng, position, click, price: np.where(
        rng.random(len(click)) < 0.5, np.nan, price
    ),
    "strong": lambda rng, position, click, price: price + 0.5 * click,
}


@pytest.mark.parametrize("name", OUTCOMES)
def test_a_column_that_knows_the_outcome(name):
    """Not zero, or not empty, almost only where there was a click: found, with the option."""
    (leak,) = find_leaks(log(**{name: OUTCOMES[name]}))
    assert leak.column == name
    assert "may only be known after the click" in leak.message
    assert f"--ignore {name}" in leak.message


@pytest.mark.parametrize("name", POSITIONS)
def test_a_column_that_is_the_position(name):
    """A value that the position decides is found."""
    (leak,) = find_leaks(log(**{name: POSITIONS[name]}))
    assert leak.column == name
    assert "varies with the position alone" in leak.message


@pytest.mark.parametrize("seed", range(5))
def test_honest_columns(seed):
    """Noise, gaps, constants, rare and strong features, and the score of the old ranker are none."""
    assert find_leaks(log(seed, **HONEST)) == []


def test_pages_that_never_change():
    """Where each position always has the same document every column follows it, and none is named."""
    rng = np.random.default_rng(0)
    table = {
        "session": np.repeat(np.arange(50), 4), "query": np.zeros(200, int),
        "doc": np.tile(np.arange(4), 50), "position": np.tile(np.arange(1, 5), 50),
        "click": (rng.random(200) < 0.3).astype(int), "price": np.tile([3.0, 1.0, 2.0, 5.0], 50),
    }  # fmt: skip
    assert find_leaks(unskew.read_log(pa.table(table))) == []


def test_an_odd_name_is_quoted():
    """The option is written so that a shell takes the name as it is."""
    (leak,) = find_leaks(log(**{"time on page": OUTCOMES["dwell"]}))
    assert leak.message.endswith("--ignore 'time on page'")


def test_real_bookings(real_data):
    """On Expedia the bookings are found, and none of the 47 features."""
    data = unskew.read_log(
        real_data / "expedia" / "searches.csv.gz",
        session="srch_id", query="srch_id", doc="prop_id", click="click_bool",
        ignore=["date_time", "source"],
    )  # fmt: skip
    assert [leak.column for leak in find_leaks(data)] == ["gross_bookings_usd", "booking_bool"]
