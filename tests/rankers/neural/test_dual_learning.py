"""Dual Learning: its equations session by session, its fixed point, and what it recovers."""

from __future__ import annotations

import numpy as np
import pytest

from logs import impressions_of, random_log, random_sessions
from shown import labelled, simulated
from unskew.bias.cells import Cells
from unskew.errors import DataError, UsageError
from unskew.pairs.reference import ClickedPage
from unskew.position_bias import PositionBias
from unskew.rankers.neural.dual_learning import DualLearning, check_explains
from unskew.rankers.neural.dual_losses import (
    bias_of_logits,
    inverse_propensity,
    inverse_relevance,
)
from unskew.rankers.neural.network import listwise_loss
from unskew.rankers.neural.page_batches import PageBatches
from unskew.rankers.neural.ranker import NeuralRanker

torch = pytest.importorskip("torch")

QUICK = {"hidden": (8,), "n_epochs": 4, "batch_pages": 16, "device": "cpu", "n_jobs": 1}


def softmax(logit):
    """Shares of the whole."""
    e = np.exp(logit - logit.max())
    return e / e.sum()


def losses_over_sessions(sessions, score, logit):
    """Both losses and their gradients, read off the paper for one session after another."""
    rank_loss = propensity_loss = 0.0
    by_score, by_logit = np.zeros_like(score), np.zeros_like(logit)
    for session in sessions:
        document = np.array(session.document)
        place = np.array(session.position) - 1
        f, g = softmax(score[document]), softmax(logit[place])
        for k in np.flatnonzero(session.grade):
            inverse_g = g[0] / g[k]  # inverse propensity weight, its gradient not followed
            inverse_f = f[0] / f[k]  # inverse relevance weight, likewise
            rank_loss -= session.weight * inverse_g * np.log(f[k])
            propensity_loss -= session.weight * inverse_f * np.log(g[k])
            one = np.arange(len(document)) == k
            by_score[document] += session.weight * inverse_g * (f - one)
            by_logit[place] += session.weight * inverse_f * (g - one)
    return rank_loss, propensity_loss, by_score, by_logit


