"""The closed-form update of one curve."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shown import Shown, log_of
from unskew.bias.pairwise import PairwiseDebiasing
from unskew.errors import DataError, UsageError
from unskew.pairs.reference import ClickedPage, position_losses, update_biases
from unskew.pairs.update import LIMIT, check_p, updated_curve


def test_the_update_by_hand():
    """A quarter of the first position's loss is a bias of 1/4 at p = 0 and of 1/2 at p = 1."""
    loss = np.array([8.0, 2.0])
    assert updated_curve(loss, np.ones(2), 0.0).tolist() == [1.0, 0.25]
    assert updated_curve(loss, np.ones(2), 1.0).tolist() == [1.0, 0.5]


@given(
    loss=st.lists(st.floats(0.1, 90.0), min_size=1, max_size=12),
    p=st.floats(0, 4),
    seed=st.integers(0, 99),
)
def test_guards_leave_a_healthy_run_alone(loss, p, seed):
    """With losses everywhere and no extreme ratio, the result is the bare equation, bit for bit."""
    loss = np.array(loss)
    previous = np.random.default_rng(seed).random(len(loss)) + 0.1
    expected = [(value / loss[0]) ** (1 / (p + 1)) for value in loss.tolist()]
    assert updated_curve(loss, previous, p).tolist() == expected
    np.testing.assert_allclose(expected, update_biases(loss, loss, p)[0], rtol=1e-15)


@given(
    loss=st.lists(st.floats(0, allow_infinity=True), min_size=1, max_size=12), p=st.floats(0, 50)
)
def test_a_curve_is_always_usable(loss, p):
    """Whatever the losses, the curve starts at 1, is positive, finite and within the bounds."""
    curve = updated_curve(np.array(loss), np.ones(len(loss)), p)
    assert curve[0] == 1.0
    assert ((curve >= 1 / LIMIT) & (curve <= LIMIT)).all()


def test_without_any_loss_nothing_changes():
    """A side on which no position has a loss keeps its curve."""
    previous = np.array([1.0, 0.3, 0.2])
    assert updated_curve(np.zeros(3), previous, 0.5).tolist() == previous.tolist()


@pytest.mark.parametrize("p", [-0.1, float("nan"), float("inf")])
def test_p_is_checked(p):
    """A negative or non-finite p is refused by name."""
    with pytest.raises(UsageError, match=r"p must be 0 or higher .*got"):
        check_p(p)


SESSIONS = (
    Shown("abc", (1,), 30),
    Shown("bca", (2,), 20),
    Shown("cab", (1, 2), 25),
    Shown("acb", (3,), 10),
)


def sessions_of(data):
    """The sessions of a log as the reference takes them."""
    index = {
        (q, d): k
        for k, (q, d) in enumerate(
            zip(data.queries[data.documents.query], data.documents.doc, strict=True)
        )
    }
    return [
        ClickedPage(
            tuple(index[s.query, doc] for doc in s.doc), s.position,
            tuple(int(k in s.clicked) for k in s.position), s.weight,
        )
        for s in data.sessions()
    ]  # fmt: skip


@pytest.mark.parametrize("p", [0.5, 1.0])
def test_alone_it_ends_at_a_fixed_point_of_the_paper(p):
    """One more update by the paper's equations, session by session, changes nothing."""
    data, score = log_of(*SESSIONS), np.array([0.3, -0.2, 0.6])
    bias = PairwiseDebiasing(scores=score, p=p, tolerance=1e-12).fit(data)
    losses = position_losses(sessions_of(data), score, bias.t_plus, bias.t_minus, 2.0)
    t_plus, t_minus = update_biases(*losses, p)
    assert bias.t_plus == pytest.approx(t_plus, rel=1e-9)
    assert bias.t_minus == pytest.approx(t_minus, rel=1e-9)


