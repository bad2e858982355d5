"""The solver: against a general convex solver, and by its own certificate."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from unskew.rankers.ranksvm.pair_svm import DocumentPairs, objective, solve


def random_problem(seed, *, n_documents=20, n_features=3, share=0.2, spread=1.0):
    """Documents, pairs among them (some in both directions) and weights of very different size."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_documents, n_features))
    chosen = rng.random((n_documents, n_documents)) < share
    np.fill_diagonal(chosen, False)
    i, j = np.nonzero(chosen)
    weight = np.exp(spread * rng.normal(size=len(i)))
    return X, DocumentPairs.of(i, j, n_documents), weight


def general_solver(X, pairs, u):
    """The quadratic programme with one slack per pair, by sequential quadratic programming."""
    D = X[pairs.i] - X[pairs.j]
    d, n = X.shape[1], len(u)

    size = u.sum()  # an objective near 1 is what the solver's tolerance is meant for

    def value(z):
        return (z[:d] @ z[:d] / 2 + u @ z[d:]) / size, np.concatenate((z[:d], u)) / size

    found = minimize(
        value, np.concatenate((np.zeros(d), np.ones(n))), jac=True, method="SLSQP",
        bounds=[(None, None)] * d + [(0, None)] * n,
        constraints={
            "type": "ineq",
            "fun": lambda z: D @ z[:d] + z[d:] - 1,
            "jac": lambda _: np.hstack((D, np.eye(n))),
        },
        options={"maxiter": 500, "ftol": 1e-10},
    )  # fmt: skip
    assert found.success, found.message
    return found.fun * size


@pytest.mark.parametrize("scale", [0.01, 1.0, 200.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_objective_agrees_with_a_general_convex_solver(seed, scale):
    """Weak and strong regularisation: the same minimum to 1e-6, tighter than the 1e-4 promised."""
    X, pairs, weight = random_problem(seed)
    u = scale * weight / len(weight)
    solution = solve(X, pairs, u, tolerance=1e-8)
    assert solution.converged
    assert solution.objective == pytest.approx(general_solver(X, pairs, u), rel=1e-6)
    assert solution.objective == pytest.approx(objective(X, pairs, u, solution.weights))


def test_one_pair_by_hand():
    """One pair a distance 2 apart along one axis: w = min(u * 2, 1 / 2) there, nothing elsewhere."""
    X = np.array([[2.0, 1.0], [0.0, 1.0]])
    pairs = DocumentPairs.of(np.array([0]), np.array([1]), 2)
    weak = solve(X, pairs, np.array([0.1]), tolerance=1e-10)
    np.testing.assert_allclose(weak.weights, [0.2, 0.0], atol=1e-6)
    assert weak.objective == pytest.approx(0.02 + 0.1 * 0.6)
    strong = solve(X, pairs, np.array([50.0]), tolerance=1e-10)
    np.testing.assert_allclose(strong.weights, [0.5, 0.0], atol=1e-6)
    assert strong.objective == pytest.approx(0.125)


@pytest.mark.parametrize("spread", [0.0, 4.0])
def test_the_gap_is_a_bound(spread):
    """No weights do better than the objective less its gap, however unequal the pairs weigh."""
    X, pairs, u = random_problem(3, n_documents=40, n_features=5, spread=spread)
    rough = solve(X, pairs, u, tolerance=1e-2)
    fine = solve(X, pairs, u, tolerance=1e-9)
    assert rough.gap <= 1e-2 * rough.objective
    assert rough.objective - rough.gap <= fine.objective <= rough.objective * (1 + 1e-12)


def test_the_matrix_of_differences_is_never_needed():
    """Margins, sums and curvature equal those by the explicit matrix of differences."""
    X, pairs, weight = random_problem(4)
    D = X[pairs.i] - X[pairs.j]
    w = np.array([0.3, -1.0, 2.0])
    np.testing.assert_allclose(pairs.margins(X, w), D @ w)
    np.testing.assert_allclose(pairs.combined(X, weight), D.T @ weight)
    np.testing.assert_allclose(pairs.curvature(X, weight), D.T @ (weight[:, None] * D))


def test_documents_that_never_differ_give_no_weights():
    """Pairs between identical rows cannot be ordered: the weights stay zero, every hinge is 1."""
    pairs = DocumentPairs.of(np.array([0, 1]), np.array([1, 2]), 3)
    solution = solve(np.ones((3, 2)), pairs, np.array([1.0, 2.0]), tolerance=1e-8)
    np.testing.assert_allclose(solution.weights, 0.0, atol=1e-12)
    assert solution.objective == pytest.approx(3.0)
