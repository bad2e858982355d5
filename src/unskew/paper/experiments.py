"""The experiments: which runs each table and figure of the paper needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from types import MappingProxyType

from unskew.errors import UsageError
from unskew.paper.peers import PEERS
from unskew.paper.profiles import Profile
from unskew.paper.runs import TUNED, Run, Study
from unskew.paper.settings import LEARNED, RANKERS_OF_THE_PAPER
from unskew.paper.worlds import DEFAULT_CLICKS, DEFAULT_SEVERITY, Clicks

__all__ = ["BASELINES", "COMPARED", "EXPERIMENTS", "FIGURES", "runs_of"]

# The treatments of clicks, those of the paper's table first and in its order. Beyond the paper: one
# side of Pairwise Debiasing, the true propensities, and Pairwise Debiasing with the other rankers.
COMPARED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "lambdamart": (
            "labels", "pairwise", "regression-em", "randomization", "clicks", "clicked", "oracle",
        ),
        "dnn": (
            "labels", "dual-learning", "regression-em", "randomization", "clicks", "pairwise",
        ),
        "ranksvm": ("labels", "regression-em", "randomization", "clicks", "pairwise"),
    }
)  # fmt: skip

# What the figures set beside Pairwise Debiasing, all with LambdaMART.
BASELINES = ("regression-em", "randomization", "clicks")

# Seeds with their folds.
Coordinates = Sequence[tuple[int, int]]


# What an experiment needs, for given seeds and folds.
Runs = Callable[[Profile, Coordinates], list[Run]]


def _lambdamart(
    at: tuple[int, int],
    method: str,
    clicks: Clicks = DEFAULT_CLICKS,
    p: float = 0.0,
) -> Run:
    seed, fold = at
    exponent = p if method in LEARNED else None
    return Run(fold, seed, "lambdamart", method, clicks, p=exponent)


def _table(profile: Profile, coordinates: Coordinates) -> list[Run]:
    runs = []
    for seed, fold in coordinates:
        for ranker in RANKERS_OF_THE_PAPER:
            for method in COMPARED[ranker]:
                p = 0.0 if method in LEARNED else None
                runs.append(Run(fold, seed, ranker, method, p=p))
                runs.append(Run(fold, seed, ranker, method, protocol=TUNED))
    return runs


def _of_the_table(methods: tuple[str, ...]) -> Runs:
    def runs(profile: Profile, coordinates: Coordinates) -> list[Run]:
        return [_lambdamart(at, method) for at in coordinates for method in methods]

    return runs


def _generalisation(profile: Profile, coordinates: Coordinates) -> list[Run]:
    runs: list[Run] = []
    for at, (model, severity) in product(coordinates, DEFAULT_SEVERITY.items()):
        clicks = Clicks(model, severity)
        runs.extend(_lambdamart(at, "pairwise", clicks, p) for p in profile.p_values)
        runs.extend(_lambdamart(at, method, clicks) for method in BASELINES)
    return runs


def _degree(profile: Profile, coordinates: Coordinates) -> list[Run]:
    degrees = [("pbm", theta) for theta in profile.thetas]
    degrees += [("cascade", beta) for beta in profile.betas]
    return [
        _lambdamart(at, method, Clicks(model, severity))
        for at, (model, severity) in product(coordinates, degrees)
        for method in ("pairwise", *BASELINES)
    ]


def _amount(profile: Profile, coordinates: Coordinates) -> list[Run]:
    return [
        _lambdamart(at, method, Clicks(share=share))
        for at, share in product(coordinates, profile.shares)
        for method in ("pairwise", *BASELINES)
    ]


def _peers(profile: Profile, coordinates: Coordinates) -> list[Run]:
    clicks = Clicks(share=profile.peer_share)
    ours = [
        _lambdamart(at, method, clicks)
        for at in coordinates
        for method in ("pairwise", "clicked", "clicks")
    ]
    theirs = [
        Run(fold, seed, peer, "own", clicks) for (seed, fold) in coordinates for peer in PEERS
    ]
    return ours + theirs


def _logging(profile: Profile, coordinates: Coordinates) -> list[Run]:
    return [
        _lambdamart(at, method, Clicks(lists=lists))
        for at, lists in product(coordinates, profile.lists)
        for method in ("pairwise", *BASELINES)
    ]


# The table and the figures, by name.
EXPERIMENTS: Mapping[str, Runs] = MappingProxyType(
    {
        "table": _table,
        "reranking": _of_the_table(("pairwise", *BASELINES)),
        "bias": _of_the_table(("pairwise", "regression-em", "randomization")),
        "generalisation": _generalisation,
        "degree": _degree,
        "amount": _amount,
        "logging": _logging,
        "peers": _peers,
    }
)

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
