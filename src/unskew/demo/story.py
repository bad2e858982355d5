"""The whole story on simulated clicks: what position bias does to a ranker, and what undoing it does.

On generated data the truth is known twice over: the grades say how good a ranking is, and the click
model says how much each position was examined. Three rankers of the same kind are trained on the
same queries: on the raw clicks, on the clicks with Pairwise Debiasing, and on the grades, which real
logs do not have. Beside them stands `unskew.fit`, which chooses method and settings from the clicks.
They are compared on queries none of them has seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from unskew.array_types import FloatArray
from unskew.choose.ranker import TRIALS, AutoRanker
from unskew.datasets import make_search_dataset
from unskew.datasets.tables import features_table
from unskew.evaluation.evaluation import DEFAULT_METRICS, Evaluation, average_rank, evaluate
from unskew.evaluation.significance import Comparison, compare
from unskew.log.impressions import Impressions
from unskew.log.labelled import LabelledData
from unskew.log.read import read_log
from unskew.position_bias import PositionBias
from unskew.rankers.lambdamart.ranker import UnbiasedLambdaMART
from unskew.rankers.tree_ranker import TreeRanker
from unskew.simulate import (
    LoggingPolicy,
    click_model,
    rank_svm_policy,
    sample,
    true_propensities,
)

CLICKS, DEBIASED, LABELS = "raw clicks", "Pairwise Debiasing", "labels"
CHOSEN = "unskew.fit"


@dataclass(frozen=True)
class Setting:
    """How large the story is.

    The bias exponent is the paper's, p = 0, which needs many clicks: 200 sessions a query. The
    number of sessions hardly changes the cost of training, because repeated sessions are stored
    once.
    """

    n_train: int = 1_000
    n_test: int = 1_000
    n_features: int = 40
    sessions: int = 200_000
    held_out: int = 100_000
    theta: float = 1.0
    p: float = 0.0
    n_estimators: int = 200
    num_leaves: int = 31
    trials: int = TRIALS
    learning_rate: float = 0.07


@dataclass(frozen=True, eq=False)
class Story:
    """What came out: the evaluations on unseen queries, the bias curves, the moved results.

    ``held_out`` are clicks on the queries of ``test``, which no ranker has seen; ``rankers`` are those
    that learned from clicks.
    """

    setting: Setting
    seed: int
    impressions: Impressions
    held_out: Impressions
    test: LabelledData
    rankers: Mapping[str, UnbiasedLambdaMART]
    evaluations: Mapping[str, Evaluation]
    comparisons: list[Comparison]
    true_bias: FloatArray
    estimated_bias: PositionBias
    average_ranks: Mapping[str, FloatArray]

    @property
    def true_bias_curve(self) -> PositionBias:
        """The truth as a curve of the clicked side."""
        return PositionBias.from_propensities(self.true_bias)

    @property
    def gain(self) -> Comparison:
        """Debiasing against raw clicks on NDCG@10."""
        return next(c for c in self.comparisons if c.a == DEBIASED and c.metric == "ndcg@10")


def tell(
    seed: int,
    *,
    setting: Setting | None = None,
    say: Callable[[str], None] = lambda message: None,
) -> Story:
    """Simulate, train, evaluate; ``say`` hears what is going on."""
    chosen = setting or Setting()
    say(f"generating {chosen.n_train + chosen.n_test:,} queries")
    data = make_search_dataset(
        n_queries=chosen.n_train + chosen.n_test, n_features=chosen.n_features, seed=seed
    )
    train = data.take_queries(np.arange(chosen.n_train))
    test = data.take_queries(np.arange(chosen.n_train, data.n_queries))
    say(f"simulating {chosen.sessions:,} sessions of users who rarely look far down the page")
    policy = rank_svm_policy(train, seed=seed)
    model = click_model("pbm", theta=chosen.theta)
    log = sample(train, model=model, policy=policy, sessions=chosen.sessions, seed=seed)
    clicks = read_log(log, features=features_table(train))
    rankers = _train(clicks, train, chosen, seed, say)
    say(f"simulating {chosen.held_out:,} sessions on queries that no ranker has seen")
    unseen = sample(
        test, model=model, policy=rank_svm_policy(test, seed=seed), sessions=chosen.held_out,
        seed=seed + 1,
    )  # fmt: skip
    say("measuring on unseen queries")
    evaluations = {
        name: evaluate(ranker.predict(test.features), test) for name, ranker in rankers.items()
    }
    return Story(
        setting=chosen,
        seed=seed,
        impressions=clicks,
        held_out=read_log(unseen, features=features_table(test)),
        test=test,
        rankers={name: rankers[name] for name in (CLICKS, DEBIASED)},
        evaluations=evaluations,
        comparisons=[
            c
            for m in DEFAULT_METRICS
            for c in compare(evaluations, metric=m, baseline=CLICKS, seed=seed)
        ],
        true_bias=true_propensities(log).relative,
        estimated_bias=rankers[DEBIASED].position_bias_,
        average_ranks=_average_ranks(rankers, train, policy),
    )


def _train(
    clicks: Impressions,
    train: LabelledData,
    setting: Setting,
    seed: int,
    say: Callable[[str], None],
) -> dict[str, TreeRanker]:
    def ranker(**options: object) -> UnbiasedLambdaMART:
        return UnbiasedLambdaMART(
            n_estimators=setting.n_estimators,
            num_leaves=setting.num_leaves,
            learning_rate=setting.learning_rate,
            random_state=seed,
            n_jobs=1,  # a second thread gains little here, and loses much on a busy machine
            **options,  # type: ignore[arg-type]
        )

    say(f"training on {clicks.n_clicks:,} raw clicks")
    raw = ranker(debias=None).fit(clicks)
    say("training on the same clicks with Pairwise Debiasing")
    debiased = ranker(debias="pairwise", p=setting.p).fit(clicks)
    say("choosing method and settings from the same clicks")
    chosen = AutoRanker(random_state=seed, n_jobs=1, trials=setting.trials, verbose=0).fit(clicks)
    say("training on the labels that a real log does not have")
    labels = ranker().fit_labels(train)
    return {CLICKS: raw, DEBIASED: debiased, CHOSEN: chosen, LABELS: labels}


def _average_ranks(
    rankers: Mapping[str, TreeRanker],
    train: LabelledData,
    policy: LoggingPolicy,
) -> dict[str, FloatArray]:
    """Where each ranker, and the grades themselves, put what stood at each position of the log."""
    shown, position = policy.shown()
    query = train.query[shown]
    scores = {
        name: ranker.predict(train.features)[shown]
        for name, ranker in rankers.items()
        if name != LABELS
    }
    scores["by grade"] = train.relevance[shown]
    return {name: average_rank(score, position, query) for name, score in scores.items()}
