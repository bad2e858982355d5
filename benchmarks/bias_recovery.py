"""What every bias estimator makes of simulated clicks whose true propensities are known.

    python benchmarks/bias_recovery.py --sessions 200000 --queries 500 --runs 2
    python benchmarks/bias_recovery.py --trust 40 100 --queries 1000 --runs 3 --first 2001
    python benchmarks/bias_recovery.py --coverage 200 --sessions 3000 --queries 30 --first 1000

With ``--trust`` it prints instead, for so many sessions a query, the largest error of every run and in
how many of them the method warned of its curve. With ``--coverage N`` it measures how often bootstrap
intervals hold the truth, on N logs. The seeds of runs and logs count from ``--first``.

Users click by the position-based model with examination probabilities from an eye-tracking study.
What differs is who ranked: from shuffled lists, where relevance is independent of position, to better
and better rankers, behind which it follows position. Labels make the clicks and the logging rankers,
the truth judges the result; no setting is chosen by either. The linear rankers and the trees were
trained on labels of other queries than those that were logged.

The output is Markdown: the largest error of any position, averaged over the runs, and the curves.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import lightgbm
import numpy as np
import numpy.typing as npt
import pyarrow as pa

import unskew
from unskew import simulate
from unskew.bias import Harvesting, Randomization, RegressionEM, RelativeCTR
from unskew.bias.bootstrap import bootstrap_bias
from unskew.bias.comparison import compare_estimators
from unskew.bias.estimator import BiasEstimator
from unskew.clicks.fitting.fitted import fit_click_model
from unskew.registry import METHODS
from unskew.simulate.weak_ranker import fit_rank_svm

FloatArray = npt.NDArray[np.float64]

PAGE = 10
SHUFFLED_SHARE = 0.1
# An error that must not go without a warning.
PROMISED = 0.05
# Rankers that learn a curve while they train, and the fitted click model.
JOINT, RANKER, FITTED = "lambdamart+pairwise", "click-model-ranker", "fitted-pbm"
LEARNED = (FITTED, RANKER, JOINT)


@dataclass(frozen=True)
class Labels:
    """Labelled queries: some to train logging rankers on, others to be logged."""

    known: unskew.LabelledData
    logged: unskew.LabelledData
    seed: int

    def scores(self, model: Any) -> FloatArray:
        """A model's scores of the documents to be logged."""
        return np.asarray(model.predict(self.logged.features.values), dtype=np.float64)

    def few(self, share: float) -> unskew.LabelledData:
        """A share of the known queries, two at least."""
        n = max(2, round(share * self.known.n_queries))
        return self.known.take_queries(np.arange(n))


def random_order(labels: Labels) -> simulate.LoggingPolicy:
    """A fixed order that has nothing to do with relevance."""
    score = np.random.default_rng(labels.seed).normal(size=len(labels.logged))
    return simulate.score_policy(labels.logged, score, length=PAGE)


def linear(labels: Labels, share: float) -> simulate.LoggingPolicy:
    """A linear ranker trained on a share of the known labels."""
    score = labels.scores(fit_rank_svm(labels.few(share), seed=labels.seed))
    return simulate.score_policy(labels.logged, score, length=PAGE)


def trees(labels: Labels) -> simulate.LoggingPolicy:
    """Boosted trees trained on all known labels: about as good as the features allow."""
    known = labels.known
    data = lightgbm.Dataset(known.features.values, known.relevance)
    model = lightgbm.train({"objective": "l2", "verbosity": -1, "num_threads": 1}, data, 200)
    return simulate.score_policy(labels.logged, labels.scores(model), length=PAGE)


def by_label(labels: Labels) -> simulate.LoggingPolicy:
    """The labels themselves: a ranker that knows more than the features say."""
    return simulate.score_policy(labels.logged, labels.logged.relevance, length=PAGE)


def drifting(labels: Labels) -> simulate.LoggingPolicy:
    """The linear ranker of all labels, disturbed anew ten times, so that documents move."""
    score = labels.scores(fit_rank_svm(labels.known, seed=labels.seed))
    return simulate.drifting_policy(labels.logged, score, length=PAGE, seed=labels.seed)


def shuffled(labels: Labels) -> simulate.LoggingPolicy:
    """Every list shuffled."""
    return simulate.random_policy(labels.logged, length=PAGE)


