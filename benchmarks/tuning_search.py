"""Which search finds good settings in few trials: by chance, a Halton sequence, or Optuna.

Every setting of a grid is judged once, by the measure of `unskew.tune`, on small generated logs. The
searches then look their trials up in that table, so that each can be repeated with many seeds. What
counts is the measure of the best trial so far: 0 is that of the ranker's defaults, 1 the best of the
grid.

    pip install optuna
    python benchmarks/tuning_search.py --queries 150 --sessions 20 --seeds 200
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np

import unskew
from unskew import simulate
from unskew.choose.search_space import Choice, sampled_settings
from unskew.choose.tuning_measure import TuningMeasure
from unskew.datasets.tables import features_table
from unskew.log.impressions import Impressions

SPACE = {
    "debias": Choice(("pairwise", "clicked", None)),
    "p": Choice((0.0, 0.5, 1.0)),
    "num_leaves": Choice((4, 8, 16, 31)),
    "n_estimators": Choice((20, 60, 150)),
}
START = ("pairwise", 0.5, 31, 150)
Key = tuple[Any, ...]
Search = Callable[[Mapping[Key, float], int, int], list[float]]


def log_of(seed: int, queries: int, sessions: int) -> Impressions:
    """A generated log behind a weak ranker, a tenth of it shuffled."""
    labels = unskew.datasets.make_search_dataset(n_queries=queries, n_features=24, seed=seed)
    policy = simulate.epsilon_policy(simulate.rank_svm_policy(labels, share=0.05), 0.1)
    log = simulate.sample(labels, policy=policy, sessions=queries * sessions, seed=seed)
    return unskew.read_log(log, features=features_table(labels), progress=False)


def judged_grid(data: Impressions, n_folds: int) -> dict[Key, float]:
    """The measure of every setting of the grid."""
    curve = unskew.bias.Harvesting().fit(data).t_plus
    measure = TuningMeasure(data, curve, k=10, n_folds=n_folds, seed=0)
    table: dict[Key, float] = {}
    for key in product(*(one.values for one in SPACE.values())):
        settings = dict(zip(SPACE, key, strict=True))
        if settings["debias"] is None and settings["p"] != 0.5:
            continue  # p does not matter there
        gains = []
        for number in range(n_folds):
            judged = measure.fold(number)
            ranker = unskew.UnbiasedLambdaMART(**settings, random_state=0, n_jobs=1, verbose=0)
            ranker.fit(judged.fold.training)
            score = ranker.predict(judged.fold.held_out.features)
            gains.append(judged.gains(score, 10, measure.n_blocks))
        table[key] = measure.mean(gains)
    for key in product(*(one.values for one in SPACE.values())):
        table.setdefault(key, table.get((key[0], 0.5, *key[2:]), 0.0))
    return table


def by_chance(table: Mapping[Key, float], trials: int, seed: int) -> list[float]:
    """Settings drawn evenly from the grid."""
    rng = np.random.default_rng(seed)
    keys = [
        tuple(one.at(float(share)) for one, share in zip(SPACE.values(), point, strict=True))
        for point in rng.random((trials - 1, len(SPACE)))
    ]
    return [table[key] for key in (START, *keys)]


def by_halton(table: Mapping[Key, float], trials: int, seed: int) -> list[float]:
    """What `unskew.tune` does."""
    keys = [
        tuple(sampled_settings(SPACE, {}, number, seed).values()) for number in range(1, trials)
    ]
    return [table[key] for key in (START, *keys)]


def by_tpe(table: Mapping[Key, float], trials: int, seed: int) -> list[float]:
    """Optuna's default sampler, begun with the defaults as well."""
    optuna = import_module("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    study.enqueue_trial(dict(zip(SPACE, START, strict=True)))

    def value(trial: Any) -> float:
        key = tuple(
            trial.suggest_categorical(name, list(one.values)) for name, one in SPACE.items()
        )
        return table[key]

    study.optimize(value, n_trials=trials)
    return [trial.value for trial in study.trials]


SEARCHES: Mapping[str, Search] = {"chance": by_chance, "halton": by_halton, "tpe": by_tpe}


def main() -> None:
    """Judge the grid on some logs and print how far each search comes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=150)
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--folds", type=int, default=2)
    parser.add_argument("--logs", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--trials", type=int, nargs="+", default=[10, 20, 40])
    options = parser.parse_args()
    reached: dict[tuple[str, int], list[float]] = {}
    for number in range(options.logs):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data = log_of(100 + number, options.queries, options.sessions)
            table = judged_grid(data, options.folds)
        low, high = table[START], max(table.values())
        for name, search in SEARCHES.items():
            for seed in range(options.seeds):
                best = np.maximum.accumulate(search(table, max(options.trials), seed))
                for trials in options.trials:
                    share = (best[trials - 1] - low) / (high - low)
                    reached.setdefault((name, trials), []).append(float(share))
    print(f"| search | {' | '.join(f'{t} trials' for t in options.trials)} |")
    print(f"|---|{'---|' * len(options.trials)}")
    for name in SEARCHES:
        found = [np.array(reached[name, trials]) for trials in options.trials]
        cells = [f"{one.mean():.3f} ± {one.std() / len(one) ** 0.5:.3f}" for one in found]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