def test_compressed_losses_equal_the_paper_session_by_session():
    """Values and gradients over click counts are those over raw sessions."""
    rng = np.random.default_rng(0)
    sessions = random_sessions(rng, gaps=False, highest_grade=1)
    sessions = [session for session in sessions if len(session.document) > 1]
    data = impressions_of(sessions, np.zeros((60, 1)))
    score = torch.tensor(rng.normal(size=60), requires_grad=True)
    logit = torch.tensor(rng.normal(size=8), requires_grad=True)
    batches = PageBatches(data, None, n_positions=8, device="cpu")
    batch = batches.batch(np.arange(data.n_pages))
    on_page = score.index_select(0, batch.document)
    ranker = listwise_loss(
        on_page, batch.gain * inverse_propensity(logit, batch.position), batch.segment,
        batch.n_pages,
    )  # fmt: skip
    propensity = listwise_loss(
        logit.index_select(0, batch.position),
        batch.gain * inverse_relevance(on_page, batch.first, batch.segment), batch.segment,
        batch.n_pages,
    )  # fmt: skip
    (ranker + propensity).backward()
    expected = losses_over_sessions(sessions, score.detach().numpy(), logit.detach().numpy())
    assert ranker.item() == pytest.approx(expected[0], rel=1e-6)
    assert propensity.item() == pytest.approx(expected[1], rel=1e-6)
    np.testing.assert_allclose(score.grad, expected[2], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(logit.grad, expected[3], rtol=1e-5, atol=1e-5)


def test_logits_become_a_bias_of_the_clicked_side():
    """Exp of the difference to position 1, held within the bounds of a bias; t_minus is 1."""
    bias = bias_of_logits(torch.tensor([1.0, 0.0, -20.0]))
    np.testing.assert_allclose(bias.t_plus, [1.0, np.exp(-1), 1e-3], rtol=1e-6)
    np.testing.assert_array_equal(bias.t_minus, 1.0)


def test_the_estimator_and_the_ranker_are_one_method():
    """DualLearning's bias is the one that NeuralRanker(debias="dual-learning") ends with."""
    data = random_log(0)
    bias = DualLearning(check=False, **QUICK, random_state=3).fit(data)
    ranker = NeuralRanker(debias="dual-learning", **QUICK, random_state=3, verbose=0).fit(data)
    assert bias.equals(ranker.position_bias_)
    assert isinstance(bias, PositionBias)
    assert not bias.equals(DualLearning(check=False, **QUICK, random_state=4).fit(data))


def test_it_recovers_the_bias_where_relevance_does_not_follow_position():
    """Every result stands at every position equally often: the propensities come out near the truth."""
    truth = np.array([1.0, 0.8, 0.6, 0.4, 0.3])
    data = rotated_clicks(np.random.default_rng(1), truth, n_queries=40, sessions_per_page=400)
    estimator = DualLearning(hidden=(16,), n_epochs=60, batch_pages=32, device="cpu", n_jobs=1)
    bias = estimator.fit(data)
    np.testing.assert_allclose(bias.t_plus, truth, atol=0.1)


def rotated_clicks(rng, propensity, *, n_queries, sessions_per_page):
    """Position-based clicks on all rotations of a page; the feature decides how relevant a result is."""
    n = len(propensity)
    feature = rng.normal(size=n_queries * 10)
    relevance = 1 / (1 + np.exp(-feature))
    sessions = []
    for query in range(n_queries):
        for shift in range(n):
            document = query * 10 + np.roll(np.arange(n), shift)
            clicks = rng.random((sessions_per_page, n)) < propensity * relevance[document]
            sessions += [
                ClickedPage(
                    tuple(document.tolist()), tuple(range(1, n + 1)), tuple(map(int, click))
                )
                for click in clicks
            ]
    return impressions_of(sessions, feature[:, None])


def test_it_has_the_settings_of_every_estimator():
    """Positions shown too seldom take the bias above, a low bias is clipped, and both are marked."""
    rng = np.random.default_rng(2)
    often = rotated_clicks(rng, np.array([1.0, 0.5, 0.2]), n_queries=10, sessions_per_page=20)
    plain = DualLearning(check=False, **QUICK).fit(often)
    assert plain.clipped_positions == plain.borrowed_positions == ()
    lowest = float(plain.t_plus.min())
    with pytest.warns(UserWarning, match="was clipped"):
        clipped = DualLearning(check=False, **QUICK, minimum=lowest + 1e-3).fit(often)
    assert clipped.clipped_positions == (int(plain.t_plus.argmin()) + 1,)
    assert clipped.t_plus.min() == lowest + 1e-3
    seldom = DualLearning(check=False, **QUICK, min_shown=100, n_positions=2).fit(few_deep_pages())
    assert seldom.borrowed_positions == (2,)
    assert seldom.t_plus.tolist() == [1.0, 1.0]
    with pytest.raises(UsageError, match="minimum must lie above 0"):
        DualLearning(check=False, **QUICK, minimum=0.0).fit(often)


def few_deep_pages():
    """150 pages, of which few have a second result."""
    deep = [ClickedPage((0, 1), (1, 2), (k % 2, 1 - k % 2)) for k in range(50)]
    return impressions_of(deep + [ClickedPage((2,), (1,), (1,))] * 100, np.eye(12))


def test_an_examination_that_explains_less_than_the_ctr_is_refused():
    """The truth with a good score passes; a curve that rises steeply does not, and the error says so."""
    labels = labelled(n_queries=60)
    data, truth = simulated(labels, sessions=6_000, score=labels.features.values[:, 0])
    cells, good = Cells.of(data), data.features.values[:, 0]
    check_explains(cells, truth, good)
    with pytest.raises(
        DataError, match=r"did not settle.*worse than click rates by position alone"
    ):
        check_explains(cells, truth[::-1].copy(), good)
