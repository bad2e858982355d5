"""The losses of the network: by hand, and their gradients against finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from unskew.rankers.neural.network import build, listwise_loss, log_softmax_by_page, pairwise_loss

torch = pytest.importorskip("torch")

SEGMENT = torch.tensor([0, 0, 0, 1, 1, 2])


def slope(loss, at, step=1e-6):
    """Central differences of a loss by every entry of a float64 tensor."""
    found = torch.zeros_like(at)
    for k in range(at.numel()):
        up, down = at.detach().clone(), at.detach().clone()
        up.view(-1)[k] += step
        down.view(-1)[k] -= step
        found.view(-1)[k] = (loss(up) - loss(down)) / (2 * step)
    return found


def test_listwise_loss_by_hand():
    """Two pages: weights times the negative logarithm of each result's share of its page."""
    score = torch.log(torch.tensor([1.0, 2.0, 1.0, 3.0, 1.0, 5.0], dtype=torch.float64))
    weight = torch.tensor([0.0, 2.0, 1.0, 4.0, 0.0, 7.0], dtype=torch.float64)
    expected = -(2 * np.log(2 / 4) + 1 * np.log(1 / 4) + 4 * np.log(3 / 4) + 7 * np.log(5 / 5))
    assert float(listwise_loss(score, weight, SEGMENT, 3)) == pytest.approx(expected)


def test_pairwise_loss_by_hand():
    """Weight times log(1 + exp(-sigma * gap)) of each pair."""
    score = torch.tensor([1.0, 0.5, -1.0], dtype=torch.float64)
    i, j = torch.tensor([0, 2]), torch.tensor([1, 0])
    weight = torch.tensor([2.0, 3.0], dtype=torch.float64)
    expected = 2 * np.log1p(np.exp(-1.5 * 0.5)) + 3 * np.log1p(np.exp(-1.5 * -2.0))
    assert float(pairwise_loss(score, i, j, weight, 1.5)) == pytest.approx(expected)


def test_extreme_scores_stay_finite():
    """Scores a thousand apart give finite losses and gradients."""
    score = torch.tensor([1e3, -1e3, 0.0, 1e3, 1e3, -1e3], requires_grad=True)
    loss = listwise_loss(score, torch.ones(6), SEGMENT, 3)
    loss = loss + pairwise_loss(score, torch.tensor([1]), torch.tensor([0]), torch.ones(1), 2.0)
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(score.grad).all()
    assert torch.isfinite(log_softmax_by_page(score, SEGMENT, 3)).all()


@pytest.mark.parametrize("kind", ["listwise", "pairwise"])
def test_gradients_by_the_scores_are_finite_differences(kind):
    """In float64, automatic and central differences agree to eight digits or so."""
    rng = torch.Generator().manual_seed(0)
    score = torch.randn(6, generator=rng, dtype=torch.float64, requires_grad=True)
    weight = torch.rand(6, generator=rng, dtype=torch.float64)
    i, j = torch.tensor([0, 2, 0, 3, 3, 4]), torch.tensor([1, 1, 2, 4, 4, 3])

    def loss(s):
        if kind == "listwise":
            return listwise_loss(s, weight, SEGMENT, 3)
        return pairwise_loss(s, i, j, weight, 2.0)

    (gradient,) = torch.autograd.grad(loss(score), score)
    torch.testing.assert_close(gradient, slope(loss, score), rtol=1e-6, atol=1e-8)
    # What a page pushes up it pushes down elsewhere.
    assert float(gradient[:3].sum()) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("kind", ["listwise", "pairwise"])
def test_gradients_by_the_weights_of_the_network_are_finite_differences(kind):
    """Through all layers, ELU and normalisation, every parameter's gradient is right."""
    network = build(3, (5, 4), seed=1).double()
    X = torch.randn(6, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    weight = torch.tensor([1.0, 0.0, 2.0, 0.5, 3.0, 1.0], dtype=torch.float64)
    i, j = torch.tensor([0, 2, 4]), torch.tensor([1, 1, 3])

    def loss():
        score = network(X).squeeze(1)
        if kind == "listwise":
            return listwise_loss(score, weight, SEGMENT, 3)
        return pairwise_loss(score, i, j, weight[:3], 2.0)

    gradients = torch.autograd.grad(loss(), list(network.parameters()))
    for parameter, gradient in zip(network.parameters(), gradients, strict=True):

        def at(value, parameter=parameter):
            before = parameter.detach().clone()
            with torch.no_grad():
                parameter.copy_(value)
                found = loss()
                parameter.copy_(before)
            return found

        torch.testing.assert_close(gradient, slope(at, parameter), rtol=1e-5, atol=1e-8)


def test_the_seed_decides_the_weights_and_nothing_else():
    """The same seed, the same network; PyTorch's own random numbers go on as if nothing happened."""
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    one, two, other = (build(4, (8, 3), seed=seed) for seed in (1, 1, 2))
    assert torch.equal(torch.rand(3), expected)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    assert not torch.equal(one[0].weight, other[0].weight)
    assert [layer.out_features for layer in one if isinstance(layer, torch.nn.Linear)] == [8, 3, 1]
