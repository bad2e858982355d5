"""`unskew simulate`: labelled data becomes a click log."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unskew import simulate
from unskew.cli.console import show
from unskew.cli.groups import given_of, panel, refuse_idle
from unskew.cli.reading import Quiet
from unskew.cli.train_settings import assignment
from unskew.cli.writing import Overwrite, check_outputs, marked
from unskew.errors import UsageError
from unskew.store import replace_files

if TYPE_CHECKING:
    from unskew.datasets import Dataset
    from unskew.log.labelled import LabelledData
    from unskew.simulate import ClickModel, LoggingPolicy, Propensities


PARTS = ("train", "validation", "test")


_parameter = panel("The click model")


@dataclass(frozen=True)
class ClickParameters:
    """The click model and its parameters; None leaves a model's default."""

    model: Annotated[str, typer.Option(help="The click model: {click_models}.")] = "pbm"
    theta: Annotated[
        float | None, _parameter("Severity of position bias ({click_models:theta}).")
    ] = None
    epsilon: Annotated[float | None, _parameter("Attraction of an irrelevant result.")] = None
    beta: Annotated[
        float | None, _parameter("Continuation to the next result ({click_models:beta}).")
    ] = None
    phi: Annotated[
        float | None, _parameter("Satisfaction, a share of attraction ({click_models:phi}).")
    ] = None
    gamma: Annotated[
        float | None, _parameter("Perseverance of an unsatisfied user ({click_models:gamma}).")
    ] = None
    trust: Annotated[
        float | None, _parameter("Clicks on an irrelevant top result ({click_models:trust}).")
    ] = None
    max_grade: Annotated[
        int | None, _parameter("The highest grade; by default that of the data.")
    ] = None
    assignments: Annotated[
        list[str] | None,
        _parameter(
            "Any further parameter of the click model (repeatable).", "--set", metavar="NAME=VALUE"
        ),
    ] = None

    def made(self, max_grade: int) -> ClickModel:
        """The click model for grades up to this one."""
        given = {name: value for name, value in asdict(self).items() if value is not None}
        name, further = given.pop("model"), given.pop("assignments", [])
        parameters = {"max_grade": max(1, max_grade), **given, **dict(map(assignment, further))}
        return simulate.click_model(name, **parameters)


@dataclass(frozen=True)
class LabelledInput:
    """Which documents a simulation takes of what it is given."""

    part: Annotated[
        str, typer.Option(help="Of a dataset or generated data: train, validation or test.")
    ] = "train"
    dataset: Annotated[
        str | None, typer.Option(help="Which dataset a folder holds, such as mslr-web10k.")
    ] = None
    fold: Annotated[int, typer.Option(help="Which fold of a dataset.", min=1)] = 1
    queries: Annotated[int, typer.Option(help="How many queries to generate.")] = 1_000

    def labelled(self, source: str, seed: int) -> tuple[Dataset, LabelledData]:
        """A file, a folder of a known dataset or generated data; and the part that was asked for."""
        from unskew.datasets.opening import GENERATED, GeneratedSize, open_labelled

        if source == GENERATED and self.queries < 10:
            raise UsageError(f"--queries must be 10 or more, got {self.queries}")
        opened = open_labelled(source, dataset=self.dataset, size=GeneratedSize(self.queries))
        found = opened.as_given(self.fold, seed)
        data: LabelledData | None = getattr(found, self.part)
        if data is None:
            raise UsageError(
                f"the dataset in {source} has no {self.part} part: use --part train or test"
            )
        return found, data

    def refuse_idle(self, source: str) -> None:
        """Refuse options that say nothing about this kind of data."""
        from unskew.datasets.opening import GENERATED

        if self.part not in PARTS:
            raise UsageError(f"--part must be one of {', '.join(PARTS)}, got {self.part!r}")
        if source == GENERATED:
            refuse_idle("generated data has no folds", given_of(self, ["dataset", "fold"]))
            return
        refuse_idle(f"{source} is not generated", given_of(self, ["queries"]))
        if not Path(source).is_dir():
            given = given_of(self, ["dataset", "fold", "part"])
            refuse_idle(f"{source} is one file without parts", given)


@dataclass(frozen=True)
class PolicyInput:
    """Who ranked the lists that are shown."""

    policy: Annotated[str, typer.Option(help="Who ranked: {policies}.")] = "ranksvm"
    share: Annotated[
        float, typer.Option(help="The share of labelled queries that train the ranksvm.")
    ] = 0.01
    explore: Annotated[float, typer.Option(help="The share of sessions that are shuffled.")] = 0.0
    length: Annotated[int, typer.Option(help="Results on a page; 0 shows all.", min=0)] = 10

    def refuse_idle(self) -> None:
        """Refuse options that say nothing about this policy."""
        if self.policy not in ("ranksvm", "drifting"):
            reason = f"the policy {self.policy} trains no ranker"
            refuse_idle(reason, given_of(self, ["share"]))

    def made(self, data: LabelledData, seed: int) -> LoggingPolicy:
        """The policy for some documents."""
        if self.policy not in POLICIES:
            raise UsageError(f"--policy must be one of {', '.join(POLICIES)}, got {self.policy!r}")
        length = self.length or None
        found = POLICIES[self.policy](data, share=self.share, length=length, seed=seed)
        return replace(found, epsilon=self.explore) if self.explore else found


