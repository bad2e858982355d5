"""Assembly: the models that a search found as one sum of trees, with one click model beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit

from unskew.array_types import FloatArray
from unskew.choose.blend import ADDED, Blend, Trust, choose_blend, known_order, tree_weights
from unskew.choose.candidates import BLIND, DEBIASED, FINISH, LARGER, PAIRWISE, RAW, TITLES
from unskew.choose.choice import Choice
from unskew.choose.found import Found, Member
from unskew.choose.judge import Judge
from unskew.choose.search import Search
from unskew.choose.splits import drawn_queries
from unskew.clicks.fitting.likelihood import ClickLikelihood
from unskew.position_bias import PositionBias
from unskew.rankers.click_model.learned import LearnedClickModel
from unskew.trees.boosters import Trees
from unskew.trees.merging import merged

# A whole ranker takes the place of the blend only if it is better by so many standard errors.
CLEARLY = 3.0
# What changes the trust by less than a tenth is not named.
NOTEWORTHY = 0.9
NEWTON_STEPS, LARGEST_STEP = 10, 2.0
# About how many documents the offset of the click model is found on.
CALIBRATED = 5_000


@dataclass(frozen=True, eq=False)
class Assembly:
    """What the fitted ranker consists of."""

    trees: Trees
    choice: Choice
    click_model: LearnedClickModel | None
    offset: float
    prior_strength: float | None
    bias: PositionBias


def assemble(search: Search, booster: str) -> Assembly:
    """One model out of what a search found."""
    found = search.found
    judge = Judge(search.data, search.folds, found)
    chosen, blends, trust = choose_blend(judge, found)
    reasons = [*_about_click_model(found), _about_trust(chosen, trust), *_about_finish(found)]
    weights = dict(chosen.weights)
    rival, compared = _rival(judge, found, chosen)
    reasons += compared
    if rival is not None:
        weights = {rival: 1.0}
    models = tree_weights(found, weights)
    trees = merged(booster, [one.ranker.trees_ for one, _ in models], [w for _, w in models])
    members = list((found.of(DEBIASED) or found.of(BLIND)).values())
    model = averaged([one.ranker.click_model_ for one in members])
    part = drawn_queries(search.data, CALIBRATED, np.random.default_rng([search.seed, 4]))
    score = trees.predict(part.features.values)
    offset = _calibrated(model.on(part), score, members[0].ranker.offset_)
    bias = members[0].ranker.position_bias_
    if found.of(DEBIASED) and _learned(members[0]):
        likelihood = model.on(search.data)
        likelihood.evidence(judge.relevance)
        bias = likelihood.position_bias()
    strengths = [search.strength(one) for one in members]
    reasons += found.notes
    choice = Choice.of(weights, reasons, found.trials, blends, search.budget.spent)
    return Assembly(trees, choice, model, offset, float(np.median(strengths)), bias)


def _learned(member: Member) -> bool:
    return bool(member.ranker._learns)


def averaged(models: Sequence[LearnedClickModel]) -> LearnedClickModel:
    """The mean of each parameter over click models of one kind."""
    parameters = {
        name: np.mean([one.parameters[name] for one in models], axis=0)
        for name in models[0].parameters
    }
    return replace(models[0], parameters=parameters)


def _calibrated(likelihood: ClickLikelihood, score: FloatArray, offset: float) -> float:
    """The offset at which the click model explains the clicks best."""
    for _ in range(NEWTON_STEPS):
        evidence = likelihood.evidence(expit(offset + score))
        information = float(evidence.information.sum())
        if not information > 0:
            break
        step = float(np.clip(evidence.gradient.sum() / information, -LARGEST_STEP, LARGEST_STEP))
        offset += step
        if abs(step) < 1e-6:
            break
    return offset


# Why -------------------------------------------------------------------------------------------


def _about_click_model(found: Found) -> list[str]:
    tried = [one for one in found.trials if one.part == DEBIASED and one.log_likelihood is not None]
    if found.chosen is None or not tried:
        return []
    settings = found.chosen.settings
    names = list(dict.fromkeys(str(one.settings["click_model"]) for one in tried))
    sizes = [settings["num_leaves"]]
    sizes += [one.candidate.settings["num_leaves"] for one in found.of(LARGER).values()]
    leaves = " and ".join(map(str, dict.fromkeys(sizes)))
    return [
        f"click model {settings['click_model']} with trees of {leaves} leaves: "
        f"of {', '.join(names)} it explains the clicks of held-out queries best, with what features add "
        "counted twice"
    ]


def _about_trust(chosen: Blend, trust: Trust | None) -> str:
    if trust is None:
        only = "positions are ignored" if chosen.trust == 0 else "both halves count the same"
        return f"{only}: the search did not come to judge a debiased half"
    known, gain = known_order(trust.hidden), trust.gain
    less = ["the features are many for so few queries"] if trust.enough < 1.0 else []
    less += ["the lists may know what the features do not"] if known < 1.0 else []
    less += ["even its own measure sees next to no gain"] if gain.possible < NOTEWORTHY else []
    why = ""
    if less:
        left = trust.enough * known * gain.left
        why = f"; this is {left:.0%} of what that would say, because {' and '.join(less)}"
    if gain.sure > 1.0 - NOTEWORTHY:
        why += f"; {ADDED * known * gain.sure:.0%} of what was missing is added, as a gain is sure"
    return (
        f"{trust.value:.0%} debiased: without their noise, which is {trust.noise:.0%} of a debiased "
        f"model of two fifths of the queries, both halves correlate by {trust.alike:.2f}, "
        f"{trust.own:.0%} of what debiased models say in common counts as their own mistake, the "
        f"features tell {1.0 - trust.hidden:.0%} of the logged order, and the debiased half alone "
        f"changes the DCG of held-out queries by {gain.value:+.1%} ± {gain.error:.1%}, in its favour "
        f"because that is corrected by the same examination{why}"
    )


def _about_finish(found: Found) -> list[str]:
    if not found.of(FINISH):
        return []
    helps = len(found.of(FINISH)) > 1
    return [
        f"LambdaMART on posterior relevance {'clearly' if helps else 'does not clearly'} "
        f"{'raises' if helps else 'raise'} the doubly robust DCG of held-out queries"
    ]


def _rival(judge: Judge, found: Found, chosen: Blend) -> tuple[str | None, list[str]]:
    """A whole ranker that ranks the held-out queries of its fold clearly better, if there is one."""
    blended = judge.per_query(judge.blended(chosen.weights))
    reasons, winner, best = [], None, 0.0
    for part in (RAW, PAIRWISE):
        rival, folds = judge.scores(part)
        folds = [one for one in folds if all(one in found.of(other) for other in chosen.weights)]
        gained = (judge.per_query(rival) - blended)[judge.queries_of(folds)]
        if len(gained) < 2:
            continue
        error = float(gained.std(ddof=1) / np.sqrt(len(gained)))
        gain = float(gained.mean())
        better = gain > CLEARLY * error
        reasons.append(
            f"{TITLES[part]} is {'clearly' if better else 'not clearly'} better than the blend: "
            f"{gain:+.4f} ± {error:.4f}"
        )
        if better and gain > best:
            winner, best = part, gain
    return winner, reasons
