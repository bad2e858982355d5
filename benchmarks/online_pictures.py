"""Draw the pictures of the guides to A/B tests and interleaving, from simulated clicks.

python benchmarks/online_pictures.py docs/how-to
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import unskew
from unskew.clicks import click_model
from unskew.online.interleaving import METHODS
from unskew.online.preference import read_interleaving
from unskew.report.svg import Dot, dots
from unskew.simulate import sample, score_policy

STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#222}.grid{stroke:#ccc}"
    ".interval{stroke:#0072b2;stroke-width:2}"
)


def standalone(svg: str) -> str:
    """A drawing of a page as a file of its own, with its style and a white ground."""
    head, rest = svg.split(">", 1)
    head = head.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"')
    return f'{head}><style>{STYLE}</style><rect width="100%" height="100%" fill="white"/>{rest}\n'


def ab_test() -> str:
    """The relative changes of the guide's first example."""
    data = unskew.datasets.make_search_dataset(n_queries=400, n_features=16, seed=1)
    live = data.relevance + np.random.default_rng(1).normal(scale=1.3, size=len(data))
    arms = [
        sample(data, policy=score_policy(data, score), sessions=100_000, seed=seed)
        for seed, score in ((1, live), (2, live + 0.1 * data.relevance))
    ]
    found = unskew.online.read_ab(*arms).measures
    rows = [
        Dot(name, 100 * c.relative, 100 * c.interval.low, 100 * c.interval.high)
        for name, c in found.items()
        if c.relative is not None and c.interval is not None
    ]
    return dots(rows, x_label="relative change in per cent, 95% interval")


def interleaving(sessions: int = 2_000) -> str:
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
        ends = (100 * found.interval.low, 100 * found.interval.high)
        rows.append(Dot(name, 100 * found.share_a, *ends))
    label = "per cent of impressions for the better ranker"
    return dots(rows, x_label=label)


def main() -> None:
    """Write both pictures into a folder."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    for name, svg in (("ab-test", ab_test()), ("interleaving", interleaving())):
        (folder / f"{name}.svg").write_text(standalone(svg), encoding="utf-8")
        print(folder / f"{name}.svg")


if __name__ == "__main__":
    main()