# Who ranked, and whether a share of the sessions was shuffled and marked beside it.
LOGS: dict[str, tuple[Callable[[Labels], simulate.LoggingPolicy], bool]] = {
    "shuffled lists": (shuffled, False),
    "random fixed order": (random_order, False),
    "linear, 1% of labels": (lambda labels: linear(labels, 0.01), False),
    "linear, all labels": (lambda labels: linear(labels, 1.0), False),
    "trees, all labels": (trees, False),
    "the labels themselves": (by_label, False),
    "linear, drifting": (drifting, False),
    "trees, 10% shuffled": (trees, True),
}


def features_table(data: unskew.LabelledData) -> pa.Table:
    """The features keyed by query and document."""
    columns = {n: data.features.values[:, k] for k, n in enumerate(data.features.names)}
    return pa.table({"query": data.query, "doc": data.doc, **columns})


def click_log(
    labels: Labels, policy: simulate.LoggingPolicy, sessions: int, mixed: bool
) -> tuple[unskew.Impressions, FloatArray]:
    """The log, its shuffled sessions marked by the context "shuffled", and the true curve."""
    part = round(SHUFFLED_SHARE * sessions) if mixed else 0
    tables = []
    for arm, by, count in (("live", policy, sessions - part), ("shuffled", shuffled(labels), part)):
        if count:
            table = simulate.sample(
                labels.logged, policy=by, sessions=count, seed=2 * labels.seed + (arm == "live")
            )
            truth = simulate.true_propensities(table).relative
            session = np.asarray(table["session"]) + (0 if arm == "live" else sessions)
            table = table.set_column(0, "session", pa.array(session)).replace_schema_metadata()
            tables.append(table.append_column("arm", pa.array([arm] * len(table))))
    log = pa.concat_tables(tables)
    found = unskew.read_log(
        log, features=features_table(labels.logged), context="arm", progress=False
    )
    return found, truth


def relevance_by_position(data: unskew.Impressions, labels: Labels) -> tuple[float, float]:
    """Mean attraction of what was shown first and last on the page."""
    attraction = simulate.click_model("pbm").attraction(labels.logged.relevance)
    sizes = np.diff(data.pages.offsets)
    shown = np.bincount(data.patterns.page, weights=data.patterns.count, minlength=len(data.pages))
    weight = np.repeat(shown, sizes)
    relevance = attraction[data.documents.doc[data.pages.document]]
    at = [data.pages.position == k for k in (1, PAGE)]
    return tuple(float(np.average(relevance[k], weights=weight[k])) for k in at)  # type: ignore[return-value]


class Found(NamedTuple):
    """The curve of a method, None if it does not fit the log; its time, and what it warned of."""

    curve: FloatArray | None
    seconds: float
    warned: tuple[str, ...] = ()


def curves(
    data: unskew.Impressions, marked: bool, arguments: argparse.Namespace
) -> dict[str, Found]:
    """What every method makes of a log."""
    context = "shuffled" if marked else None
    found = {}
    for one in compare_estimators(
        data, methods=alone(arguments.methods), context=context, n_jobs=arguments.jobs
    ):
        if one.bias is None:
            found[one.method] = Found(None, one.seconds)
        else:
            warned = tuple(note for note in one.notes if note not in one.bias.notes)
            found[one.method] = Found(one.bias.t_plus, one.seconds, warned)
    for name in LEARNED:
        if name in arguments.methods:
            started = time.perf_counter()
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                curve = learned(name, data, arguments)
            warned = tuple(str(one.message) for one in caught)
            found[name] = Found(curve, time.perf_counter() - started, warned)
    return found


def learned(
    name: str, data: unskew.Impressions, arguments: argparse.Namespace
) -> FloatArray | None:
    """The curve that a click model or a ranker learns; None if the log cannot tell it."""
    if name == FITTED:
        fitted = fit_click_model(data, "pbm")
        # Where documents do not link the positions it warns that its curve repeats the CTR.
        linked = arguments.trust or not fitted.likelihood.unlinked_positions()
        return fitted.position_bias().t_plus if linked else None
    shared: dict[str, Any] = {"random_state": 0, "n_jobs": arguments.jobs, "verbose": 0}
    if name == RANKER:
        return unskew.ClickModelRanker(**shared).fit(data).t_plus_
    return unskew.UnbiasedLambdaMART(n_estimators=arguments.trees, **shared).fit(data).t_plus_


