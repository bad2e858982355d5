"""The experiments: which runs each table and figure of the paper needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product

from unskew.errors import UsageError
from unskew.paper.peers import PEERS
from unskew.paper.profiles import LEARNED, Profile
from unskew.paper.runs import DEFAULT_CLICKS, DEFAULT_SEVERITY, TUNED, Clicks, Run, Study

# The treatments of clicks, those of the paper's table first and in its order. Beyond the paper: one
# side of Pairwise Debiasing, the true propensities, Pairwise Debiasing with the other rankers, and
# the ranker that chooses everything from clicks.
COMPARED: Mapping[str, tuple[str, ...]] = {
    "lambdamart": (
        "labels", "pairwise", "regression-em", "randomization", "clicks", "clicked", "oracle",
    ),
    "dnn": (
        "labels", "dual-learning", "regression-em", "randomization", "clicks", "pairwise",
    ),
    "ranksvm": ("labels", "regression-em", "randomization", "clicks", "pairwise"),
    "auto": ("click-model",),
}  # fmt: skip

# The ranker and method that all others are compared with.
OURS = ("lambdamart", "pairwise")

# What the figures set beside Pairwise Debiasing, all with LambdaMART; and what estimates a bias.
BASELINES = ("regression-em", "randomization", "clicks")
DRAWN = ("pairwise", *BASELINES)
ESTIMATING = ("pairwise", "regression-em", "randomization")

# Seeds with their folds.
Coordinates = Sequence[tuple[int, int]]

# What an experiment needs, for given seeds and folds.
Runs = Callable[[Profile, Coordinates], list[Run]]


def _run(
    at: tuple[int, int],
    method: str,
    clicks: Clicks = DEFAULT_CLICKS,
    p: float = 0.0,
    ranker: str = "lambdamart",
) -> Run:
    """A run in the paper's settings; only a learned bias has an exponent."""
    seed, fold = at
    return Run(fold, seed, ranker, method, clicks, p=p if method in LEARNED else None)


def _drawn(
    coordinates: Coordinates, clicks: Sequence[Clicks], methods: Sequence[str] = DRAWN
) -> list[Run]:
    """LambdaMART with each method on each kind of clicks."""
    return [_run(at, method, one) for at, one in product(coordinates, clicks) for method in methods]


def _table(profile: Profile, coordinates: Coordinates) -> list[Run]:
    runs = []
    for at, (ranker, methods) in product(coordinates, COMPARED.items()):
        for method in methods:
            run = _run(at, method, ranker=ranker)
            # A ranker that chooses has no settings of the paper's.
            runs += [] if ranker == "auto" else [run]
            runs.append(replace(run, protocol=TUNED, p=None))
    return runs


def _generalisation(profile: Profile, coordinates: Coordinates) -> list[Run]:
    clicks = [Clicks(model, severity) for model, severity in DEFAULT_SEVERITY.items()]
    exponents = product(coordinates, clicks, profile.p_values)
    return [_run(at, "pairwise", one, p) for at, one, p in exponents] + _drawn(
        coordinates, clicks, BASELINES
    )


def _degree(profile: Profile, coordinates: Coordinates) -> list[Run]:
    thetas = [Clicks("pbm", theta) for theta in profile.thetas]
    return _drawn(coordinates, thetas + [Clicks("cascade", beta) for beta in profile.betas])


def _peers(profile: Profile, coordinates: Coordinates) -> list[Run]:
    clicks = Clicks(share=profile.peer_share)
    theirs = [_run(at, "own", clicks, ranker=peer) for at, peer in product(coordinates, PEERS)]
    return _drawn(coordinates, [clicks], ("pairwise", "clicked", "clicks")) + theirs


# The table and the figures, by name.
EXPERIMENTS: Mapping[str, Runs] = {
    "table": _table,
    "reranking": lambda profile, at: _drawn(at, [DEFAULT_CLICKS]),
    "bias": lambda profile, at: _drawn(at, [DEFAULT_CLICKS], ESTIMATING),
    "generalisation": _generalisation,
    "degree": _degree,
    "amount": lambda profile, at: _drawn(at, [Clicks(share=one) for one in profile.shares]),
    "logging": lambda profile, at: _drawn(at, [Clicks(lists=one) for one in profile.lists]),
    "peers": _peers,
}

FIGURES = tuple(name for name in EXPERIMENTS if name != "table")


def runs_of(study: Study, names: Sequence[str]) -> list[Run]:
    """The runs of several experiments, each once; seeds take the folds in turn."""
    n_folds = study.source.n_folds
    coordinates = [(seed, (seed - 1) % n_folds + 1) for seed in range(1, study.profile.seeds + 1)]
    found: dict[Run, None] = {}
    for name in names:
        if name not in EXPERIMENTS:
            raise UsageError(f"there is no figure {name!r}: choose from {', '.join(FIGURES)}")
        found |= dict.fromkeys(EXPERIMENTS[name](study.profile, coordinates))
    return list(found)
