"""How often intervals hold the truth when the bias is estimated from the same log.

    python benchmarks/bias_uncertainty.py

Prints, for logs of several sizes, the share of simulated logs whose 95% intervals hold the true DCG,
its difference from the logged order, click@1 and its difference: with the bias taken for known, and
with its uncertainty. Intervals are about other queries, then about other sessions of the same.
"""

from __future__ import annotations

import argparse

import numpy as np

from unskew.array_types import FloatArray
from unskew.bias import Harvesting
from unskew.evaluation.log_evaluation import LogEvaluation, evaluate_log
from unskew.log.impressions import Impressions

RHO = np.array([0.68, 0.61, 0.48, 0.34, 0.28, 0.20, 0.11, 0.10, 0.08, 0.06])
DISCOUNT = 1 / np.log2(np.arange(2, 12))
SIZES = ((30, 100, 0.2), (200, 20, 0.2), (20, 500, 0.05))


class World:
    """Queries, a log of them of which some lists are shuffled, and a ranking that is better."""

    def __init__(
        self, rng: np.random.Generator, n_queries: int, sessions: int, shuffled: float
    ) -> None:
        self.shuffled = shuffled
        self.r = rng.beta(1, 4, size=(n_queries, 10))
        live, new = (rng.normal(size=self.r.shape) + k * self.r for k in (2, 4))
        self.live, self.new = (np.argsort(-score, axis=1) for score in (live, new))
        query = np.repeat(np.arange(n_queries), sessions)
        page = self.live[query]
        turned = rng.random(len(query)) < shuffled
        page[turned] = rng.permuted(page[turned], axis=1)
        click = rng.random(page.shape) < RHO * self.r[query[:, None], page]
        self.data = Impressions.from_arrays(
            None, click.ravel().astype(int), session=np.repeat(np.arange(len(query)), 10),
            query=np.repeat(query, 10), doc=(query[:, None] * 10 + page).ravel(),
            position=np.tile(np.arange(1, 11), len(query)),
        )  # fmt: skip
        self.score = new.ravel()[self.data.documents.doc.astype(int)]

    def truth(self) -> FloatArray:
        """DCG and click@1 and their differences, where DCG is in units of the top's propensity."""
        new, live = (np.take_along_axis(self.r, order, 1) for order in (self.new, self.live))
        mixed = (1 - self.shuffled) * live + self.shuffled * self.r.mean(1, keepdims=True)
        dcg, logged = (RHO[0] * (value @ DISCOUNT).mean() for value in (new, mixed))
        first, logged_first = (RHO[0] * value[:, 0].mean() for value in (new, mixed))
        return np.array([dcg, dcg - logged, first, first - logged_first])


def held(found: LogEvaluation, truth: FloatArray) -> list[bool]:
    """Whether each interval holds the truth."""
    value = found.estimates["new"]["dr"]
    more = {one.metric: one for one in found.differences}
    told = [
        interval
        for metric in ("dcg@10", "click@1")
        for interval in (value[metric].interval, more[metric].interval)
    ]
    return [t in interval for t, interval in zip(truth, told, strict=True)]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--logs", type=int, default=100)
    logs = parser.parse_args().logs
    rng = np.random.default_rng(11)
    print(
        "| queries x sessions, shuffled | about | bias | DCG | difference | click@1 | difference |"
    )
    print("|---|---|---|---:|---:|---:|---:|")
    for n_queries, sessions, shuffled in SIZES:
        everywhere = World(rng, 40_000, 1, 0.0)
        everywhere.shuffled = shuffled
        ways = [(by, n) for by in ("query", "session") for n in (0, 40)]
        share = {way: np.zeros(4) for way in ways}
        for _ in range(logs):
            world = World(rng, n_queries, sessions, shuffled)
            bias = Harvesting().fit(world.data)
            for by, n in ways:
                found = evaluate_log(
                    world.data, {"new": world.score}, bias, metrics=["dcg@10", "click@1"],
                    estimators=["dr"], by=by, refit=Harvesting(), n_resamples=n,
                )  # fmt: skip
                truth = everywhere.truth() if by == "query" else world.truth()
                share[by, n] += np.array(held(found, truth)) / logs
        for (by, n), found_share in share.items():
            kind = "uncertain" if n else "known"
            cells = " | ".join(f"{value:.0%}" for value in found_share)
            print(
                f"| {n_queries} x {sessions}, {shuffled:.0%} | {by} | {kind} | {cells} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
