"""The network that scores a document, and its losses over pages and over pairs.

The losses are sums over what a click log compresses to, so that a page seen a thousand times costs
what a page seen once does:

    listwise   - sum over results of  weight_i * log softmax(score)_i           over the page of i
    pairwise     sum over pairs of    weight_ij * log(1 + exp(-sigma * (score_i - score_j)))

`segment` says for each result which page of the batch it stands on.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unskew.rankers.neural.pytorch import pytorch, safetensors


def build(n_inputs: int, hidden: Sequence[int], *, seed: int | None) -> Any:
    """Layers of the given widths with ELU, each fed with normalised inputs, then one score.

    The features arrive standardised; every further layer's inputs are normalised by LayerNorm. The
    features themselves are not: LayerNorm would make a document with few features lose their
    common size. Initial weights follow the seed and leave PyTorch's own random state as it was.
    """
    torch = pytorch()
    layers: list[Any] = []
    with torch.random.fork_rng(devices=[]):
        if seed is None:
            torch.seed()
        else:
            torch.manual_seed(seed)
        width = n_inputs
        for next_width in hidden:
            layers += [torch.nn.Linear(width, next_width), torch.nn.ELU()]
            layers.append(torch.nn.LayerNorm(next_width))
            width = next_width
        layers.append(torch.nn.Linear(width, 1, bias=False))
    return torch.nn.Sequential(*layers)


def restored(file: Path, n_inputs: int, hidden: Sequence[int]) -> Any:
    """The network whose weights a file holds; a ValueError unless they are those of its layers."""
    torch, tensors = pytorch(), safetensors()
    try:
        state = tensors.load_file(file)
    except Exception as error:
        if type(error).__name__ != "SafetensorError":
            raise
        raise ValueError(f"{file.name} cannot be read: {error}") from error
    found = {name: tuple(tensor.shape) for name, tensor in state.items()}
    # Compared before any layer is made: the widths could ask for more memory than there is.
    if found != _shapes(n_inputs, hidden):
        raise ValueError(f"{file.name} does not have the weights of layers {list(hidden)}")
    if not all(t.dtype == torch.float32 and t.isfinite().all() for t in state.values()):
        raise ValueError(f"{file.name} must hold finite numbers of single precision")
    network = build(n_inputs, hidden, seed=0)
    network.load_state_dict(state)
    probe = torch.outer(torch.tensor([0.0, -5.0, 5.0]), torch.ones(n_inputs))
    with torch.inference_mode():
        if not network.eval()(probe).isfinite().all():
            raise ValueError(f"{file.name} holds weights that give no finite score")
    return network


def _shapes(n_inputs: int, hidden: Sequence[int]) -> dict[str, tuple[int, ...]]:
    """The shape of every tensor of the network that `build` makes."""
    shapes: dict[str, tuple[int, ...]] = {}
    width = n_inputs
    for layer, next_width in enumerate(hidden):
        shapes[f"{3 * layer}.weight"] = (next_width, width)
        for place in (3 * layer, 3 * layer + 2):
            shapes[f"{place}.bias"] = (next_width,)
        shapes[f"{3 * layer + 2}.weight"] = (next_width,)
        width = next_width
    shapes[f"{3 * len(hidden)}.weight"] = (1, width)
    return shapes


def log_softmax_by_page(logit: Any, segment: Any, n_pages: int) -> Any:
    """Log softmax of each result among those of its page."""
    torch = pytorch()
    highest = torch.full((n_pages,), -torch.inf, dtype=logit.dtype, device=logit.device)
    highest = highest.scatter_reduce(0, segment, logit.detach(), "amax")
    shifted = logit - highest.index_select(0, segment)
    total = torch.zeros(n_pages, dtype=logit.dtype, device=logit.device)
    total = total.index_add(0, segment, shifted.exp())
    return shifted - total.log().index_select(0, segment)


def listwise_loss(score: Any, weight: Any, segment: Any, n_pages: int) -> Any:
    """The softmax cross-entropy of all pages, each result with its weight."""
    return -(weight * log_softmax_by_page(score, segment, n_pages)).sum()


def pairwise_loss(score: Any, i: Any, j: Any, weight: Any, sigma: float) -> Any:
    """The logistic loss of all pairs, each with its weight."""
    torch = pytorch()
    gap = score.index_select(0, i) - score.index_select(0, j)
    return (weight * torch.nn.functional.softplus(-sigma * gap)).sum()
