"""`unskew simulate`: labelled data becomes a click log."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unskew.cli.console import output as screen
from unskew.cli.labelled import Labelled, read_labelled
from unskew.errors import UsageError

if TYPE_CHECKING:
    from unskew.log.labelled import LabelledData
    from unskew.simulate import ClickModel, LoggingPolicy, Propensities

__all__ = ["run"]


def run(
    data: Annotated[
        str, typer.Argument(help="A LETOR file or table, the folder of a dataset, or 'generated'.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The log: a Parquet file.")],
    sessions: Annotated[int, typer.Option(help="How many sessions.", min=1)] = 165_660,
    seed: Annotated[int, typer.Option(help="Same seed, same log.", min=0)] = 1,
    model: Annotated[
        str,
        typer.Option(help="pbm, cascade, ubm, dbn, dcm, trust or contextual."),
    ] = "pbm",
    theta: Annotated[
        float | None, typer.Option(help="Severity of position bias (pbm, ubm, trust).")
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Attraction of an irrelevant result.")
    ] = None,
    beta: Annotated[
        float | None, typer.Option(help="Continuation to the next result (cascade).")
    ] = None,
    phi: Annotated[
        float | None, typer.Option(help="Satisfaction, a share of attraction (cascade).")
    ] = None,
    gamma: Annotated[
        float | None, typer.Option(help="Perseverance of an unsatisfied user (dbn).")
    ] = None,
    trust: Annotated[
        float | None, typer.Option(help="Clicks on an irrelevant top result (trust).")
    ] = None,
    max_grade: Annotated[
        int | None, typer.Option(help="The highest grade; by default that of the data.")
    ] = None,
    policy: Annotated[
        str, typer.Option(help="Who ranked: ranksvm, random, drifting or labels.")
    ] = "ranksvm",
    share: Annotated[
        float, typer.Option(help="The share of labelled queries that train the ranksvm.")
    ] = 0.01,
    explore: Annotated[float, typer.Option(help="The share of sessions that are shuffled.")] = 0.0,
    length: Annotated[int, typer.Option(help="Results on a page; 0 shows all.", min=0)] = 10,
    part: Annotated[
        str, typer.Option(help="Of a dataset or generated data: train, validation or test.")
    ] = "train",
    dataset: Annotated[
        str | None, typer.Option(help="Which dataset a folder holds, such as mslr-web10k.")
    ] = None,
    fold: Annotated[int, typer.Option(help="Which fold of a dataset.", min=1)] = 1,
    queries: Annotated[int, typer.Option(help="How many queries to generate.")] = 1_000,
    labels: Annotated[
        Path | None, typer.Option(help="Also write the labelled test documents here (Parquet).")
    ] = None,
) -> None:
    """Simulate a click log on labelled data.

    Beside the log stand the features of its documents (NAME.features.parquet) and the true
    examination of each position (NAME.propensities.json).
    """
    labelled = read_labelled(
        data, part=part, dataset=dataset, fold=fold, n_queries=queries, seed=seed
    )
    given = {
        "theta": theta, "epsilon": epsilon, "beta": beta, "phi": phi, "gamma": gamma,
        "trust": trust, "max_grade": max_grade or labelled.max_grade,
    }  # fmt: skip
    options = {name: value for name, value in given.items() if value is not None}
    logging_policy = _policy(labelled.data, policy, share, explore, length or None, seed)
    _simulate(labelled, model, options, logging_policy, sessions, seed, out, labels)


def _simulate(
    labelled: Labelled,
    model: str,
    options: dict[str, Any],
    policy: LoggingPolicy,
    sessions: int,
    seed: int,
    out: Path,
    labels: Path | None,
) -> None:
    import pyarrow.parquet as pq

    from unskew.datasets.tables import features_table, labels_table
    from unskew.simulate import click_model, sample_to_parquet, true_propensities

    chosen = click_model(model, **options)
    out.parent.mkdir(parents=True, exist_ok=True)
    sample_to_parquet(
        out, labelled.data, model=chosen, policy=policy, sessions=sessions, seed=seed,
        progress=True,
    )  # fmt: skip
    features = out.with_name(f"{out.stem}.features.parquet")
    pq.write_table(features_table(labelled.data), features)
    truth = true_propensities(out)
    propensities = out.with_name(f"{out.stem}.propensities.json")
    propensities.write_text(_json(chosen, truth), encoding="utf-8")
    written = {"log": out, "features": features, "true propensities": propensities}
    if labels is not None:
        pq.write_table(labels_table(labelled.test), labels)
        written["test labels"] = labels
    screen.print(f"{sessions:,} sessions on {labelled.data.n_queries:,} queries, {chosen.meaning}")
    for what, path in written.items():
        screen.print(f"  {what:<18}{path}", highlight=False, soft_wrap=True)


def _json(model: ClickModel, truth: Propensities) -> str:
    content = {
        "model": model.name,
        "parameters": model.describe(),
        "propensity": truth.mean.tolist(),
        "by_context": {name: curve.tolist() for name, curve in truth.by_context.items()},
    }
    return json.dumps(content, indent=2) + "\n"


def _ranksvm(data: LabelledData, share: float, length: int | None, seed: int) -> LoggingPolicy:
    from unskew.simulate import rank_svm_policy

    return rank_svm_policy(data, share=share, length=length, seed=seed)


def _random(data: LabelledData, share: float, length: int | None, seed: int) -> LoggingPolicy:
    from unskew.simulate import random_policy

    return random_policy(data, length=length, seed=seed)


def _labels(data: LabelledData, share: float, length: int | None, seed: int) -> LoggingPolicy:
    from unskew.simulate import score_policy

    return score_policy(data, data.relevance, length=length, seed=seed)


def _drifting(data: LabelledData, share: float, length: int | None, seed: int) -> LoggingPolicy:
    import numpy as np

    from unskew.simulate import drifting_policy

    order = _ranksvm(data, share, None, seed).order[0]
    start = np.repeat(data.offsets[:-1], np.diff(data.offsets))
    score = np.empty(len(data))
    score[order] = start - np.arange(len(data))
    return drifting_policy(data, score, length=length, seed=seed)


POLICIES: dict[str, Callable[[LabelledData, float, int | None, int], LoggingPolicy]] = {
    "ranksvm": _ranksvm,
    "random": _random,
    "drifting": _drifting,
    "labels": _labels,
}


def _policy(
    data: LabelledData, name: str, share: float, explore: float, length: int | None, seed: int
) -> LoggingPolicy:
    from unskew.simulate import epsilon_policy

    if name not in POLICIES:
        raise UsageError(f"--policy must be one of {', '.join(POLICIES)}, got {name!r}")
    policy = POLICIES[name](data, share, length, seed)
    return epsilon_policy(policy, explore) if explore else policy