def measure(arguments: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    """For each kind of log and each run: errors, curves, times."""
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in arguments.logs}
    for run in range(arguments.first, arguments.first + arguments.runs):
        labels = labels_of(run, arguments.queries)
        for name in arguments.logs:
            policy, mixed = LOGS[name]
            log, truth = click_log(labels, policy(labels), arguments.sessions, mixed)
            found = curves(log, mixed, arguments)
            errors = {
                method: round(float(np.abs(one.curve - truth).max()), 3)
                for method, one in found.items()
                if one.curve is not None
            }
            warned = [method for method, one in found.items() if one.warned]
            told = f"run {run}: {name}, {arguments.sessions:,} sessions: {errors}, warned: {warned}"
            print(told, file=sys.stderr, flush=True)
            results[name].append(
                {"truth": truth, "found": found, "relevance": relevance_by_position(log, labels)}
            )
    return results


def labels_of(run: int, queries: int) -> Labels:
    """The queries of one run."""
    data = unskew.datasets.make_search_dataset(
        n_queries=2 * queries, n_features=32, docs_per_query=15, seed=run
    )
    return Labels(
        known=data.take_queries(np.arange(queries)),
        logged=renumbered(data.take_queries(np.arange(queries, 2 * queries))),
        seed=run,
    )


def renumbered(data: unskew.LabelledData) -> unskew.LabelledData:
    """The same queries with documents counted from 0, so that a document is its row."""
    return unskew.LabelledData(data.features, data.relevance, data.query, np.arange(len(data)))


def alone(methods: list[str]) -> list[str]:
    """Those of the methods that have an estimator of their own."""
    return [name for name in methods if name not in LEARNED]


def errors_table(results: dict[str, list[dict[str, Any]]], methods: list[str]) -> list[str]:
    """The largest error of any position, averaged over the runs."""
    lines = [
        "| who ranked | relevance at 1, at 10 | " + " | ".join(methods) + " |",
        "|---|---|" + "---|" * len(methods),
    ]
    for name, runs in results.items():
        top, last = np.mean([run["relevance"] for run in runs], axis=0)
        cells = []
        for method in methods:
            found = [(run["found"][method].curve, run["truth"]) for run in runs]
            if any(curve is None for curve, _ in found):
                cells.append("–")
            else:
                cells.append(f"{np.mean([np.abs(c - t).max() for c, t in found]):.3f}")
        lines.append(f"| {name} | {top:.2f}, {last:.2f} | " + " | ".join(cells) + " |")
    return lines


def curves_table(
    results: dict[str, list[dict[str, Any]]], name: str, methods: list[str]
) -> list[str]:
    """The curves of one kind of log, averaged over the runs, and the seconds each took."""
    runs = results[name]
    lines = [
        "| position | " + " | ".join(map(str, range(1, PAGE + 1))) + " | seconds |",
        "|---|" + "---|" * (PAGE + 1),
        _row("truth", runs[0]["truth"], ""),
    ]
    for method in methods:
        found = [run["found"][method] for run in runs]
        if all(one.curve is not None for one in found):
            mean = np.mean([one.curve for one in found], axis=0)
            lines.append(_row(method, mean, f"{np.mean([one.seconds for one in found]):.1f}"))
    return lines


def trust_table(arguments: argparse.Namespace) -> list[str]:
    """The largest error of every run, and in how many runs there was a warning or a refusal."""
    methods = arguments.methods
    lines = [
        "| sessions a query | who ranked | " + " | ".join(methods) + " |",
        "|---|---|" + "---|" * len(methods),
    ]
    silent = []
    for per_query in arguments.trust:
        arguments.sessions = per_query * arguments.queries
        for name, runs in measure(arguments).items():
            cells = [trusted([(run["found"][m], run["truth"]) for run in runs]) for m in methods]
            lines.append(f"| {per_query} | {name} | " + " | ".join(cells) + " |")
            silent += [
                f"{per_query} sessions a query, {name}: {method}"
                for method in methods
                for run in runs
                if is_silent(run["found"][method], run["truth"])
            ]
    told = "; ".join(silent) if silent else "none"
    return [*lines, "", f"Runs with an error above {PROMISED} and no warning: {told}"]


