"""The page of the quality study: tables and pictures from its rows, and nothing else."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from math import nan
from pathlib import Path
from typing import Any

import numpy as np

from _quality_worlds import CLICKS, HARD, LISTS, REAL, SESSIONS, TEST, TRAINING, Cell
from unskew.array_types import FloatArray
from unskew.charts import Bar, BarChart
from unskew.charts.files import grid_svg
from unskew.datasets.generated import WORLDS
from unskew.evaluation.significance import holm, paired_t_test

Row = dict[str, Any]
TITLES = {
    "fit": "unskew.fit",
    "raw": "raw clicks, LambdaMART",
    "blind": "position ignored, likelihood",
    "pairwise": "Pairwise Debiasing",
    "regression-em": "Regression-EM weights",
    "lightgbm": "LightGBM position",
    "xgboost": "XGBoost unbiased",
    "labels": "labels",
}
DEVELOPED = (
    "Defaults and rules were developed on seeds 101 to 104 of the three generators, with 40 to 2,500 "
    "training queries, and of clicks on MQ2008 and MSLR; cells of seeds 200, 300, 310, 320, 330, 340, "
    "341 to 345, 351 to 364, 366, 371 and 372 were seen before the last changes of the rules, and have "
    "no row here; the documents of MQ2008 and MSLR are the same ones, with other clicks. No rule was "
    "changed after the first row of `unskew.fit`."
)
SIGNIFICANT = 0.05
# Raw clicks that are nearer to labels leave no gap to close.
SMALLEST_GAP = 0.005
# unskew.fit is to stay under so many times the time of one ranker.
MOST_TIMES = 10


def render(folder: Path, rows: list[Row]) -> None:
    """Write results.md and the pictures beside the rows."""
    study = Study(rows)
    sections = [
        _lead(study),
        *(_gaps(study, sessions) for sessions in SESSIONS),
        *(_cells(study, name) for name in (*WORLDS, *REAL)),
        _tests(study),
        _hard(study),
        _choice(study),
        _times(study),
    ]
    (folder / "results.md").write_text("\n\n".join(filter(None, sections)) + "\n", encoding="utf-8")
    _pictures(study, folder)


class Study:
    """The rows by cell; one that has no row of `unskew.fit`, raw clicks or labels yet is left out."""

    def __init__(self, rows: Iterable[Row]) -> None:
        every: dict[Cell, dict[str, Row]] = defaultdict(dict)
        for row in rows:
            names = ("seed", "data", "clicks", "lists", "sessions", "queries")
            every[Cell(*(row[name] for name in names))][row["contender"]] = row
        self.by_cell = {
            cell: found for cell, found in every.items() if {"fit", "raw", "labels"} <= set(found)
        }
        self.rows = [row for found in self.by_cell.values() for row in found.values()]

    def seeds(self, *data: str) -> list[int]:
        """The seeds that have a row of these data sets."""
        return sorted({cell.seed for cell in self.by_cell if cell.data in data})

    def cells(self, holds: Callable[[Cell], bool], *contenders: str) -> list[Cell]:
        """The cells, seed by seed, that have all of these contenders."""
        return [
            cell
            for cell, found in sorted(self.by_cell.items())
            if holds(cell) and all(name in found for name in contenders)
        ]

    def ndcg(self, cell: Cell, contender: str) -> float:
        """The mean NDCG@10."""
        return float(self.by_cell[cell][contender]["ndcg"])

    def share(self, holds: Callable[[Cell], bool], name: str) -> float | None:
        """The mean gain of a contender over raw clicks, divided by the mean gap to labels.

        None where no cell has it, or where raw clicks are as good as labels.
        """
        cells = self.cells(holds, name, "raw", "labels")
        if not cells:
            return None
        gains = [self.ndcg(cell, name) - self.ndcg(cell, "raw") for cell in cells]
        gaps = [self.ndcg(cell, "labels") - self.ndcg(cell, "raw") for cell in cells]
        return float(np.mean(gains) / np.mean(gaps)) if np.mean(gaps) > SMALLEST_GAP else None

    def differences(self, cells: Sequence[Cell], one: str, other: str) -> FloatArray:
        """The paired differences over all test queries of these cells.

        One number for each query: of several seeds with the same test queries it is the mean.
        """
        parts: dict[tuple[str, int], list[FloatArray]] = defaultdict(list)
        for cell in cells:
            row, rival = self.by_cell[cell][one], self.by_cell[cell][other]
            difference = np.subtract(row["per_query"], rival["per_query"], dtype=np.float64)
            parts[cell.judged_on].append(difference)
        means = [np.mean(same, axis=0) for same in parts.values()]
        found: FloatArray = np.concatenate(means or [np.empty(0)])
        return found[~np.isnan(found)]


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _plain(data: str, sessions: int | None = None) -> Callable[[Cell], bool]:
    return lambda cell: (
        cell.data == data and cell.hard is None and sessions in (None, cell.sessions)
    )


def _lead(study: Study) -> str:
    hours = sum(row["seconds"] for row in study.rows) / 3600
    wanted = len(CLICKS) * len(LISTS) * len(SESSIONS)
    told = ", ".join(
        f"{data} {len(_conditions(study, data))} of {wanted}" for data in (*WORLDS, *REAL)
    )
    return (
        "# `unskew.fit` and its peers: the rows\n\n"
        f"{len(study.rows):,} runs, {hours:.1f} hours of one core. Seeds: "
        f"{_listed(study.seeds(*WORLDS))} of generated data, {_listed(study.seeds(*REAL))} of real "
        "data, whose test queries come back with every fifth seed, behind other clicks; tests take "
        f"the mean of each query. Conditions with at least one seed: {told}. {_missing(study)}"
        f"Generated data: {TRAINING + TEST:,} queries, {TRAINING:,} of them to learn from. "
        f"{DEVELOPED} *Share* is how much of the way from raw clicks (LambdaMART) to labels a "
        "contender goes. Every number is computed from the rows of `results.parquet` by "
        "`python benchmarks/quality_vs_peers.py render`."
    )


def _listed(seeds: Sequence[int]) -> str:
    return ", ".join(map(str, seeds)) or "none"


def _missing(study: Study) -> str:
    """How many runs each contender still lacks among the cells that are there."""
    cells = [cell for cell in study.by_cell if cell.hard is None]
    lacks = {
        TITLES[name]: sum(name not in study.by_cell[cell] for cell in cells) for name in TITLES
    }
    told = ", ".join(f"{title} {n}" for title, n in lacks.items() if n)
    return f"Of {len(cells)} runs each, some are not there yet: {told}. " if told else ""


def _gaps(study: Study, sessions: int) -> str:
    """The mean share of the gap by data set."""
    names = [name for name in TITLES if name not in {"raw", "labels"}]
    rows = []
    for data in (*WORLDS, *REAL):
        cells = study.cells(_plain(data, sessions), "fit", "raw", "labels")
        if not cells:
            continue
        gap = np.mean([study.ndcg(cell, "labels") - study.ndcg(cell, "raw") for cell in cells])
        shares = [_percent(study.share(_plain(data, sessions), name)) for name in names]
        rows.append([data, str(len(cells)), f"{float(gap):.3f}", *shares])
    if not rows:
        return ""
    header = ["data", "cells", "gap", *(TITLES[name] for name in names)]
    return (
        f"## Share of the gap, {sessions} sessions a query\n\n"
        "Over the cells (clicks, lists, seeds) that have the contender: mean gain over raw clicks, "
        f"divided by the mean gap.\n\n{_table(header, rows)}"
    )


def _conditions(study: Study, data: str) -> list[tuple[str, str, int]]:
    found = {
        (cell.clicks, cell.lists, cell.sessions) for cell in study.by_cell if _plain(data)(cell)
    }
    order = [(c, lists, n) for n in SESSIONS for lists in LISTS for c in CLICKS]
    return [one for one in order if one in found]


def _of(data: str, condition: tuple[str, str, int]) -> Callable[[Cell], bool]:
    return lambda cell: _plain(data)(cell) and (cell.clicks, cell.lists, cell.sessions) == condition


def _cells(study: Study, data: str) -> str:
    """NDCG@10 of every contender in every condition, mean over seeds."""
    rows = []
    for condition in _conditions(study, data):
        cells = study.cells(_of(data, condition))
        values = {}
        for name in TITLES:
            mine = [study.ndcg(cell, name) for cell in cells if name in study.by_cell[cell]]
            values[name] = f"{np.mean(mine):.4f}" if mine else "–"
        told = [v for name, v in values.items() if name != "labels" and v != "–"]
        marked = [f"**{v}**" if v == max(told) else v for v in values.values()]
        rows.append([", ".join(map(str, condition)), str(len({c.seed for c in cells})), *marked])
    if not rows:
        return ""
    header = ["clicks, lists, sessions", "seeds", *TITLES.values()]
    return (
        f"## {data}: NDCG@10\n\nThe mean over seeds; the peers, which take minutes at "
        f"{max(SESSIONS)} sessions a query, may lack some of them there.\n\n{_table(header, rows)}"
    )


def _tests(study: Study) -> str:
    """Paired tests of fit against each contender in each condition."""
    rivals = ("xgboost", "lightgbm", "pairwise", "raw", "blind", "regression-em")
    rows, better, worse, counted = [], 0, 0, 0
    beaten: list[str] = []
    chances: list[float] = []
    for data in (*WORLDS, *REAL):
        for condition in _conditions(study, data):
            line = [data, ", ".join(map(str, condition))]
            gap = _mean_gap(study, data, condition)
            for rival in rivals:
                cells = study.cells(_of(data, condition), "fit", rival)
                found = study.differences(cells, "fit", rival)
                if len(found) < 2:
                    line.append("–")
                    continue
                p = paired_t_test(found)
                chances.append(p if found.mean() < 0 else 1.0)
                sure = p < SIGNIFICANT
                line.append(f"{found.mean():+.4f}{'' if sure else ' (not sure)'}")
                if sure and found.mean() < 0:
                    said = f"{TITLES[rival]} by {-found.mean():.4f} (p = {p:.3f})"
                    beaten.append(f"{', '.join(map(str, (data, *condition)))}: {said}")
                if rival in rivals[:3] and data in WORLDS and gap > SMALLEST_GAP:
                    counted += 1
                    better += int(sure and found.mean() > 0)
                    worse += int(sure and found.mean() < 0)
            rows.append(line)
    if not rows:
        return ""
    header = ["data", "clicks, lists, sessions", *(f"over {TITLES[name]}" for name in rivals)]
    told = (
        f"Of all {len(rows)} cells some contender is significantly better in {len(beaten)}"
        f"{': ' if beaten else ''}{'; '.join(beaten)}. Of {len(chances)} comparisons one in "
        f"forty would be by chance if all were equal; corrected for their number (Holm), "
        f"{sum(p < SIGNIFICANT for p in holm(chances))} are significant."
    )
    return (
        "## unskew.fit against each, paired by query\n\n"
        f"Mean difference in NDCG@10; *not sure* where the paired t-test over the test queries of all "
        f"seeds has p > {SIGNIFICANT}. In generated cells whose raw clicks are more than 0.005 from "
        f"labels, against both peers and Pairwise Debiasing: {better} of {counted} comparisons "
        f"significantly better, {worse} significantly worse. {told}\n\n{_table(header, rows)}"
    )


def _mean_gap(study: Study, data: str, condition: tuple[str, str, int]) -> float:
    cells = study.cells(_of(data, condition), "raw", "labels")
    gaps = [study.ndcg(cell, "labels") - study.ndcg(cell, "raw") for cell in cells]
    return float(np.mean(gaps)) if gaps else 0.0


def _hard(study: Study) -> str:
    rows = []
    for title in HARD:
        for data in WORLDS:
            cells = _hard_cells(study, title, data, "fit", "blind", "labels")
            if not cells:
                continue
            found = study.differences(cells, "fit", "raw")
            p = paired_t_test(found)
            values = [
                f"{np.mean([study.ndcg(cell, name) for cell in cells]):.4f}"
                for name in ("raw", "blind", "fit", "labels")
            ]
            verdict = "" if p < SIGNIFICANT else " (not sure)"
            rows.append([title, data, str(len(cells)), *values, f"{found.mean():+.4f}{verdict}"])
    if not rows:
        return ""
    header = ["condition", "data", "seeds"]
    header += [TITLES[name] for name in ("raw", "blind", "fit", "labels")] + ["fit over raw"]
    return f"## Where debiasing cannot help\n\n{_table(header, rows)}"


def _choice(study: Study) -> str:
    """What choosing without labels loses against choosing among the same candidates with them."""
    lost: dict[str, dict[Any, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    trusts: dict[str, list[float]] = defaultdict(list)
    for cell, found in study.by_cell.items():
        notes = json.loads(found["fit"]["notes"])
        kind = cell.data if cell.hard is None else cell.hard
        lost[kind][cell.condition].append(_lost(notes["candidates"], found["fit"]["per_query"]))
        trusts[kind].append(notes["trust"])
    if not lost:
        return ""
    # A condition counts once, however many seeds it has.
    means = {
        kind: [np.mean(runs, axis=0) for runs in by_condition.values()]
        for kind, by_condition in lost.items()
    }
    rows = [
        [kind, str(len(trusts[kind])), *(f"{one:.4f}" for one in np.mean(values, axis=0)),
         f"{np.mean(trusts[kind]):.0%}"]
        for kind, values in means.items()
    ]  # fmt: skip
    by_others, by_themselves = np.mean([one for values in means.values() for one in values], axis=0)
    header = [
        "data or condition",
        "runs",
        "by labels of other queries",
        "by the test labels themselves",
    ]
    return (
        "## What choosing without labels loses\n\n"
        "NDCG@10 of a candidate chosen with labels, less that of the one chosen from clicks: on average "
        f"over the conditions {by_others:.4f} if the labels are those of other queries (one half of "
        "the test queries chooses for the other, and the other way round), "
        f"{by_themselves:.4f} if the best is taken by the labels that judge, which nobody can.\n\n"
        f"{_table([*header, 'mean trust'], rows)}"
    )


def _lost(candidates: dict[str, list[float]], per_query: Sequence[float]) -> tuple[float, float]:
    """What is lost against a choice by other labels, and by the same ones."""
    mine = np.array([np.nanmean(np.array(per_query, np.float64)[first::2]) for first in (0, 1)])
    values = np.array([*candidates.values(), mine])
    others = [values[values[:, 1 - half].argmax(), half] for half in (0, 1)]
    return float(np.mean(others - mine)), float(values.mean(axis=1).max() - mine.mean())


def _times(study: Study) -> str:
    found = [
        _ratios(study, lambda cell: cell.data in WORLDS and cell.hard is None),
        _ratios(study, lambda cell: cell.hard is not None),
    ]
    if not len(found[0]):
        return ""
    low, middle, high = np.quantile(found[0], [0.05, 0.5, 0.95])
    text = (
        "## Time\n\nSeconds of unskew.fit over those of one UnbiasedLambdaMART with its default trees "
        "(the one on labels), one thread each on a machine shared with other work, generated data: "
        f"{middle:.1f} in the median, {low:.1f} to {high:.1f} in nine of ten cells, "
        f"{np.mean(found[0] > MOST_TIMES):.0%} of the cells above {MOST_TIMES}."
    )
    if len(found[1]):
        small = study.cells(lambda cell: cell.queries == min(one.queries for one in study.by_cell))
        text += (
            f" Where debiasing cannot help: {np.median(found[1]):.1f} in the median, and with the "
            f"fewest queries {np.median(_ratios(study, small.__contains__)):.1f}, which are "
            f"{np.median([study.by_cell[c]['fit']['seconds'] for c in small]):.1f} seconds."
        )
    return text


def _ratios(study: Study, holds: Callable[[Cell], bool]) -> FloatArray:
    return np.array([
        study.by_cell[cell]["fit"]["seconds"] / study.by_cell[cell]["labels"]["seconds"]
        for cell in study.cells(holds, "fit", "labels")
    ])  # fmt: skip


def _pictures(study: Study, folder: Path) -> None:
    """How much of the gap to labels each contender closes, and what is gained where nothing can be."""
    names = [name for name in TITLES if name not in {"raw", "labels"}]
    gaps = [
        BarChart(
            title=f"Share of the gap to labels, {sessions} sessions a query",
            bars=[
                Bar(data, [_number(study.share(_plain(data, sessions), name)) for name in names])
                for data in WORLDS
            ],
            groups=[TITLES[name] for name in names],
            x_label="0 is raw clicks, 100% is labels",
            share=True,
        )
        for sessions in SESSIONS
    ]
    (folder / "gap.svg").write_text(grid_svg(gaps), encoding="utf-8")
    shown = ("fit", "blind")
    bars = [
        Bar(f"{title}, {data}", [_gain(study, cells, name) for name in shown])
        for title in HARD
        for data in WORLDS
        if (cells := _hard_cells(study, title, data, *shown))
    ]
    hard = BarChart(
        title="NDCG@10 over raw clicks where debiasing cannot help",
        bars=bars,
        groups=[TITLES[name] for name in shown],
        x_label="NDCG@10 over raw clicks",
    )
    hard.save(folder / "hard.svg")


def _number(share: float | None) -> float:
    return nan if share is None else share


def _gain(study: Study, cells: Sequence[Cell], name: str) -> float:
    """The mean of a contender over that of raw clicks."""
    return float(np.mean([study.ndcg(cell, name) - study.ndcg(cell, "raw") for cell in cells]))


def _hard_cells(study: Study, title: str, data: str, *contenders: str) -> list[Cell]:
    """The cells of one condition in which debiasing cannot help."""
    return [
        cell
        for cell in study.cells(lambda cell: cell.hard == title, "raw", *contenders)
        if cell.data == data
    ]
