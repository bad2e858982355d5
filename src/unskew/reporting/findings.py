"""Findings: everything that a report says, computed once, apart from how it is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from unskew.array_types import FloatArray
from unskew.bias.identify import LogFacts, facts_of
from unskew.errors import UnskewError
from unskew.evaluation.evaluation import DEFAULT_METRICS, Evaluation, evaluate
from unskew.evaluation.log_evaluation import LOGGED, LogEvaluation, evaluate_log
from unskew.evaluation.significance import Comparison, compare, holm
from unskew.log.features import Features
from unskew.log.impressions import Impressions
from unskew.log.inspection import Inspection
from unskew.log.labelled import LabelledData
from unskew.position_bias import PositionBias
from unskew.reporting.bias_curves import BiasCurves, bias_curves
from unskew.reporting.explaining import Importance, importance_of
from unskew.reporting.exposure import Exposure, exposure_of
from unskew.reporting.models import model_scores
from unskew.reporting.reranking import LoggedLists, Reranked
from unskew.reporting.sample import Sample, sample_queries

# Documents that the facts about a log are looked up in; they train trees.
FACT_DOCUMENTS = 4_000
# The estimators beside the doubly robust one; their intervals take the bias for known.
CHECKS = ("snips", "ips")


@dataclass(frozen=True)
class Scope:
    """How much work a report may do.

    Attributes
    ----------
    most_documents
        Documents that the models score; of a larger log whole queries are drawn. None takes all.
    n_resamples
        Resamples of the log for the intervals of the bias curves; 0 for none.
    methods
        The methods by which the bias is estimated; None takes those that need seconds.
    judge_by
        The name of the curve that rankings are judged by; None chooses.
    seed
        For what is drawn at random.
    progress
        Whether to show bars.
    shown
        Curves that are shown and do not judge.

    """

    most_documents: int | None = 20_000
    n_resamples: int = 40
    methods: Sequence[str] | None = None
    judge_by: str | None = None
    seed: int = 0
    progress: bool = False
    shown: Mapping[str, PositionBias] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class LabelFindings:
    """The metrics of every model on labels, and their differences."""

    evaluations: Mapping[str, Evaluation]
    comparisons: Sequence[Comparison]
    source: str


@dataclass(frozen=True, eq=False)
class Findings:
    """What was found about a log and its models.

    ``judged`` has the doubly robust estimates that lead, ``checks`` those of the other estimators.
    """

    inspection: Inspection
    data: Impressions
    sample: Sample
    facts: LogFacts | None
    models: Mapping[str, Any]
    scores: Mapping[str, FloatArray]
    curves: BiasCurves
    judged: LogEvaluation
    checks: LogEvaluation
    metrics: Sequence[str]
    lists: LoggedLists
    reranked: Mapping[str, Reranked]
    exposures: Mapping[str, Exposure]
    importances: Mapping[str, Importance | None]
    labels: LabelFindings | None

    @property
    def leading(self) -> str:
        """The metric that the answer is about."""
        return [name for name in self.metrics if name.startswith("click@")][-1]


def find(
    models: Mapping[str, Any],
    data: Impressions,
    inspection: Inspection,
    labels: LabelledData | None,
    given: Mapping[str, PositionBias],
    scope: Scope,
    labels_source: str = "the labels",
) -> Findings:
    """Compute everything."""
    sample = sample_queries(data, scope.most_documents, seed=scope.seed)
    part = sample.data
    scores = model_scores(models, part.features, inspection.source)
    facts = _facts(part, scope.seed)
    curves = bias_curves(
        part, models, given, facts, methods=scope.methods, judge_by=scope.judge_by,
        n_resamples=scope.n_resamples, progress=scope.progress, shown=scope.shown,
    )  # fmt: skip
    metrics = _click_metrics(data)
    judged = _judged(part, scores, curves, metrics, scope)
    checks = evaluate_log(
        part, scores, curves.bias, metrics=metrics, estimators=CHECKS, baseline=LOGGED
    )
    lists = LoggedLists.of(part, judged.propensity)
    reranked = {name: lists.reranked(score) for name, score in scores.items()}
    return Findings(
        inspection=inspection,
        data=data,
        sample=sample,
        facts=facts,
        models=models,
        scores=scores,
        curves=curves,
        judged=judged,
        checks=checks,
        metrics=metrics,
        lists=lists,
        reranked=reranked,
        exposures={
            LOGGED: exposure_of(lists, None),
            **{name: exposure_of(lists, order) for name, order in reranked.items()},
        },
        importances={
            name: importance_of(model, part.features, seed=scope.seed)
            for name, model in models.items()
        },
        labels=None if labels is None else _on_labels(models, labels, labels_source),
    )


def _judged(
    data: Impressions,
    scores: Mapping[str, FloatArray],
    curves: BiasCurves,
    metrics: Sequence[str],
    scope: Scope,
) -> LogEvaluation:
    """The doubly robust estimates; p-values are corrected apart for what is live and among models."""
    found = evaluate_log(
        data, scores, curves.bias, metrics=metrics, estimators=("dr",), refit=curves.estimator,
        n_resamples=scope.n_resamples, seed=scope.seed, progress=scope.progress,
    )  # fmt: skip
    corrected = []
    for metric in metrics:
        for live in (True, False):
            family = [
                one
                for one in found.differences
                if one.metric == metric and (LOGGED in (one.a, one.b)) == live
            ]
            p = holm([one.p_value for one in family])
            corrected += [
                replace(one, p_corrected=value) for one, value in zip(family, p, strict=True)
            ]
    return replace(found, differences=tuple(corrected))


def _click_metrics(data: Impressions) -> list[str]:
    """What rankings are judged by: the clicks on the first results, and gains over the page."""
    lowest = int(data.pages.position.min())
    # A log of second pages has no first ten results.
    depth = min(lowest + 9, data.max_position)
    cuts = [*(k for k in (1, 3, 5) if lowest <= k < depth), depth]
    return [*(f"click@{k}" for k in cuts), f"dcg@{depth}", f"ndcg@{depth}"]


def _facts(data: Impressions, seed: int) -> LogFacts | None:
    """What the log can tell, if it can be asked; trees look at the features of a part of it."""
    without = Features(np.empty((len(data.documents), 0)), ())
    try:
        whole = facts_of(replace(data, documents=replace(data.documents, features=without)))
        part = facts_of(sample_queries(data, FACT_DOCUMENTS, seed=seed).data, seed=seed)
    except UnskewError:
        return None
    return replace(
        whole, n_varying_features=part.n_varying_features, position_share=part.position_share
    )


def _on_labels(models: Mapping[str, Any], labels: LabelledData, source: str) -> LabelFindings:
    scores = model_scores(models, labels.features, source)
    found = {name: evaluate(score, labels) for name, score in scores.items()}
    # A difference is that of the later model from the earlier one.
    latest_first = dict(reversed(found.items()))
    few = min(found[name].n_queries["ndcg@10"] for name in found) < 2
    compared = (
        []
        if len(found) < 2 or few
        else [c for metric in DEFAULT_METRICS for c in compare(latest_first, metric=metric)]
    )
    return LabelFindings(found, compared, source)
