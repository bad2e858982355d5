"""Runs and their results: what is trained where, and one row of a Parquet file for each."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from unskew import __version__
from unskew.datasets.opening import LabelledSource
from unskew.errors import DataError
from unskew.paper.profiles import Profile
from unskew.store import replace_file

FILE = "results.parquet"

METRICS = ("map", "ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10")

# The protocols: the settings of the paper, or those that validation data chose.
PAPER, TUNED = "paper", "tuned"

# How severe position bias is in the paper: theta of the position-based model, beta of the cascade.
DEFAULT_SEVERITY = {"pbm": 1.0, "cascade": 0.5}


@dataclass(frozen=True)
class Clicks:
    """How a log comes about.

    Attributes
    ----------
    model, severity
        The click model, and how severe its position bias is: theta or beta.
    share
        The share of the sessions.
    lists
        Who made the lists, one of `worlds.LISTS`.

    """

    model: str = "pbm"
    severity: float = DEFAULT_SEVERITY["pbm"]
    share: float = 1.0
    lists: str = "weak"

    def columns(self) -> dict[str, Any]:
        """What the rows of results call these."""
        about = asdict(self)
        return {"click_model": about.pop("model"), **about}


DEFAULT_CLICKS = Clicks()


@dataclass(frozen=True)
class Run:
    """What is trained where.

    Attributes
    ----------
    ranker, method
        A ranker and a method of the registry, or ``labels``, ``clicks`` (raw), ``oracle`` (the true
        propensities); or a peer's library and ``own``, its debiasing.
    protocol
        `PAPER` or `TUNED`.
    p
        The exponent, where the paper's settings have one.

    """

    fold: int
    seed: int
    ranker: str
    method: str
    clicks: Clicks = DEFAULT_CLICKS
    protocol: str = PAPER
    p: float | None = None


@dataclass(frozen=True)
class Study:
    """What all runs have in common: the data and the sizes.

    ``threads`` are those of one run; None shares the cores among the processes.
    """

    source: LabelledSource
    profile: Profile
    threads: int | None = None

    @property
    def name(self) -> str:
        """Everything that the results of all runs depend on, as text."""
        sizes = ("sessions", "trees", "epochs", "patience")
        about = {name: getattr(self.profile, name) for name in sizes}
        return json.dumps({"data": self.source.name, **about, "version": __version__})

    def key(self, run: Run) -> str:
        """What decides the result of a run within the study, as text: equal keys, equal results."""
        about = asdict(run)
        if run.method == "labels":
            del about["clicks"]
        return json.dumps(about)


@dataclass(frozen=True)
class Result:
    """One row: the run, its settings, its metrics on the test queries, its bias, its cost.

    Attributes
    ----------
    study, key
        `Study.name` and `Study.key`.
    severity
        Theta or beta, by the click model.
    settings, candidates
        The ranker's settings as JSON; for chosen ones, all that were tried with what validation
        data said.
    average_rank, ideal_rank
        Where the ranker, and the grades, put what stood at each position of the training lists.
    notes
        What the training warned of.
    seconds, bias_seconds
        Training (all candidates together), and the estimation of a bias beforehand.

    """

    study: str
    key: str
    data: str
    fold: int
    seed: int
    click_model: str
    severity: float
    share: float
    lists: str
    sessions: int
    ranker: str
    method: str
    protocol: str
    p: float | None
    metrics: dict[str, float]
    settings: str
    candidates: str | None
    t_plus: list[float]
    t_minus: list[float]
    true_bias: list[float]
    average_rank: list[float]
    ideal_rank: list[float]
    notes: list[str]
    seconds: float
    bias_seconds: float
    n_clicks: int
    n_train_queries: int
    n_test_queries: int
    version: str = __version__
    finished: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))


_TYPES = {
    "int": pa.int64(),
    "float": pa.float64(),
    "str": pa.string(),
    "list[float]": pa.list_(pa.float64()),
    "list[str]": pa.list_(pa.string()),
}


def _columns() -> list[tuple[str, pa.DataType]]:
    """A column for every field of a result, and one for each metric."""
    columns: list[tuple[str, pa.DataType]] = []
    for one in fields(Result):
        if one.name == "metrics":
            columns.extend((metric, pa.float64()) for metric in METRICS)
        else:
            columns.append((one.name, _TYPES[str(one.type).removesuffix(" | None")]))
    return columns


SCHEMA = pa.schema(_columns())
_OPTIONAL = {one.name for one in fields(Result) if str(one.type).endswith(" | None")}


def read_results(folder: Path) -> list[Result]:
    """The results in a folder, none if there is no file yet."""
    path = folder / FILE
    if not path.is_file():
        return []
    try:
        table = pq.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(
            f"{path} is not a readable Parquet file ({error}): restore it, or remove it to begin anew"
        ) from error
    missing = [name for name in SCHEMA.names if name not in table.column_names]
    if missing:
        raise DataError(
            f"{path} has no column {missing[0]!r}: it is not a file of results of this version; give "
            "another folder with --out"
        )
    try:
        table = table.select(SCHEMA.names).cast(SCHEMA)
    except (pa.ArrowException, ValueError) as error:
        raise DataError(f"{path} does not hold results ({error}): restore it") from error
    for name in SCHEMA.names:
        if table.column(name).null_count and name not in _OPTIONAL:
            raise DataError(f"{path}: column {name!r} has an empty value: restore the file")
    rows = table.to_pylist()
    return [Result(metrics={name: row.pop(name) for name in METRICS}, **row) for row in rows]


def save_results(folder: Path, results: Iterable[Result]) -> None:
    """Add results to the folder's file; one with the same key is replaced."""
    kept = {result.key: result for result in read_results(folder)}
    kept |= {result.key: result for result in results}
    rows = [vars(result) | result.metrics for result in kept.values()]
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(folder / FILE, lambda path: pq.write_table(table, path, compression="zstd"))
