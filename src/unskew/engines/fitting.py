"""Fitting: from a ranker and parts to a job for workers, and from their outcome to the fitted ranker."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unskew.bias.cells import PositionCounts
from unskew.bias.estimator import mark_never_clicked
from unskew.clicks.fitting.strength import estimate_strength, informed_trials
from unskew.engines.job import Job, Outcome
from unskew.errors import DataError, UsageError, warn
from unskew.log.impressions import Impressions
from unskew.log.part_summaries import summary_of_parts, whole_without_features
from unskew.log.parts import Parts
from unskew.places import RemotePath, absolute
from unskew.position_bias import PositionBias
from unskew.rankers.click_model.preparation import ClickSettings
from unskew.rankers.click_model.ranker import ClickModelRanker
from unskew.rankers.debias import Debiasing, resolve_debias
from unskew.rankers.lambdamart.ranker import UnbiasedLambdaMART
from unskew.rankers.settings import seed_of
from unskew.rankers.split import HELD_OUT
from unskew.rankers.training import Rounds
from unskew.registry import FEATURES, METHODS, ranker_name
from unskew.trees.boosters import TreeSettings, library

# The most feature values that are read into this process to measure the examination by.
MOST_VALUES = 50_000_000


@dataclass(frozen=True)
class _Finished:
    """What keeping the biases needs to know of a training that is over."""

    bias: PositionBias
    done_before: int


@dataclass(frozen=True, eq=False)
class Fitting:
    """A ranker that is being fitted to parts."""

    ranker: Any
    log: Parts
    parts: Parts
    held_out: Parts | None
    before: Any

    @classmethod
    def of(cls, ranker: Any, parts: Any, *, validation: Any, init_model: Any) -> Fitting:
        """Check ranker and data, and take what there is."""
        ranker._check()
        _check_ranker(ranker)
        found = parts_of(parts, "X")
        if not found.feature_names:
            raise DataError(
                "the log has no features, so there is nothing to rank by: give them when it is "
                "compacted"
            )
        log = found
        held_out = None if validation is None else parts_of(validation, "validation")
        if held_out is None and ranker.early_stopping_rounds is not None:
            found, held_out = _divided(ranker, found)
        ranker._set_features(found.feature_names, found.categories, named=False)
        return cls(ranker, log, found, held_out, ranker._earlier(init_model))

    # The job --------------------------------------------------------------------------------------

    def job(self) -> Job:
        """What the workers are to do."""
        from unskew.trees.xgboost_trees import booster_parameters

        ranker, parts = self.ranker, self.parts
        n_positions = min(ranker.n_positions or parts.max_position, parts.max_position)
        settings = self._tree_settings()
        # Documents and features are drawn by us, so that neither workers nor restarts matter.
        parameters = booster_parameters(
            replace(settings, bagging_fraction=1.0, feature_fraction=1.0), here=False
        )
        debias = self._debiasing(n_positions)
        done_before = 0 if self.before is None else self.before.trees_.n_rounds
        trees = None if self.before is None else bytes(self.before.trees_.raw.save_raw("json"))
        job = Job(
            parts=parts, held_out=self.held_out, ranker=str(ranker_name(ranker)),
            parameters=parameters, bagging_fraction=float(ranker.bagging_fraction),
            feature_fraction=float(ranker.feature_fraction),
            seed=settings.seed or 0, bias=debias.bias, sides=debias.sides, p=float(ranker.p),
            sigma=float(getattr(ranker, "sigma", 1.0)), click=self._click(debias, n_positions),
            n_rounds=ranker.sizes_.n_estimators, patience=ranker.early_stopping_rounds, key="",
            trees=trees, done_before=done_before,
        )  # fmt: skip
        return replace(job, key=_key(job))

    def _tree_settings(self) -> TreeSettings:
        ranker, n = self.ranker, max(1, self.parts.total("documents"))
        seed = seed_of(ranker.random_state)
        found: TreeSettings = ranker._tree_settings(n, self.parts.n_rows, seed)
        return found

    def _debiasing(self, n_positions: int) -> Debiasing:
        debias, name = self.ranker.debias, ranker_name(self.ranker)
        learned = isinstance(debias, str) and name in METHODS[debias].learned_by
        data = None
        if hasattr(debias, "fit") or (isinstance(debias, str) and not learned):
            data = self._whole(debias)
        earlier = None
        if self.before is not None and not isinstance(self.ranker, ClickModelRanker):
            earlier = self.before.position_bias_
        return resolve_debias(
            debias, ranker=name, data=data, n_positions=n_positions, earlier=earlier,
            n_jobs=self.ranker.n_jobs,
        )  # fmt: skip

    def _whole(self, debias: Any) -> Impressions:
        """The log in one piece, for an estimator that runs in this process before the training.

        The features are read if the method needs them.
        """
        entries = [entry for entry in METHODS.values() if entry.home]
        if isinstance(debias, str):
            entries = [METHODS[debias]]
        else:
            home = f"{type(debias).__module__}:{type(debias).__qualname__}"
            entries = [entry for entry in entries if entry.home == home]
        if entries and not any(FEATURES in entry.needs for entry in entries):
            return whole_without_features(self.parts)
        return self.parts.whole()

    def _click(self, debias: Debiasing, n_positions: int) -> ClickSettings | None:
        ranker = self.ranker
        if not isinstance(ranker, ClickModelRanker):
            return None
        learned = debias.learned is not None
        earlier = None if self.before is None else self.before.click_model_
        return ClickSettings(
            click_model=ranker.click_model, n_positions=n_positions,
            p=float(ranker.p) if learned else 0.0, em_steps=ranker.em_steps,
            most_looks=ranker.most_looks, held=None if learned else debias.bias, earlier=earlier,
            offset=None if self.before is None else self.before.offset_,
        )  # fmt: skip

    # The fitted ranker ----------------------------------------------------------------------------

    def keep(self, outcome: Outcome) -> Any:
        """Give the ranker what the workers learned."""
        import xgboost

        from unskew.trees.xgboost_trees import XGBoostTrees

        ranker, before = self.ranker, self.before
        done_before = 0 if before is None else before.trees_.n_rounds
        ranker.trees_ = XGBoostTrees(xgboost.Booster(model_file=bytearray(outcome.trees)))
        rounds = Rounds(list(outcome.biases), list(outcome.measures), outcome.best)
        if isinstance(ranker, ClickModelRanker):
            ranker.click_model_ = outcome.model.click_model
            ranker.offset_ = float(outcome.offset or 0.0)
        ranker.interrupted_ = False
        ranker._keep_biases(_Finished(outcome.bias, done_before), rounds, before)
        if isinstance(ranker.debias, str):
            at = PositionCounts(outcome.shown[0], outcome.shown[1])
            ranker.position_bias_ = mark_never_clicked(ranker.position_bias_, at)
        if isinstance(ranker, ClickModelRanker):
            ranker.prior_strength_ = self._strength()
            self._measure_examination()
        ranker.training_log_ = summary_of_parts(self.log) if ranker._remembers_log else None
        return ranker

    def _measure_examination(self) -> None:
        """Measure a learned examination once more, as one machine does, by as many parts as it holds."""
        ranker = self.ranker
        if not (ranker._measures_examination and ranker._learns):
            return
        data = self._first_parts(MOST_VALUES)
        if data.n_clicks:
            for remark in ranker._measure_examination(data):
                warn(remark)

    def _first_parts(self, most_values: int) -> Impressions:
        """The first parts of the log with so many feature values in all, one part at least."""
        documents = np.cumsum([entry.counts["documents"] for entry in self.log.entries])
        n = int(np.searchsorted(documents * len(self.log.feature_names), most_values, side="right"))
        return self.log[: max(n, 1)].whole()

    def _strength(self) -> float | None:
        """The prior strength by one part, which is a sample of all queries."""
        ranker = self.ranker
        for parts in (self.held_out, self.parts):
            for number in range(0 if parts is None else len(parts)):
                assert parts is not None  # noqa: S101
                if parts.entries[number].counts["clicks"]:
                    data = parts[number]
                    prior = ranker._relevance(data)
                    likelihood = ranker._likelihood(data, None, ranker.click_model_)
                    told = likelihood.evidence(prior)
                    counted = informed_trials(prior, told.information, told.gradient)
                    return estimate_strength(*counted, prior)
        return None


def parts_of(source: Any, name: str) -> Parts:
    """The parts that `fit` was given, as a path or as `Parts`."""
    if isinstance(source, Parts):
        found = source
    elif isinstance(source, str | os.PathLike | RemotePath):
        found = Parts.open(source)
    else:
        raise UsageError(
            f"{name} must be a folder of parts when an engine trains, got {type(source).__name__}: "
            "write one with unskew compact --parts, or Impressions.save(folder, parts=16)"
        )
    if not found.total("sessions"):
        raise DataError(f"{found.path}: the parts hold not a single session")
    return replace(found, path=absolute(found.path))


def _check_ranker(ranker: Any) -> None:
    if not isinstance(ranker, UnbiasedLambdaMART | ClickModelRanker):
        raise UsageError(
            f"{type(ranker).__name__} trains on one machine only: with an engine it must be "
            "UnbiasedLambdaMART or ClickModelRanker"
        )
    if ranker.booster != "xgboost":
        raise UsageError(
            f"booster must be 'xgboost' with an engine, got {ranker.booster!r}: LightGBM cannot add "
            "up the losses of its workers"
        )
    library("xgboost")


def _divided(ranker: Any, parts: Parts) -> tuple[Parts, Parts]:
    """Some of the parts held out to end the training: they are random samples of the queries."""
    share = getattr(ranker, "validation_fraction", HELD_OUT)
    number = max(1, round(share * len(parts)))
    if number >= len(parts):
        raise UsageError(
            f"early stopping holds out {share:.0%} of the parts, but there is only {len(parts)}: "
            "write more parts, give validation=, or set early_stopping_rounds=None"
        )
    return parts[:-number], parts[-number:]


def _key(job: Job) -> str:
    """A name for this training by all that its model depends on."""
    told: Mapping[str, Any] = {
        "parts": [entry.sha256 for entry in job.parts.entries],
        "held_out": [entry.sha256 for entry in job.held_out.entries] if job.held_out else [],
        "settings": [
            job.ranker, job.bagging_fraction, job.feature_fraction, job.seed, list(job.sides),
            job.p, job.sigma,
            job.n_rounds, job.patience,
        ],
        "bias": [np.asarray(job.bias.t_plus).tolist(), np.asarray(job.bias.t_minus).tolist()],
        "click": repr(job.click and replace(job.click, held=None, earlier=None)),
        "trees": None if job.trees is None else hashlib.sha256(job.trees).hexdigest(),
        "parameters": {
            name: value for name, value in job.parameters.items() if name not in {"nthread", "device"}
        },
        "versions": [job.versions["unskew"], job.versions["xgboost"]],
    }  # fmt: skip
    return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()
