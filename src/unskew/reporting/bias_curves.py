"""The bias curves of a report: by the methods that fit the log and take seconds, and the chosen one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unskew.bias.comparison import Outcome, compare_estimators
from unskew.bias.estimator import BiasEstimator
from unskew.bias.identify import LogFacts
from unskew.choose.advice_estimators import UNFIT, Verdict, verdicts_of
from unskew.errors import UsageError
from unskew.log.impressions import Impressions
from unskew.position_bias import PositionBias
from unskew.registry import FEATURES, METHODS, make_estimator

# The most documents for which a method that trains on the features takes but seconds.
FEW_DOCUMENTS = 15_000


@dataclass(frozen=True, eq=False)
class BiasCurves:
    """The curves of a log by method, and the one by which all rankings are judged.

    Attributes
    ----------
    outcomes
        What each method made of the log.
    others
        Curves that were given, by name, to judge by or to be shown.
    chosen, why
        The name of the curve by which everything is judged, and why it was taken.
    bias
        That curve.
    estimator
        What measured it on this log; None if it was given or learned elsewhere.

    """

    outcomes: Sequence[Outcome]
    others: Mapping[str, PositionBias]
    chosen: str
    why: str
    bias: PositionBias
    estimator: BiasEstimator | None = None


def default_methods(data: Impressions, verdicts: Sequence[Verdict]) -> list[str]:
    """The methods that may fit the log and take seconds."""
    methods = [m for m in METHODS.values() if m.home and m.extra is None and m.name != "pairwise"]
    small = len(data.documents) <= FEW_DOCUMENTS
    quick = [m.name for m in methods if small or FEATURES not in m.needs]
    unfit = {one.method for one in verdicts if one.trust == UNFIT}
    return [name for name in quick if name != "randomization" or name not in unfit]


def bias_curves(
    data: Impressions,
    models: Mapping[str, Any],
    given: Mapping[str, PositionBias],
    facts: LogFacts | None,
    *,
    methods: Sequence[str] | None,
    judge_by: str | None,
    n_resamples: int,
    progress: bool = False,
    shown: Mapping[str, PositionBias] | None = None,
) -> BiasCurves:
    """Estimate the curves and choose one to judge by."""
    verdicts = () if facts is None else verdicts_of(data, facts)
    asked = default_methods(data, verdicts) if methods is None else list(methods)
    options = {key: value for one in verdicts for key, value in one.options}
    # One thread: on a busy machine two that wait for each other take many times as long.
    outcomes = compare_estimators(
        data, methods=asked, n_resamples=n_resamples, progress=progress, n_jobs=1, **options
    )
    found = {one.method: one.bias for one in outcomes if one.bias is not None}
    learned = {name: model.position_bias_ for name, model in models.items() if _learned(model)}
    chosen, why = _choice(judge_by, given, found, learned, verdicts)
    bias = {**found, **learned, **given}[chosen]
    measured = bias is found.get(chosen) and METHODS[chosen].extra is None
    estimator = make_estimator(chosen, n_jobs=1, **options) if measured else None
    return BiasCurves(outcomes, {**given, **(shown or {})}, chosen, why, bias, estimator)


def _learned(model: Any) -> bool:
    return bool((model.position_bias_.t_plus != 1.0).any())


def _choice(
    judge_by: str | None,
    given: Mapping[str, PositionBias],
    found: Mapping[str, PositionBias],
    learned: Mapping[str, PositionBias],
    verdicts: Sequence[Verdict],
) -> tuple[str, str]:
    if judge_by is not None:
        known = {**found, **learned, **given}
        if judge_by not in known:
            raise UsageError(f"judge_by must be one of {', '.join(known)}: got {judge_by!r}")
        return judge_by, "as asked for"
    if given:
        return next(iter(given)), "it was given"
    for one in verdicts:
        if one.method in found and one.trust != UNFIT:
            return one.method, f"it is {one.trust} on this log ({one.reason})"
    if learned:
        name = next(iter(learned))
        return name, (
            "no method can tell position from relevance in this log on its own, so that the bias is "
            "the one that this model learned while it trained; a model that is wrong about it is wrong "
            "here too"
        )
    if "relative-ctr" in found:
        return "relative-ctr", (
            "nothing better fits this log: it takes all of the fall of the CTR for bias, which is too "
            "much where better results stood higher"
        )
    raise UsageError(
        "no position bias can be estimated from this log: give one with bias=, or a model that learned "
        "one"
    )
