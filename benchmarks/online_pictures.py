"""Draw the pictures of the guides to A/B tests and interleaving, from simulated clicks.

python benchmarks/online_pictures.py docs/how-to
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import unskew
from unskew.charts import Dot, DotChart
from unskew.clicks import click_model
from unskew.online.interleaving import METHODS
from unskew.online.preference import read_interleaving
from unskew.simulate import sample, score_policy


def ab_test() -> DotChart:
    """The relative changes of the guide's first example."""
    data = unskew.datasets.make_search_dataset(n_queries=400, n_features=16, seed=1)
    live = data.relevance + np.random.default_rng(1).normal(scale=1.3, size=len(data))
    arms = [
        sample(data, policy=score_policy(data, score), sessions=100_000, seed=seed)
        for seed, score in ((1, live), (2, live + 0.1 * data.relevance))
    ]
    found = unskew.online.read_ab(*arms).measures
    rows = [
        Dot(name, c.relative, c.interval.low, c.interval.high)
        for name, c in found.items()
        if c.relative is not None and c.interval is not None
    ]
    return DotChart(
        title="Relative change of each measure",
        dots=rows,
        x_label="relative change, 95% interval",
        share=True,
        reference=0.0,
    )


def interleaving(sessions: int = 2_000) -> DotChart:
    """The preference for the better ranker by each method, after the same number of sessions."""
    data = unskew.datasets.make_search_dataset(n_queries=200, n_features=16, seed=1)
    rng = np.random.default_rng(0)
    good = data.relevance + rng.normal(size=len(data))
    poor = good + rng.normal(scale=1.5, size=len(data))
    model = click_model("pbm")
    rows = []
    for name, mix in METHODS.items():
        log: dict[str, list[object]] = {"session": [], "team": [], "credit": [], "click": []}
        for session in range(sessions):
            query = rng.integers(200)
            docs = np.arange(data.offsets[query], data.offsets[query + 1])
            a, b = (docs[np.argsort(-score[docs])].tolist() for score in (good, poor))
            mixed = mix(a, b, rng, length=10)
            chance = model.click_probabilities(data.relevance[list(mixed.doc)])
            log["session"] += [session] * len(mixed.doc)
            log["team"] += mixed.team
            log["credit"] += mixed.credit
            log["click"] += (rng.random(len(chance)) < chance).astype(int).tolist()
        found = read_interleaving(log).impressions
        assert found.share_a is not None
        assert found.interval is not None
        rows.append(Dot(name, found.share_a, found.interval.low, found.interval.high))
    return DotChart(
        title="Impressions for the better ranker by method",
        dots=rows,
        x_label="share of impressions for the better ranker, 95% interval",
        share=True,
        reference=0.5,
    )


def main() -> None:
    """Write both pictures into a folder."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    for name, chart in (("ab-test", ab_test()), ("interleaving", interleaving())):
        chart.save(folder / f"{name}.svg")
        print(folder / f"{name}.svg")


if __name__ == "__main__":
    main()
