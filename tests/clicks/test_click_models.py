"""Click models: exact marginals against stories, samplers against marginals."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unskew.clicks.base import EYE_TRACKING
from unskew.clicks.kernels import FlatPages
from unskew.clicks.reference import click_marginals, splitmix, story
from unskew.clicks.stream import Streams, stream_key
from unskew.errors import DataError, UsageError
from unskew.log.features import Features
from unskew.log.labelled import LabelledData
from unskew.simulate import CLICK_MODELS, click_model, sample, score_policy

NAMES = list(CLICK_MODELS)
SETTINGS = {
    "pbm": [{}, {"theta": 0.0}, {"theta": 2.0, "epsilon": 0.3}],
    "cascade": [{}, {"beta": 1.0}, {"beta": 0.8, "phi": 1.0}],
    "ubm": [{}, {"theta": 0.5}],
    "dbn": [{}, {"gamma": 0.5}],
    "dcm": [{}, {"lambdas": (0.2,)}],
    "trust": [{}, {"theta": 0.5, "trust": 1.0}],
    "contextual": [{}, {"thetas": {"a": 0.0, "b": 3.0}, "shares": {"a": 1, "b": 3}}],
}
CASES = [(name, options) for name in NAMES for options in SETTINGS[name]]


def test_every_model_is_tested():
    """A model that joins the registry has to join these tests."""
    assert set(SETTINGS) == set(CLICK_MODELS)


class TestMarginals:
    """Closed forms and dynamic programs."""

    @pytest.mark.parametrize(("name", "options"), CASES)
    @settings(max_examples=15, deadline=None)
    @given(grades=st.lists(st.integers(0, 4), min_size=1, max_size=7))
    def test_against_all_patterns(self, name, options, grades):
        """P(click) is the sum over every click pattern of its probability."""
        model = click_model(name, **options)
        expected = click_marginals(model, grades)
        assert model.click_probabilities(grades) == pytest.approx(expected, abs=1e-12)

    @pytest.mark.parametrize(("name", "options"), CASES)
    def test_patterns_add_up_to_one(self, name, options):
        """The reference itself is a distribution over click patterns."""
        model = click_model(name, **options)
        patterns = product([0, 1], repeat=4)
        assert sum(story(model, [0, 4, 2, 1], p) for p in patterns) == pytest.approx(1.0)

    @pytest.mark.parametrize("name", NAMES)
    def test_click_needs_examination(self, name):
        """No result is clicked more often than it is examined, and the first is a probability."""
        model = click_model(name)
        grades = np.random.default_rng(0).integers(0, 5, (20, 15))
        examined, clicked = (
            model.examination_probabilities(grades), model.click_probabilities(grades),
        )  # fmt: skip
        assert examined.shape == clicked.shape == grades.shape
        assert (clicked <= examined + 1e-15).all()
        assert ((clicked >= 0) & (examined <= 1)).all()

    def test_pbm_by_hand(self):
        """Grade 2 at position 2 with the paper's defaults: 0.61 * (0.1 + 0.9 * 3/15)."""
        assert click_model("pbm").click_probabilities([0, 2])[1] == pytest.approx(0.61 * 0.28)

    def test_cascade_by_hand(self):
        """Grade 4 on top: clicked surely, satisfied with 1/2, else continued with 1/2."""
        found = click_model("cascade").click_probabilities([4, 4, 0])
        assert found == pytest.approx([1.0, 0.25, 0.25 * 0.25 * 0.1])

    def test_below_position_ten(self):
        """Below position 10 the eye-tracking curve keeps its last value."""
        examined = click_model("pbm").examination_probabilities(np.zeros(12))
        assert examined[:10] == pytest.approx(EYE_TRACKING)
        assert examined[10:].tolist() == [EYE_TRACKING[-1]] * 2

    def test_no_bias_at_theta_zero(self):
        """With theta = 0 a grade is clicked alike at every position."""
        for name in ("pbm", "ubm"):
            found = click_model(name, theta=0).click_probabilities(np.full(12, 2))
            assert np.ptp(found) == 0.0

    def test_beta_acts(self):
        """Halving beta halves the clicks at position 2; at beta = 1 only satisfaction is left."""
        at = {
            b: click_model("cascade", beta=b).click_probabilities([0, 0, 0]) for b in (1, 0.5, 0.25)
        }
        assert at[0.25][1] == pytest.approx(at[0.5][1] / 2)
        unsatisfied = 1 - 0.1 * (0.5 * 0.1)
        assert at[1] == pytest.approx([0.1, 0.1 * unsatisfied, 0.1 * unsatisfied**2])
        never = click_model("cascade", beta=1, phi=0).click_probabilities([0, 4, 2, 0])
        assert never == pytest.approx(click_model("pbm", theta=0).click_probabilities([0, 4, 2, 0]))

    def test_contexts(self):
        """Each context has its own curve, and without one their average is given."""
        model = click_model("contextual")
        curves = {
            c: model.examination_probabilities(np.zeros(5), context=c) for c in model.contexts
        }
        assert curves["mobile"][4] < curves["desktop"][4] < curves["tablet"][4]
        mean = sum(model.shares[c] * curves[c] for c in model.contexts)
        assert model.examination_probabilities(np.zeros(5)) == pytest.approx(mean)


