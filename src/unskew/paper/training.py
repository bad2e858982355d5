"""Training one run: one ranker with one treatment of the clicks in one world, and what came out."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.evaluation.counterfactual import evaluate_clicks
from unskew.evaluation.evaluation import average_rank, evaluate
from unskew.log.features import Features
from unskew.paper.peers import PEERS, PeerSettings, SessionRows
from unskew.paper.profiles import candidates, paper_settings
from unskew.paper.runs import METRICS, TUNED, Result, Run, Study
from unskew.paper.worlds import World, world_of
from unskew.position_bias import PositionBias
from unskew.registry import METHODS, RANKERS


@dataclass(frozen=True)
class _Trained:
    """A ranker with what is known of its training."""

    predict: Callable[[Features], npt.NDArray[np.float64]]
    bias: PositionBias | None
    settings: dict[str, Any]
    seconds: float
    bias_seconds: float = 0.0
    tried: list[dict[str, Any]] | None = None


def perform(study: Study, run: Run) -> Result:
    """Train and measure."""
    world = world_of(study.source, run.fold, run.seed, run.clicks, study.profile.sessions)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trained = _train(study, run, world)
    notes = sorted({str(one.message) for one in caught if one.category is UserWarning})
    if any(note.startswith("training was interrupted") for note in notes):
        raise KeyboardInterrupt  # a ranker cut short is not a result
    measured = evaluate(trained.predict(world.test.features), world.test, metrics=METRICS)
    shown, position = world.shown()
    query = world.train.query[shown]
    moved = trained.predict(world.train.features.take(shown.astype(np.intp)))
    bias = trained.bias
    return Result(
        **run.clicks.columns(),
        study=study.name,
        key=study.key(run),
        data=study.source.name,
        fold=run.fold,
        seed=run.seed,
        ranker=run.ranker,
        method=run.method,
        protocol=run.protocol,
        p=run.p,
        sessions=world.clicks.n_sessions,
        metrics=dict(measured.mean),
        settings=json.dumps(trained.settings, sort_keys=True),
        candidates=None if trained.tried is None else json.dumps(trained.tried),
        t_plus=[] if bias is None else bias.t_plus.tolist(),
        t_minus=[] if bias is None else bias.t_minus.tolist(),
        true_bias=world.truth.tolist(),
        average_rank=average_rank(moved, position, query).tolist(),
        ideal_rank=average_rank(world.train.relevance[shown], position, query).tolist(),
        notes=notes,
        seconds=trained.seconds,
        bias_seconds=trained.bias_seconds,
        n_clicks=world.clicks.n_clicks,
        n_train_queries=world.train.n_queries,
        n_test_queries=world.test.n_queries,
    )


def _train(study: Study, run: Run, world: World) -> _Trained:
    if run.ranker in PEERS:
        return _peer(study, run, world)
    if run.protocol == TUNED:
        return _chosen(study, run, world)
    settings = paper_settings(run.ranker, study.profile)
    if run.p is not None:
        settings["p"] = run.p
    return _fitted(study, run, world, settings)


def _fitted(
    study: Study, run: Run, world: World, settings: dict[str, Any], *, watched: bool = False
) -> _Trained:
    """A ranker with these settings; ``watched`` by validation data, which may end its training."""
    debias: Any = None
    bias_seconds = 0.0
    if run.method in METHODS and run.ranker in METHODS[run.method].learned_by:
        debias = run.method
    elif run.method not in ("labels", "clicks"):
        debias, bias_seconds = world.bias(run.method)
    ranker = RANKERS[run.ranker].load()(
        debias=debias, random_state=run.seed, n_jobs=study.threads, verbose=0, **settings
    )
    on_labels = run.method == "labels"
    options: dict[str, Any] = {}
    if watched and "early_stopping_rounds" in settings:
        options["validation"] = world.validation if on_labels else world.validation_clicks
    clicks = world.clicks  # simulated before the clock starts
    started = time.perf_counter()
    if on_labels:
        ranker.fit_labels(world.train, **options)
    else:
        ranker.fit(clicks, **options)
    seconds = time.perf_counter() - started
    bias = None if on_labels else ranker.position_bias_
    return _Trained(ranker.predict, bias, settings, seconds, bias_seconds)


def _chosen(study: Study, run: Run, world: World) -> _Trained:
    """The candidate that ranks the validation data best.

    Labels are judged by labels. Clicks are judged by clicks: NDCG@10 with each click weighted by
    the inverse of its position's bias. All candidates are judged with the same bias, that of the
    first, which has the paper's settings; a candidate cannot win by its bias alone.
    """
    trained: list[_Trained] = []
    tried: list[dict[str, Any]] = []
    yardstick: PositionBias | None = None
    for settings in candidates(run.ranker, run.method, study.profile):
        found = _fitted(study, run, world, settings, watched=True)
        yardstick = yardstick or found.bias
        value = _validated(world, found, yardstick)
        trained.append(found)
        tried.append({"settings": settings, "validation": value, "seconds": found.seconds})
    best = trained[int(np.argmax([one["validation"] for one in tried]))]
    return replace(best, seconds=sum(one.seconds for one in trained), tried=tried)


def _validated(world: World, trained: _Trained, yardstick: PositionBias | None) -> float:
    if yardstick is None:
        data = world.validation
        score = trained.predict(data.features)
        return evaluate(score, data, metrics=["ndcg@10"]).mean["ndcg@10"]
    clicks = world.validation_clicks
    score = trained.predict(clicks.features)
    found = evaluate_clicks(clicks, score, yardstick, metrics=["ndcg@10"], clip=0.0)
    return found["ndcg@10"].value


def _peer(study: Study, run: Run, world: World) -> _Trained:
    rows = SessionRows.of(world.clicks)
    settings = PeerSettings(trees=study.profile.trees, seed=run.seed, threads=study.threads or 1)
    started = time.perf_counter()
    predict = PEERS[run.ranker](rows, settings)
    seconds = time.perf_counter() - started
    return _Trained(
        lambda features: predict(features.values), None, {"n_estimators": settings.trees}, seconds
    )
