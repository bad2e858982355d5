"""Candidates: the rankers that a search trains, and what each is for."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from unskew.log.impressions import Impressions
from unskew.registry import CLICK_MODELS, RANKERS

# The parts of a blend, and the two whole rankers that are held against it.
BLIND, DEBIASED, LARGER, FINISH = "blind", "debiased", "larger", "finish"
RAW, PAIRWISE = "raw", "pairwise"

TITLES = {
    BLIND: "click likelihood, position ignored",
    DEBIASED: "click likelihood",
    LARGER: "click likelihood, larger trees",
    FINISH: "LambdaMART on posterior relevance",
    RAW: "LambdaMART on raw clicks",
    PAIRWISE: "Pairwise Debiasing",
}

# The same in a few words, for the parts of a blend.
SHORT = {
    BLIND: "position ignored",
    DEBIASED: "debiased",
    LARGER: "debiased, larger trees",
    FINISH: "LambdaMART on posterior relevance",
    RAW: TITLES[RAW],
    PAIRWISE: TITLES[PAIRWISE],
}

# The click models that are tried, those with many parameters last: they explain clicks without any
# relevance. Contextual where the log has contexts.
CLICK_MODELS_TRIED = ("pbm", "cascade", "trust", "ubm")
# With one that knows the clicks above, its parameters may explain which queries have good results, and
# that is no examination: features must also say clearly more by it.
KNOWS_CLICKS_ABOVE = ("ubm",)
# What the default number of leaves is multiplied by in each half of the debiased models: click models
# are compared with the smaller trees, which are steadier, and larger ones miss less.
SMALL_TREES, LARGE_TREES = 0.4, 1.0
FEWEST_LEAVES = 3
# Leaves of the likelihood are drawn to 0 as if by 5 of information, in each booster's words, and where
# the booster can, thresholds of splits are drawn at random, which makes the mean of models steadier.
STEADY = {"lightgbm": {"lambda_l2": 5.0, "extra_trees": True}, "xgboost": {"reg_lambda": 5.0}}
# With few features LightGBM grows the same trees sooner if it counts row by row.
FEW_FEATURES, BY_ROWS = 64, {"lightgbm": {"force_row_wise": True}}
# Candidates are many, so each takes fewer, larger steps than a ranker that is trained alone.
LIKELIHOOD: dict[str, Any] = {
    "n_estimators": 500, "learning_rate": 0.15, "em_steps": 1, "most_looks": 30.0,
}  # fmt: skip
# A training ends after so many rounds without a better one. With random thresholds many a tree brings
# nothing, and a click model goes on settling for long; where positions are ignored there is none.
PATIENCE = {BLIND: 12, DEBIASED: 30, LARGER: 30}
# If the first training takes more rounds than this, those after it take larger steps, up to this rate.
MANY_ROUNDS, LARGEST_RATE = 200, 0.25
LAMBDAMART = {"n_estimators": 60, "learning_rate": 0.15}


@dataclass(frozen=True)
class Candidate:
    """A ranker with settings.

    Attributes
    ----------
    part
        What it is for: one of `TITLES`.
    ranker
        Its name in the registry.
    settings
        What differs from its defaults.

    """

    part: str
    ranker: str
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """What tables call it."""
        model = self.settings.get("click_model")
        return TITLES[self.part] if model is None else f"{TITLES[self.part]}, {model}"

    def make(self, seed: int, common: dict[str, Any]) -> Any:
        """The ranker, ready to be trained."""
        extra = {}
        if self.ranker == "click-model":
            extra = {
                **LIKELIHOOD, **STEADY[common["booster"]],
                "early_stopping_rounds": PATIENCE[self.part],
            }  # fmt: skip
        ranker = RANKERS[self.ranker].load()(
            **{**extra, **common, **self.settings}, random_state=seed, verbose=0
        )
        ranker._remembers_log = False  # the blend remembers it once
        ranker._measures_examination = False
        ranker._estimates_strength = False  # a few of them need it, and only in the end
        ranker._keeps_held_out_score = True
        return ranker


def blind(leaves: int) -> Candidate:
    """The likelihood of the clicks with every result taken as examined."""
    return Candidate(BLIND, "click-model", {"debias": None, "num_leaves": leaves})


def debiased(model: str, leaves: int, debias: Any) -> Candidate:
    """The likelihood of the clicks by a click model, or with an examination that is given."""
    settings = {"click_model": model, "num_leaves": leaves, "debias": debias}
    return Candidate(DEBIASED, "click-model", settings)


def quickened(chosen: Candidate, n_rounds: int) -> Candidate:
    """The chosen likelihood with steps that need fewer rounds, if its first training took many."""
    present = float(LIKELIHOOD["learning_rate"])
    rate = round(min(present * n_rounds / MANY_ROUNDS, LARGEST_RATE), 3)
    if rate <= present:
        return chosen
    return replace(chosen, settings={**chosen.settings, "learning_rate": rate})


def larger(chosen: Candidate, leaves: int) -> Candidate:
    """The chosen likelihood with more leaves."""
    return Candidate(LARGER, chosen.ranker, {**chosen.settings, "num_leaves": leaves})


def finish(leaves: int) -> Candidate:
    """LambdaMART on what clicks and click model together say about each document."""
    return Candidate(FINISH, "lambdamart", {**LAMBDAMART, "num_leaves": leaves})


def raw(leaves: int) -> Candidate:
    """LambdaMART on the clicks as they are."""
    return Candidate(RAW, "lambdamart", {**LAMBDAMART, "num_leaves": leaves, "debias": None})


def pairwise(leaves: int) -> Candidate:
    """LambdaMART with Pairwise Debiasing."""
    return Candidate(
        PAIRWISE, "lambdamart", {**LAMBDAMART, "num_leaves": leaves, "debias": "pairwise"}
    )


def click_models_for(data: Impressions) -> list[str]:
    """The click models that a log can tell apart."""
    names = list(CLICK_MODELS_TRIED)
    if len(data.contexts) > 1:
        names.append("contextual")
    most = int(np.diff(data.patterns.offsets).max(initial=0))
    return [
        name for name in names if most > 1 or not CLICK_MODELS[name].load().needs_several_clicks
    ]