def run(
    data: Annotated[
        str, typer.Argument(help="A LETOR file or table, the folder of a dataset, or 'generated'.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The log: a Parquet file.")],
    sessions: Annotated[
        int, typer.Option(help="How many sessions.", min=1, max=2**31 - 1)
    ] = 165_660,
    seed: Annotated[int, typer.Option(help="Same seed, same log.", min=0)] = 1,
    labels: Annotated[
        Path | None, typer.Option(help="Also write the labelled test documents here (Parquet).")
    ] = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    *,
    documents: LabelledInput,
    policy: PolicyInput,
    clicks: ClickParameters,
) -> None:
    """Simulate a click log on labelled data.

    Beside the log stand the features of its documents (NAME.features.parquet) and the true
    examination of each position (NAME.propensities.json).
    """
    for option, path in (("--out", out), ("--labels", labels)):
        if path is not None and path.suffix.lower() != ".parquet":
            raise UsageError(f"{option} must end in .parquet, got {str(path)!r}")
    written = _places(out, labels)
    check_outputs(
        {f"{option} ({what})": path for what, (option, path) in written.items()}, [data],
        overwrite=overwrite,
    )  # fmt: skip
    documents.refuse_idle(data)
    policy.refuse_idle()
    found, labelled = documents.labelled(data, seed)
    logging_policy = policy.made(labelled, seed)
    chosen = clicks.made(found.max_grade)

    def write_log(file: Path) -> None:
        simulate.sample_to_parquet(
            file, labelled, model=chosen, policy=logging_policy, sessions=sessions, seed=seed,
            progress=not quiet,
        )  # fmt: skip

    _write({what: path for what, (_, path) in written.items()}, write_log, found, labelled, chosen)
    show(f"{sessions:,} sessions on {labelled.n_queries:,} queries, {chosen.meaning}")
    for what, (_, path) in written.items():
        show(f"  {what:<18}{path}")


def _places(log: Path, labels: Path | None) -> dict[str, tuple[str, Path]]:
    """What is written, by which option, and where: the log and what belongs to it."""
    places = {
        "log": ("--out", log),
        "features": ("--out", log.with_name(f"{log.stem}.features.parquet")),
        "true propensities": ("--out", log.with_name(f"{log.stem}.propensities.json")),
    }
    return places if labels is None else {**places, "test labels": ("--labels", labels)}


def _write(
    places: dict[str, Path],
    write_log: Callable[[Path], None],
    found: Dataset,
    data: LabelledData,
    model: ClickModel,
) -> None:
    """Write everything, or nothing if the disk is full: a log never stands without its features."""
    import pyarrow.parquet as pq

    from unskew.datasets.tables import features_table, labels_table

    truth: list[Propensities] = []

    def write_log_first(file: Path) -> None:
        write_log(file)
        truth.append(simulate.true_propensities(file))

    writers: dict[str, Callable[[Path], object]] = {
        "log": write_log_first,
        "features": lambda file: pq.write_table(marked(features_table(data)), file),
        "true propensities": lambda file: file.write_text(_json(model, truth[0]), encoding="utf-8"),
        "test labels": lambda file: pq.write_table(marked(labels_table(found.test)), file),
    }
    replace_files({path: writers[what] for what, path in places.items()})


def _json(model: ClickModel, truth: Propensities) -> str:
    content = {
        "written_by": "unskew",
        "model": model.name,
        "parameters": model.describe(),
        "propensity": truth.mean.tolist(),
        "by_context": {name: curve.tolist() for name, curve in truth.by_context.items()},
    }
    return json.dumps(content, indent=2) + "\n"


def _drifting(data: LabelledData, *, share: float, length: int | None, seed: int) -> Any:
    """The lists of the Ranking SVM, disturbed anew in each phase."""
    import numpy as np

    order = simulate.rank_svm_policy(data, share=share, length=None, seed=seed).order[0]
    start = np.repeat(data.offsets[:-1], np.diff(data.offsets))
    score = np.empty(len(data))
    score[order] = start - np.arange(len(data))
    return simulate.drifting_policy(data, score, length=length, seed=seed)


POLICIES: dict[str, Callable[..., LoggingPolicy]] = {
    "ranksvm": lambda data, **given: simulate.rank_svm_policy(data, **given),
    "random": lambda data, share, **given: simulate.random_policy(data, **given),
    "drifting": _drifting,
    "labels": lambda data, share, **given: simulate.score_policy(data, data.relevance, **given),
}
