"""What the paper says, claim by claim, and what the results say to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unskew.paper.experiments import OURS
from unskew.paper.names import METRIC_NAMES, PUBLISHED, named
from unskew.paper.runs import DEFAULT_SEVERITY, METRICS, PAPER, Clicks, Result
from unskew.paper.sections.reranking import distance_from_ideal
from unskew.paper.sections.section import PAPER_CLICKS, StudySection, Table, signed
from unskew.paper.summary import Difference, Value, differences, grouped, metric_of, select

Selection = Mapping[str, Any]


@dataclass(frozen=True)
class Claim:
    """That one thing lies above another (or below, for ``sign`` -1) in some value.

    ``paper`` is by how much in the paper, where it gives numbers.
    """

    text: str
    first: Selection
    second: Selection
    value: Value
    sign: int = 1
    paper: float | None = None

    def difference(self, results: Sequence[Result]) -> Difference | None:
        """The paired difference, None where the results lack one of the two."""
        first = select(results, protocol=PAPER, **self.first)
        second = select(results, protocol=PAPER, **self.second)
        firsts = set(map(id, first))
        groups = grouped([*first, *second], lambda r: "first" if id(r) in firsts else "second")
        if len(groups) < 2 or not groups["first"]:
            return None
        return differences(groups, [("first", "second")], self.value)[0]

    def verdict(self, found: Difference) -> str:
        """What the interval says to the claim."""
        if found.verdict not in ("above", "below"):
            return found.verdict
        return "confirmed" if (found.verdict == "above") == (self.sign > 0) else "the opposite"


def _of(ranker: str, method: str, **clicks: Any) -> dict[str, Any]:
    p = 0.0 if method == "pairwise" else None
    return {"ranker": ranker, "method": method, "p": p, **PAPER_CLICKS, **clicks}


def _better(first: tuple[str, str], second: tuple[str, str], metric: str) -> Claim:
    index = METRICS.index(metric)
    return Claim(
        f"{named(*first)} ranks better than {named(*second)} ({METRIC_NAMES[metric]})",
        _of(*first),
        _of(*second),
        metric_of(metric),
        paper=PUBLISHED[first][index] - PUBLISHED[second][index],
    )


BEATEN = (
    ("lambdamart", "regression-em"), ("lambdamart", "randomization"), ("lambdamart", "clicks"),
    ("dnn", "dual-learning"), ("dnn", "regression-em"), ("ranksvm", "randomization"),
)  # fmt: skip
DEBIASED = (
    (("lambdamart", "regression-em"), ("lambdamart", "clicks")),
    (("lambdamart", "randomization"), ("lambdamart", "clicks")),
    (("dnn", "dual-learning"), ("dnn", "clicks")),
    (("ranksvm", "randomization"), ("ranksvm", "clicks")),
)


def _claims() -> list[Claim]:
    cascade = Clicks("cascade", DEFAULT_SEVERITY["cascade"]).columns()
    found = [_better(OURS, other, metric) for metric in ("ndcg@1", "ndcg@10") for other in BEATEN]
    found += [_better(("lambdamart", "labels"), OURS, "ndcg@10")]
    found += [_better(first, second, "ndcg@10") for first, second in DEBIASED]
    found += [
        Claim(
            f"After re-ranking, {named(*OURS)} is closer to the order by grades than {named(*other)}",
            _of(*OURS), _of(*other), distance_from_ideal, sign=-1,
        )
        for other in BEATEN[:3]
    ]  # fmt: skip
    found += [
        Claim(
            f"With cascade clicks {named(*OURS)} ranks better than {named(*other)} (NDCG@1)",
            _of(*OURS, **cascade), _of(*other, **cascade), metric_of("ndcg@1"),
        )
        for other in BEATEN[:3]
    ]  # fmt: skip
    found += [
        Claim(
            "With cascade clicks p = 1 ranks better than p = 0 (NDCG@1)",
            {**_of(*OURS, **cascade), "p": 1.0}, _of(*OURS, **cascade), metric_of("ndcg@1"),
        ),
        Claim(
            "With position-based clicks p = 0 ranks better than p = 2 (NDCG@1)",
            _of(*OURS), {**_of(*OURS), "p": 2.0}, metric_of("ndcg@1"),
        ),
    ]  # fmt: skip
    return found


def claims_section(results: Sequence[Result]) -> StudySection | None:
    """Every claim with the difference that was found, in the paper's settings."""
    rows = []
    for claim in _claims():
        found = claim.difference(results)
        if found is not None:
            paper = "–" if claim.paper is None else f"{claim.paper:+.3f}"
            rows.append([claim.text, paper, signed(found), claim.verdict(found)])
    if not rows:
        return None
    header = ["claim", "in the paper", "here [95% interval]", "verdict"]
    caption = (
        "The paper's claims in its own settings. An order counts only if the interval excludes 0."
    )
    table = Table(caption, header, rows)
    return StudySection("The paper's claims", [], [table])