def test_constant_scores_give_relative_ctr_times_the_ndcg_difference():
    """Single clicks on pages of three: CTR times the discount differences to the other two."""
    data = log_of(Shown("abc", (1,), 60), Shown("abc", (2,), 30), Shown("abc", (3,), 20))
    bias = PairwiseDebiasing(scores=np.zeros(3), p=0, unclicked=False).fit(data)
    d1, d2, d3 = 1.0, 1 / np.log2(3), 1 / np.log2(4)
    difference = np.array([(d1 - d2) + (d1 - d3), (d1 - d2) + (d2 - d3), (d1 - d3) + (d2 - d3)])
    expected = np.array([60, 30, 20]) * difference
    assert bias.t_plus == pytest.approx(expected / expected[0])
    assert bias.t_minus.tolist() == [1.0, 1.0, 1.0]


def test_scores_of_a_fitted_ranker():
    """Anything with predict scores the documents; the result is that of its scores."""

    class Ranker:
        def predict(self, data):
            return data.features.values[:, 0]

    data = log_of(*SESSIONS, features={"a": 0.3, "b": -0.2, "c": 0.6})
    by_ranker = PairwiseDebiasing(scores=Ranker()).fit(data)
    by_scores = PairwiseDebiasing(scores=[0.3, -0.2, 0.6]).fit(data)
    assert by_ranker.equals(by_scores)
    assert not by_ranker.equals(PairwiseDebiasing(scores=np.zeros(3)).fit(data), tolerance=0.01)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"scores": None},
            "scores must be given: .* repeats the CTR, more steeply, and measures no",
        ),
        ({"scores": [1.0]}, "one entry for each of the 3 rows of data.documents, got shape"),
        ({"scores": [1.0, np.nan, 0.0]}, "scores must be finite"),
        ({"p": -1.0}, "p must be 0 or higher"),
        ({"sigma": 0.0}, "sigma must be above 0"),
        ({"minimum": 2.0}, "minimum must lie above 0"),
    ],
)
def test_settings_are_checked(settings, message):
    """A setting that makes no sense is refused by its name."""
    with pytest.raises(UsageError, match=message):
        PairwiseDebiasing(**{"scores": np.zeros(3), **settings}).fit(log_of(*SESSIONS))


def test_a_log_without_pairs():
    """Pages clicked whole or not at all order nothing."""
    with pytest.raises(DataError, match="nothing to learn from"):
        PairwiseDebiasing(scores=[0.0, 0.0]).fit(
            log_of(Shown("ab", (1, 2), 20), Shown("ab", (), 20))
        )


@pytest.mark.filterwarnings("ignore:the curve merely repeats the CTR")
def test_positions_never_clicked_never_shown_or_shown_once():
    """Clipped with a warning, borrowed, borrowed."""
    data = log_of(
        Shown("abc", (1,), 20, positions=(1, 2, 4)), Shown("abc", (4,), 10, positions=(1, 2, 4)),
        Shown("abcd", (5,), 1, positions=(1, 2, 4, 5)),
    )  # fmt: skip
    with pytest.warns(UserWarning, match=r"position\(s\) \[2\]"):
        bias = PairwiseDebiasing(scores=np.zeros(len(data.documents))).fit(data)
    assert bias.clipped_positions == (2,)
    assert bias.borrowed_positions == (3, 5)
    assert bias.t_plus[1] == 0.001
    assert bias.t_plus[4] == bias.t_plus[3]
    assert bias.t_minus[2] == bias.t_minus[1]


def test_a_bias_near_zero_is_clipped_and_reported():
    """Below the minimum, or held at the update's own bound: a warning and a mark."""
    data = log_of(Shown("ab", (1,), 500), Shown("ab", (2,), 12))
    with pytest.warns(UserWarning, match=r"position\(s\) \[2\].*minimum=0\.1"):
        bias = PairwiseDebiasing(scores=[0, 0], p=0.0, unclicked=False, minimum=0.1).fit(data)
    assert bias.clipped_positions == (2,)
    assert bias.t_plus[1] == 0.1
    data = log_of(Shown("ab", (1,), 10, weight=1e6), Shown("ab", (2,), 12))
    with pytest.warns(UserWarning, match=r"position\(s\) \[2\]"):
        bias = PairwiseDebiasing(scores=[0, 0], p=0.0, unclicked=False).fit(data)
    assert bias.clipped_positions == (2,)
    assert bias.t_plus[1] == 1 / LIMIT