def one_page_per_pattern(length):
    """A query for every permutation-free page: pages of all grades at all positions, shifted."""
    grades = np.array([np.roll(np.resize(np.arange(5), length), shift) for shift in range(5)])
    n = grades.size
    data = LabelledData(
        Features(np.zeros((n, 1)), ("f",)),
        grades.ravel().astype(float),
        np.repeat(np.arange(5), length),
        np.arange(n),
    )
    return data, grades, score_policy(data, -np.arange(n), length=None)


class TestSamplers:
    """A million sessions of each model."""

    @pytest.mark.parametrize("name", NAMES)
    def test_rates_within_binomial_bounds(self, name):
        """Click rates by page and position, so by grade too, are the exact marginals.

        5 standard errors at 60 page slots: a correct sampler fails once in some 30,000 runs.
        """
        length, sessions = 12, 1_000_000
        data, grades, policy = one_page_per_pattern(length)
        model = click_model(name)
        log = sample(data, model=model, policy=policy, sessions=sessions, seed=11)
        cell = log["query"].to_numpy() * length + log["position"].to_numpy() - 1
        shown = np.bincount(cell)
        clicked = np.bincount(cell, weights=log["click"].to_numpy())
        expected = model.click_probabilities(grades).ravel()
        error = np.sqrt(expected * (1 - expected) / shown)
        assert shown.sum() == sessions * length
        assert (np.abs(clicked / shown - expected) <= 5 * error + 1e-12).all()

    @pytest.mark.parametrize("name", NAMES)
    def test_patterns_within_bounds(self, name):
        """Whole click patterns come as often as the story says: the dependence is right too."""
        grades = [1, 4, 0, 2]
        data = LabelledData(
            Features(np.zeros((4, 1)), ("f",)), np.array(grades, float), np.zeros(4), np.arange(4)
        )
        sessions = 400_000
        policy = score_policy(data, [4, 3, 2, 1])
        model = click_model(name)
        log = sample(data, model=model, policy=policy, sessions=sessions, seed=5)
        bits = log["click"].to_numpy().reshape(sessions, 4) @ (8, 4, 2, 1)
        found = np.bincount(bits, minlength=16) / sessions
        expected = np.array([story(model, grades, p) for p in product([0, 1], repeat=4)])
        assert (np.abs(found - expected) <= 5 * np.sqrt(expected / sessions) + 1e-12).all()

    @pytest.mark.parametrize("name", ["pbm", "trust", "contextual"])
    def test_affine_twin(self, name):
        """The kernel draws, number by number, what the written-out stream says."""
        model = click_model(name)
        grades = np.array([0.0, 3.0, 1.0, 4.0, 2.0])
        context = np.arange(10, dtype=np.int32) % max(1, len(model.contexts))
        pages = FlatPages(np.arange(0, 55, 5), np.tile(np.arange(5, dtype=np.int32), 10), context)
        key = stream_key(3, "click")
        click = model.draw(pages, grades, Streams(key, 100))
        chance = model.marginals(pages, grades)[1].reshape(10, 5)
        for s in range(10):
            stream = splitmix(int(key), 100 + s)
            expected = [next(stream) < p for p in chance[s]]
            assert click[s * 5 : s * 5 + 5].tolist() == expected

    @pytest.mark.parametrize("name", ["cascade", "dbn", "dcm"])
    def test_chain_twin(self, name):
        """The walk down the page uses the stream as written out here."""
        model = click_model(name)
        grades = np.array([0.0, 3.0, 1.0, 4.0, 2.0])
        row = np.tile(np.arange(5, dtype=np.int32), 20)
        pages = FlatPages(np.arange(0, 105, 5), row, np.zeros(20, np.int32))
        key = stream_key(4, "click")
        click = model.draw(pages, grades, Streams(key, 7))
        after_click, after_skip = model.continuation(5)
        a, satisfied = model.attraction(grades), model.satisfaction(grades)
        for s in range(20):
            stream = splitmix(int(key), 7 + s)
            expected = [0] * 5
            for k in range(5):
                expected[k] = int(next(stream) < a[k])
                go_on = after_click[k] * (1 - satisfied[k]) if expected[k] else after_skip[k]
                if next(stream) >= go_on:
                    break
            assert click[s * 5 : s * 5 + 5].tolist() == expected


