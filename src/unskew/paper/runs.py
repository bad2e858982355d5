"""A run: one ranker, trained with one treatment of the clicks in one world, and what came out."""

from __future__ import annotations

import json
import time
import warnings
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from unskew import __version__
from unskew.evaluation.counterfactual import evaluate_clicks
from unskew.evaluation.evaluation import average_rank, evaluate
from unskew.paper.peers import PEERS, PeerSettings, Predict, SessionRows
from unskew.paper.profiles import Profile
from unskew.paper.settings import candidates, paper_settings
from unskew.paper.sources import Source
from unskew.paper.worlds import DEFAULT_CLICKS, Clicks, World, world_of
from unskew.position_bias import PositionBias
from unskew.registry import METHODS, RANKERS

__all__ = ["METRICS", "PAPER", "TUNED", "Result", "Run", "Study", "perform"]

FloatArray = npt.NDArray[np.float64]

METRICS = ("map", "ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10")

# The protocols: the settings of the paper, or those that validation data chose.
PAPER, TUNED = "paper", "tuned"


@dataclass(frozen=True)
class Run:
    """What is trained where.

    Attributes
    ----------
    ranker, method
        A ranker and a method of the registry, or ``labels``, ``clicks`` (raw), ``oracle`` (the true
        propensities); or a peer's library and ``own``, its debiasing.
    protocol
        `PAPER` or `TUNED`.
    p
        The exponent, where the paper's settings have one.

    """

    fold: int
    seed: int
    ranker: str
    method: str
    clicks: Clicks = DEFAULT_CLICKS
    protocol: str = PAPER
    p: float | None = None


@dataclass(frozen=True)
class Study:
    """What all runs have in common: the data and the sizes.

    ``threads`` are those of one run; None shares the cores among the processes.
    """

    source: Source
    profile: Profile
    threads: int | None = None

    @property
    def name(self) -> str:
        """Everything that the results of all runs depend on, as text."""
        profile = self.profile
        about = {
            "data": self.source.name,
            "sessions": profile.sessions,
            "trees": profile.trees,
            "epochs": profile.epochs,
            "patience": profile.patience,
            "version": __version__,
        }
        return json.dumps(about)

    def key(self, run: Run) -> str:
        """What decides the result of a run within the study, as text: equal keys, equal results."""
        about = asdict(run)
        if run.method == "labels":
            del about["clicks"]
        return json.dumps(about)


@dataclass(frozen=True)
class Result:
    """One row: the run, its settings, its metrics on the test queries, its bias, its cost.

    Attributes
    ----------
    study, key
        `Study.name` and `Study.key`.
    severity
        Theta or beta, by the click model.
    settings, candidates
        The ranker's settings as JSON; for chosen ones, all that were tried with what validation
        data said.
    average_rank, ideal_rank
        Where the ranker, and the grades, put what stood at each position of the training lists.
    notes
        What the training warned of.
    seconds, bias_seconds
        Training (all candidates together), and the estimation of a bias beforehand.

    """

    study: str
    key: str
    data: str
    fold: int
    seed: int
    click_model: str
    severity: float
    share: float
    lists: str
    sessions: int
    ranker: str
    method: str
    protocol: str
    p: float | None
    metrics: dict[str, float]
    settings: str
    candidates: str | None
    t_plus: list[float]
    t_minus: list[float]
    true_bias: list[float]
    average_rank: list[float]
    ideal_rank: list[float]
    notes: list[str]
    seconds: float
    bias_seconds: float
    n_clicks: int
    n_train_queries: int
    n_test_queries: int
    version: str = __version__
    finished: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))


@dataclass(frozen=True)
class _Trained:
    """A ranker with what is known of its training."""

    predict: Predict
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
    measured = evaluate(trained.predict(world.test.features.values), world.test, metrics=METRICS)
    shown, position = world.shown()
    query = world.train.query[shown]
    moved = trained.predict(world.train.features.values[shown])
    bias = trained.bias
    return Result(
        study=study.name,
        key=study.key(run),
        data=study.source.name,
        fold=run.fold,
        seed=run.seed,
        click_model=run.clicks.model,
        severity=run.clicks.severity,
        share=run.clicks.share,
        lists=run.clicks.lists,
        sessions=world.clicks.n_sessions,
        ranker=run.ranker,
        method=run.method,
        protocol=run.protocol,
        p=run.p,
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
        estimated = world.bias(run.method)
        debias, bias_seconds = estimated.bias, estimated.seconds
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
    return _Trained(
        best.predict,
        best.bias,
        best.settings,
        sum(one.seconds for one in trained),
        best.bias_seconds,
        tried,
    )


def _validated(world: World, trained: _Trained, yardstick: PositionBias | None) -> float:
    if yardstick is None:
        data = world.validation
        score = trained.predict(data.features.values)
        return evaluate(score, data, metrics=["ndcg@10"]).mean["ndcg@10"]
    clicks = world.validation_clicks
    score = trained.predict(clicks.features.values)
    return float(evaluate_clicks(clicks, score, yardstick, metrics=["ndcg@10"])["ndcg@10"].value)


def _peer(study: Study, run: Run, world: World) -> _Trained:
    rows = SessionRows.of(world.clicks)
    settings = PeerSettings(trees=study.profile.trees, seed=run.seed, threads=study.threads or 1)
    started = time.perf_counter()
    predict = PEERS[run.ranker](rows, settings)
    seconds = time.perf_counter() - started
    return _Trained(predict, None, {"n_estimators": settings.trees}, seconds)