def trusted(runs: list[tuple[Found, FloatArray]]) -> str:
    """The largest error of each run, and how many runs were warned of."""
    errors = [np.abs(one.curve - truth).max() for one, truth in runs if one.curve is not None]
    if not errors:
        return "refuses"
    warned = sum(bool(one.warned) for one, _ in runs)
    return " ".join(f"{error:.3f}" for error in errors) + f", warned {warned} of {len(runs)}"


def is_silent(one: Found, truth: FloatArray) -> bool:
    """Whether a curve is off by more than promised and nothing said so."""
    return (
        one.curve is not None
        and not one.warned
        and bool(np.abs(one.curve - truth).max() > PROMISED)
    )


class FittedPositionBasedModel:
    """The position-based click model of `unskew.clicks` as an estimator of position bias."""

    def fit(self, data: unskew.Impressions) -> unskew.PositionBias:
        """Its examination."""
        return fit_click_model(data, "pbm").position_bias()


def coverage_table(arguments: argparse.Namespace) -> list[str]:
    """How often 95% intervals hold the truth, by who ranked and how the bias was estimated."""
    lines = [
        "| who ranked | method | held | by position, from the second | seconds |",
        "|---|---|---|---|---|",
    ]
    for name in (one for one in ("shuffled lists", "linear, drifting") if one in arguments.logs):
        held: dict[str, list[Any]] = {}
        started: dict[str, float] = {}
        for run in range(arguments.first, arguments.first + arguments.coverage):
            log, truth = small_log(name, run, arguments)
            for method, estimator in covering(name).items():
                before = time.perf_counter()
                found = bootstrap_bias(estimator, log, n_resamples=arguments.resamples, seed=run)
                started[method] = started.get(method, 0.0) + time.perf_counter() - before
                assert found.interval_plus is not None
                low, high = found.interval_plus
                held.setdefault(method, []).append(((low <= truth) & (truth <= high))[1:])
        for method, inside in held.items():
            mean, by_position = np.mean(inside), np.mean(inside, axis=0)
            seconds = started[method] / arguments.coverage
            each = " ".join(f"{value:.0%}" for value in by_position)
            lines.append(f"| {name} | {method} | {mean:.1%} | {each} | {seconds:.1f} |")
    return lines


def small_log(
    name: str, run: int, arguments: argparse.Namespace
) -> tuple[unskew.Impressions, FloatArray]:
    """One log of the run and the true curve."""
    policy, mixed = LOGS[name]
    labels = labels_of(run, arguments.queries)
    return click_log(labels, policy(labels), arguments.sessions, mixed)


def covering(name: str) -> dict[str, BiasEstimator]:
    """The estimators that are right on a log of that kind."""
    moving: dict[str, BiasEstimator] = {
        "harvesting": Harvesting(),
        "table-em": RegressionEM(relevance="table"),
        "fitted pbm": FittedPositionBasedModel(),
    }
    if name != "shuffled lists":
        return moving
    return {"relative-ctr": RelativeCTR(), "randomization": Randomization(), **moving}


def _row(name: str, curve: FloatArray, seconds: str) -> str:
    return f"| {name} | " + " | ".join(f"{value:.2f}" for value in curve) + f" | {seconds} |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=200_000)
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--trees", type=int, default=300, help="rounds of LambdaMART")
    parser.add_argument("--jobs", type=int, default=1, help="threads")
    parser.add_argument(
        "--methods", nargs="+", metavar="NAME", help="by default all",
        default=[*(m.name for m in METHODS.values() if m.home), *LEARNED],
    )  # fmt: skip
    parser.add_argument("--logs", nargs="+", choices=LOGS, default=[*LOGS], help="who ranked")
    parser.add_argument("--first", type=int, default=0, help="the seed of the first run or log")
    parser.add_argument("--trust", type=int, nargs="+", default=[], help="sessions a query")
    parser.add_argument("--coverage", type=int, default=0, help="logs to count intervals on")
    parser.add_argument("--resamples", type=int, default=200, help="of each log, for an interval")
    arguments = parser.parse_args()
    if arguments.trust:
        print("\n".join(trust_table(arguments)))
        return
    if arguments.coverage:
        print("\n".join(coverage_table(arguments)))
        return
    results = measure(arguments)
    print("\n".join(errors_table(results, arguments.methods)))
    for name in results.keys() & {"shuffled lists", "trees, all labels"}:
        print(f"\n{name}:\n")
        print("\n".join(curves_table(results, name, arguments.methods)))


if __name__ == "__main__":
    main()
