"""Draw the pictures of the guides to A/B tests, interleaving and evaluation, from simulated clicks.

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
from unskew.simulate import epsilon_policy, sample, score_policy


def ab_test() -> DotChart:
    """The relative changes of the guide's first example."""
    data = unskew.datasets.make_search_dataset(n_queries=400, n_features=16, seed=1)
    live = data.relevance + np.random.default_rng(1).normal(scale=1.3, size=len(data))
    arms = [
        sample(data, policy=score_policy(data, score), sessions=100_000, seed=seed)
        for seed, score in ((1, live), (2, live + 0.1 * data.relevance))
    ]
    return unskew.online.read_ab(*arms).plot()


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


def evaluation() -> DotChart:
    """Rankings of one log by its clicks: two models of the relevance, a weak one, and what is live."""
    data = unskew.datasets.make_search_dataset(n_queries=300, n_features=16, seed=1)
    rng = np.random.default_rng(2)
    live = data.relevance + rng.normal(scale=1.5, size=len(data))
    policy = epsilon_policy(score_policy(data, live), 0.2)
    clicks = unskew.read_log(sample(data, policy=policy, sessions=40_000, seed=1))
    row = clicks.documents.doc.astype(int)
    scores = {
        f"relevance, {word} noise": (data.relevance + rng.normal(scale=scale, size=len(data)))[row]
        for word, scale in (("little", 0.8), ("some", 1.2), ("much", 3.0))
    }
    estimator = unskew.bias.Harvesting()
    found = unskew.evaluate_log(
        clicks, scores, estimator.fit(clicks), refit=estimator, metrics=["click@3"]
    )
    return found.plot()


def main() -> None:
    """Write the pictures into a folder."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    charts = {"ab-test": ab_test(), "interleaving": interleaving(), "evaluate-log": evaluation()}
    for name, chart in charts.items():
        chart.save(folder / f"{name}.svg")
        print(folder / f"{name}.svg")


if __name__ == "__main__":
    main()