class TestErrors:
    """What is refused."""

    def test_grade_beyond_maximum(self):
        """A grade above the declared maximum is an error that names it."""
        with pytest.raises(DataError, match=r"declared max_grade=4: entry 2 is 5"):
            click_model("pbm").click_probabilities([0, 5])
        with pytest.raises(DataError, match="entry 1 is -1"):
            click_model("pbm").click_probabilities([-1, 0])
        assert click_model("pbm", max_grade=5).click_probabilities([5])[0] == pytest.approx(0.68)

    @pytest.mark.parametrize(
        ("name", "options", "message"),
        [
            ("pbm", {"epsilon": 1.1}, r"epsilon of click model 'pbm' must be in \[0, 1\], got 1.1"),
            ("pbm", {"theta": -1}, "theta of click model 'pbm' must be at least 0"),
            ("pbm", {"rho": (0.5, 1.5)}, r"rho of click model 'pbm' must be in \[0, 1\], got 1.5"),
            ("pbm", {"epsilon": float("nan")}, "must be in"),
            ("cascade", {"beta": 2}, "beta of click model 'cascade' must be in"),
            ("dbn", {"gamma": -0.1}, "gamma of click model 'dbn' must be in"),
            ("dcm", {"lambdas": (0.5, 7)}, "lambdas of click model 'dcm' must be in"),
            ("pbm", {"beta": 0.5}, "click model 'pbm' has no parameter 'beta': it has epsilon"),
            ("pmb", {}, "click model 'pmb' is not known: choose among"),
            ("contextual", {"shares": {"a": 1}}, "must name the same contexts"),
            (
                "contextual",
                {"thetas": {"a": 1}, "shares": {"a": 0}},
                "shares must not all be 0",
            ),
        ],
    )
    def test_parameters(self, name, options, message):
        """A parameter that is unknown or out of range is refused by name."""
        with pytest.raises(UsageError, match=message):
            click_model(name, **options)

    def test_contexts(self):
        """A context that the model does not have is refused."""
        with pytest.raises(UsageError, match="context must be one of"):
            click_model("contextual").click_probabilities([1], context="watch")
        with pytest.raises(UsageError, match="'pbm' has no contexts"):
            click_model("pbm").click_probabilities([1], context="mobile")

    def test_no_page(self):
        """Something that is no page is refused."""
        with pytest.raises(UsageError, match="one page or several"):
            click_model("pbm").click_probabilities([])
