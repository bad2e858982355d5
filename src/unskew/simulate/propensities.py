"""The true propensities of a simulation: how likely each position is examined, on average."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray
from unskew.clicks.base import ClickModel
from unskew.clicks.kernels import FlatPages
from unskew.log.labelled import LabelledData
from unskew.simulate.policies import LoggingPolicy

# How many shuffled lists of each query are drawn to average over, if examination depends on the list.
SHUFFLES = 32


@dataclass(frozen=True, eq=False)
class Propensities:
    """P(examined) by position: over all sessions, and for each context of a contextual model.

    Examples
    --------
    >>> import unskew
    >>> labels = unskew.datasets.make_search_dataset(n_queries=30, n_features=16, seed=0)
    >>> log = unskew.simulate.sample(labels, sessions=100, seed=0)
    >>> unskew.simulate.true_propensities(log).mean[:3].round(2).tolist()
    [0.68, 0.61, 0.48]

    """

    mean: FloatArray
    by_context: Mapping[str, FloatArray] = field(default_factory=dict)

    @property
    def relative(self) -> FloatArray:
        """The mean, relative to position 1: what a bias estimator can hope to find."""
        return np.asarray(self.mean / self.mean[0])


def average_propensities(
    model: ClickModel, data: LabelledData, policy: LoggingPolicy, traffic: FloatArray
) -> Propensities:
    """P(examined) by position, averaged over the pages that the policy shows.

    Exact for position-based models and for policies that do not shuffle. For the others the
    shuffled lists are represented by a fixed random sample of them.
    """
    shares = model.context_shares(None)
    curves = [_over_pages(model, data, policy, traffic, context) for context, _ in shares]
    mean = np.sum([share * curves[context] for context, share in shares], axis=0)
    return Propensities(mean, dict(zip(model.contexts, curves, strict=False)))


def _over_pages(
    model: ClickModel,
    data: LabelledData,
    policy: LoggingPolicy,
    traffic: FloatArray,
    context: int,
) -> FloatArray:
    n = int(policy.lengths.max())
    seen, shown = np.zeros(n), np.zeros(n)
    offsets = np.concatenate(([0], np.cumsum(policy.lengths))).astype(np.int64)
    contexts = np.full(len(policy.lengths), context, dtype=np.int32)
    for order, weight in _orders(model, policy):
        row, position = policy.pages(order)
        examined, _ = model.marginals(FlatPages(offsets, row, contexts), data.relevance)
        mass = weight * np.repeat(traffic, policy.lengths)
        seen += np.bincount(position - 1, weights=mass * examined, minlength=n)
        shown += np.bincount(position - 1, weights=mass, minlength=n)
    return np.divide(seen, shown, out=np.zeros(n), where=shown > 0)


def _orders(model: ClickModel, policy: LoggingPolicy) -> list[tuple[npt.NDArray[np.int32], float]]:
    """Orders of the candidates that represent the policy, with their weights."""
    if model.position_based:
        return [(policy.order[0], 1.0)]
    kept = [(order, (1.0 - policy.epsilon) / policy.n_phases) for order in policy.order]
    if policy.epsilon == 0.0:
        return kept
    rng = np.random.default_rng(0)
    query = np.repeat(np.arange(len(policy.lengths)), np.diff(policy.offsets))
    place = np.arange(len(query)) - np.repeat(policy.offsets[:-1], np.diff(policy.offsets))
    # If only the page is shuffled, the candidates below it stay below it.
    below = place >= policy.lengths[query] if policy.shuffle == "page" else np.zeros(len(query))
    shuffled = []
    for s in range(SHUFFLES):
        order = policy.order[s % policy.n_phases]
        mixed = order[np.lexsort((rng.random(len(query)), below, query))]
        shuffled.append((mixed, policy.epsilon / SHUFFLES))
    return kept + shuffled
