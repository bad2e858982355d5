"""How near the biases that rankers learn come to the true ones, on simulated clicks.

    python benchmarks/learned_bias.py

200,000 sessions by the position-based model with examination probabilities from an eye-tracking
study. Once the pages are shuffled, so that relevance does not depend on position; once an almost
perfect ranker ordered them. Relative CTR, which needs no ranker, stands beside for comparison.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

import unskew
from unskew.log.counts import count_statistics
from unskew.log.impressions import Impressions
from unskew.rankers.neural.dual_learning import DualLearning

FloatArray = npt.NDArray[np.float64]

EXAMINATION = np.array([0.68, 0.61, 0.48, 0.34, 0.28, 0.20, 0.11, 0.10, 0.08, 0.06])
SHOWN, FEATURES, PAGES_PER_QUERY = 10, 20, 8
# A network large enough for twenty features.
HIDDEN = (64, 32)


def simulated_log(n_sessions: int, n_queries: int, *, shuffled: bool) -> Impressions:
    """Position-based clicks on shuffled pages, or on pages ordered by relevance and a little noise."""
    rng = np.random.default_rng(0)
    feature = rng.normal(size=(n_queries, SHOWN, FEATURES))
    quality = feature[..., :5].sum(axis=2) / np.sqrt(5)
    relevance = 1 / (1 + np.exp(1 - 2 * quality))
    key = rng.normal(size=(n_queries, PAGES_PER_QUERY, SHOWN))
    if not shuffled:
        key = 0.3 * key - quality[:, None]
    order = np.argsort(key, axis=2)
    query = rng.integers(n_queries, size=n_sessions)
    page = order[query, rng.integers(PAGES_PER_QUERY, size=n_sessions)]
    click = rng.random(page.shape) < EXAMINATION * relevance[query[:, None], page]
    return Impressions.from_arrays(
        feature[query[:, None], page].reshape(-1, FEATURES), click.reshape(-1),
        session=np.repeat(np.arange(n_sessions), SHOWN), query=np.repeat(query, SHOWN),
        doc=(query[:, None] * SHOWN + page).reshape(-1),
        position=np.tile(np.arange(1, SHOWN + 1), n_sessions),
    )  # fmt: skip


def relative_ctr(data: Impressions) -> FloatArray:
    """Clicks at each position, relative to the first."""
    clicks = np.bincount(data.pages.position - 1, weights=count_statistics(data).clicks)
    return np.asarray(clicks / clicks[0])


METHODS: dict[str, Callable[[Impressions], FloatArray]] = {
    "relative CTR": relative_ctr,
    "Dual Learning": lambda data: DualLearning(hidden=HIDDEN).fit(data).t_plus,
    "Pairwise Debiasing, NeuralRanker": lambda data: unskew.NeuralRanker(
        hidden=HIDDEN, random_state=0, verbose=0
    ).fit(data).t_plus_,
    "Pairwise Debiasing, PropensityRankSVM": lambda data: unskew.PropensityRankSVM(
        verbose=0
    ).fit(data).t_plus_,
    "Pairwise Debiasing, UnbiasedLambdaMART": lambda data: unskew.UnbiasedLambdaMART(
        random_state=0, verbose=0
    ).fit(data).t_plus_,
}  # fmt: skip


def main() -> None:
    """Parse, simulate, estimate, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sessions", type=int, default=200_000)
    parser.add_argument("--queries", type=int, default=500)
    options = parser.parse_args()
    truth = EXAMINATION / EXAMINATION[0]
    for name, shuffled in (("shuffled pages", True), ("a good logging ranker", False)):
        data = simulated_log(options.sessions, options.queries, shuffled=shuffled)
        print(f"\n{name}: t_plus\n\n| | 2 | 5 | 10 | largest error |\n|---|---:|---:|---:|---:|")
        print(f"| truth | {truth[1]:.2f} | {truth[4]:.2f} | {truth[9]:.2f} | |")
        for method, estimate in METHODS.items():
            t = estimate(data)
            error = np.abs(t - truth).max()
            row = f"| {method} | {t[1]:.2f} | {t[4]:.2f} | {t[9]:.2f} | {error:.2f} |"
            print(row, flush=True)


if __name__ == "__main__":
    main()
