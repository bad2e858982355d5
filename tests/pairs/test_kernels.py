"""The kernels over compressed pairs against the paper's equations over raw sessions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from logs import DOCUMENTS_PER_QUERY, impressions_of, random_sessions
from unskew.pairs import kernels, reference
from unskew.pairs.objective import PairwiseObjective
from unskew.pairs.reference import ClickedPage
from unskew.pairs.statistic import pair_statistics
from unskew.position_bias import PositionBias
from unskew.threads import threads

CLOSE = {"rtol": 1e-10, "atol": 1e-10}


def random_bias(rng, n_positions):
    """Some bias over the given positions."""
    t_plus, t_minus = np.exp(rng.normal(size=(2, n_positions)))
    return PositionBias(t_plus / t_plus[0], t_minus / t_minus[0])


def objective_of(sessions, n_documents, bias, sigma=2.0, p=0.5):
    """The objective over the compressed sessions."""
    data = impressions_of(sessions, np.zeros((n_documents, 1)))
    return PairwiseObjective(
        data.pages, pair_statistics(data), n_documents=n_documents, bias=bias, sigma=sigma, p=p
    )


def random_case(seed, n_positions=20, **options):
    """Random sessions, scores with ties, a bias, and the objective over them."""
    rng = np.random.default_rng(seed)
    sessions = random_sessions(rng, **options)
    n_documents = (
        1 + max(max(s.document) for s in sessions) // DOCUMENTS_PER_QUERY
    ) * DOCUMENTS_PER_QUERY
    score = rng.choice([0.0, 0.25, -0.7, 1.3, 2.0], size=n_documents)
    score += np.where(rng.random(n_documents) < 0.5, rng.normal(size=n_documents), 0.0)
    bias = random_bias(rng, n_positions)
    return sessions, score, bias, objective_of(sessions, n_documents, bias)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_positions=st.sampled_from([1, 3, 8, 40]),
    highest_grade=st.integers(1, 4),
    sigma=st.sampled_from([0.5, 1.0, 2.0, 3.7]),
)
def test_kernels_equal_the_reference(seed, n_positions, highest_grade, sigma):
    """Gradients, hessians and both losses equal the paper's sums over raw sessions to 1e-10."""
    sessions, score, bias, _ = random_case(seed, n_positions, highest_grade=highest_grade)
    objective = objective_of(sessions, len(score), bias, sigma)
    arguments = (sessions, score, bias.t_plus, bias.t_minus, sigma)
    losses = objective.losses(score)
    gradient, hessian = objective.gradients(score)
    expected = reference.position_losses(*arguments)
    np.testing.assert_allclose(losses[0], expected[0], **CLOSE)
    np.testing.assert_allclose(losses[1], expected[1], **CLOSE)
    np.testing.assert_allclose(gradient, reference.adjusted_lambdas(*arguments), **CLOSE)
    np.testing.assert_allclose(hessian, reference.hessians(*arguments), **CLOSE)


def test_one_pair_expanded_by_hand():
    """One click at position 2 of two results: every number follows from the formulas by hand."""
    session = ClickedPage((0, 1), (1, 2), (0, 1))
    bias = PositionBias(np.array([1.0, 0.5]), np.array([1.0, 0.8]))
    objective = objective_of([session], 12, bias)
    score = np.zeros(12)
    score[0] = np.log(3) / 2  # sigma * (score_i - score_j) = -log 3, so rho = 3/4
    delta = 1 / np.log2(2) - 1 / np.log2(3)  # the clicked one is second, its IDCG is 1
    gradient, hessian = objective.gradients(score)
    loss_plus, loss_minus = objective.losses(score)
    weight = 1 / (0.5 * 1.0)
    np.testing.assert_allclose(
        gradient[:2], [2 * 0.75 * delta * weight, -2 * 0.75 * delta * weight]
    )
    np.testing.assert_allclose(hessian[:2], [4 * 0.75 * 0.25 * delta * weight] * 2)
    np.testing.assert_allclose(loss_plus, [0, np.log(4) * delta / 1.0])
    np.testing.assert_allclose(loss_minus, [np.log(4) * delta / 0.5, 0])


def test_equal_scores_keep_the_order_of_the_page():
    """With all scores equal the ranks are the slots, also after other scores were ranked before."""
    sessions, score, bias, objective = random_case(3)
    constant = np.full_like(score, 0.3)
    objective.gradients(score)  # leaves another order behind
    gradient, _ = objective.gradients(constant)
    fresh, _ = objective_of(sessions, len(score), bias).gradients(constant)
    np.testing.assert_array_equal(gradient, fresh)
    expected = reference.adjusted_lambdas(sessions, constant, bias.t_plus, bias.t_minus, 2.0)
    np.testing.assert_allclose(gradient, expected, **CLOSE)


@pytest.mark.parametrize("seed", range(3))
def test_gradients_match_finite_differences(seed):
    """Gradient and hessian are the derivatives of the loss with the ranks held fixed."""
    _, score, _, objective = random_case(seed, n_queries=2)
    score += np.linspace(0, 1e-3, len(score))  # no ties, so a tiny step changes no rank
    gradient, hessian = objective.gradients(score)
    step = 1e-6
    for d in range(len(score)):
        up, down = score.copy(), score.copy()
        up[d] += step
        down[d] -= step
        slope = (objective.loss(up) - objective.loss(down)) / (2 * step)
        assert slope == pytest.approx(gradient[d], abs=1e-6)
        bend = (objective.gradients(up)[0][d] - objective.gradients(down)[0][d]) / (2 * step)
        assert bend == pytest.approx(hessian[d], abs=1e-5)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_gradients_of_a_query_sum_to_zero(seed):
    """What one document of a query gains another loses; hessians are never negative."""
    _, score, _, objective = random_case(seed)
    gradient, hessian = objective.gradients(score)
    by_query = gradient.reshape(-1, DOCUMENTS_PER_QUERY).sum(axis=1)
    np.testing.assert_allclose(by_query, 0.0, atol=1e-10)
    assert (hessian >= 0).all()


def test_no_bias_gives_plain_lambdamart():
    """With t = 1 the gradient is the unadjusted lambda gradient, equation (33)."""
    sessions, score, _, _ = random_case(11)
    plain = np.zeros_like(score)
    for session in sessions:
        rank = reference.ranks(session, score)
        for i, j in session.pairs():
            d_i, d_j = session.document[i], session.document[j]
            delta = reference.delta_z(session, rank, i, j) * session.weight
            pair = reference.lambda_ij(score[d_i], score[d_j], delta, 2.0)
            plain[d_i] += pair
            plain[d_j] -= pair
    gradient, _ = objective_of(sessions, len(score), PositionBias.none(30)).gradients(score)
    np.testing.assert_allclose(gradient, plain, **CLOSE)


def test_a_weighted_session_equals_repeated_ones():
    """A session of weight 3 counts like the same session three times."""
    session = ClickedPage((0, 1, 2), (1, 2, 4), (0, 2, 1))
    heavy = ClickedPage(session.document, session.position, session.grade, 3.0)
    score = np.linspace(0, 1, 12)
    bias = random_bias(np.random.default_rng(0), 4)
    once = objective_of([heavy], 12, bias)
    thrice = objective_of([session] * 3, 12, bias)
    np.testing.assert_allclose(once.gradients(score), thrice.gradients(score), rtol=1e-14)
    np.testing.assert_allclose(once.losses(score), thrice.losses(score), rtol=1e-14)


@pytest.mark.parametrize("spread", [10.0, 290.0, 310.0, 1e3, 1e6, 1e300])
def test_large_score_differences_do_not_overflow(spread):
    """However far apart scores are, everything stays finite and the loss grows linearly."""
    sessions = [ClickedPage((0, 1, 2), (1, 2, 3), (0, 0, 1)), ClickedPage((0, 1), (1, 2), (1, 0))]
    objective = objective_of(sessions, 12, PositionBias.none(3))
    score = np.zeros(12)
    score[0], score[1] = spread, spread - 0.5
    gradient, hessian = objective.gradients(score)
    loss_plus, loss_minus = objective.losses(score)
    for values in (gradient, hessian, loss_plus, loss_minus):
        assert np.isfinite(values).all()
    # The click at rank 3 lies below both others by the spread: log(1 + exp(2 d)) = 2 d.
    first, second, third = 1.0, 1 / np.log2(3), 0.5
    expected = 2 * spread * (first - third) + (2 * spread - 1) * (second - third)
    assert loss_plus[2] == pytest.approx(expected, rel=1e-9)
    assert gradient[2] == pytest.approx(-2 * (first + second - 2 * third), rel=1e-6)


@pytest.mark.parametrize("spread", [250.0, 350.0])
def test_wide_pages_equal_narrow_ones(spread):
    """Far below the highest score, where exponentials underflow, pairs agree with the reference."""
    near, far = (
        ClickedPage((0, 1, 2), (1, 2, 3), (0, 1, 0)),
        ClickedPage((3, 4, 5), (1, 2, 3), (0, 1, 0)),
    )
    sessions = [near, far]
    objective = objective_of(sessions, 12, PositionBias.none(3))
    score = np.zeros(12)
    score[:6] = [0.4, 0.1, -spread, -spread, 0.5 - spread, 0.25 - spread]
    arguments = (sessions, score, np.ones(3), np.ones(3), 2.0)
    gradient, hessian = objective.gradients(score)
    np.testing.assert_allclose(gradient, reference.adjusted_lambdas(*arguments), **CLOSE)
    np.testing.assert_allclose(hessian, reference.hessians(*arguments), **CLOSE)
    losses = reference.position_losses(*arguments)
    np.testing.assert_allclose(objective.losses(score), losses, rtol=1e-10)


@pytest.mark.parametrize("seed", range(2))
def test_threads_do_not_matter(seed, eager_threads):
    """One thread and two give the same bits."""
    _, score, _, objective = random_case(seed, n_queries=300, sessions_per_query=20)
    assert len(objective._table.chunks) > 3
    results = []
    for number in (1, 2):
        with threads(number):
            results.append((*objective.losses(score), *objective.gradients(score)))
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)


@njit
def _of_each(function, values):
    """The function of each of the numbers."""
    results = np.empty_like(values)
    for k in range(len(values)):
        results[k] = function(values[k])
    return results


def test_log_of_one_plus_has_full_precision():
    """The polynomial agrees with log1p to a few units in the last place over its whole range."""
    ratio = np.concatenate((np.linspace(0, 1, 10_001), np.logspace(-300, 0, 1_000)))
    log = njit(lambda value: kernels._log_of_one_plus(value, 1.0))
    np.testing.assert_allclose(_of_each(log, ratio), np.log1p(ratio), rtol=4e-15)


def test_several_chunks_equal_the_reference():
    """With so many pages that they are cut into chunks, the sums are still the paper's."""
    sessions, score, bias, objective = random_case(8, n_queries=250, sessions_per_query=6)
    assert len(objective._table.chunks) > 2
    arguments = (sessions, score, bias.t_plus, bias.t_minus, 2.0)
    np.testing.assert_allclose(
        objective.losses(score), reference.position_losses(*arguments), rtol=1e-10
    )
    gradient, hessian = objective.gradients(score)
    np.testing.assert_allclose(gradient, reference.adjusted_lambdas(*arguments), **CLOSE)
    np.testing.assert_allclose(hessian, reference.hessians(*arguments), **CLOSE)
