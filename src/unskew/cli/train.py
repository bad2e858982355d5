"""`unskew train`: a click log becomes a model."""

from __future__ import annotations

import time as clock
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unskew.cli.clusters import ClusterInput
from unskew.cli.console import errors, names_shown, say, show
from unskew.cli.groups import panel
from unskew.cli.reading import DataInput, Log, shuffled_context
from unskew.cli.writing import FolderOut, check_folder
from unskew.errors import UsageError
from unskew.places import Place

if TYPE_CHECKING:
    from unskew.log.impressions import Impressions

_choice = panel("The choice, unless --ranker or a setting of a ranker says otherwise")
_setting, _trees = panel("The ranker"), panel("Its trees")


@dataclass(frozen=True)
class Settings:
    """Settings of a ranker; None leaves its default."""

    seconds: Annotated[
        float | None, _choice("The most seconds that choosing may take (default any).")
    ] = None
    trials: Annotated[
        int | None, _choice("The most trainings that choosing may take (default 50).")
    ] = None
    most_documents: Annotated[
        int | None,
        _choice("The most documents that a candidate sees of a large log (default 500,000)."),
    ] = None
    debias: Annotated[
        str | None,
        _setting(
            "{methods} (default pairwise; click-model for auto and click-model), none, a file of "
            "'unskew bias -o', or 0.68,0.61,0.48."
        ),
    ] = None
    p: Annotated[float | None, _setting("Regularisation of the bias (default 0.5).")] = None
    sigma: Annotated[float | None, _setting("Steepness of the loss (default 2).")] = None
    n_positions: Annotated[
        int | None, _setting("Positions with a bias of their own (default all).")
    ] = None
    early_stopping_rounds: Annotated[
        int | None, _setting("Stop after so many rounds without a better validation measure.")
    ] = None
    ndcg_at: Annotated[int | None, _setting("The k of the validation's NDCG@k (default 10).")] = (
        None
    )
    random_state: Annotated[int | None, _setting("The seed.")] = None
    booster: Annotated[str | None, _trees("{boosters} (default lightgbm).")] = None
    n_estimators: Annotated[
        int | None,
        _trees("Rounds, one tree each (default by the size of the log, up to 300)."),
    ] = None
    learning_rate: Annotated[float | None, _trees("The rate (default 0.05).")] = None
    num_leaves: Annotated[
        int | None, _trees("Leaves of a tree (default by the size of the log, 4 to 31).")
    ] = None
    feature_fraction: Annotated[
        float | None, _trees("Share of the features a tree sees (default 0.9).")
    ] = None
    bagging_fraction: Annotated[
        float | None, _trees("Share of the documents a tree sees (default 0.9).")
    ] = None
    min_data_in_leaf: Annotated[
        int | None, _trees("Fewest documents in a leaf (default 50 rows' worth).")
    ] = None
    min_sum_hessian_in_leaf: Annotated[
        float | None, _trees("Smallest hessian of a leaf (default 2.5).")
    ] = None


@dataclass(frozen=True)
class TrainInput:
    """What is learned from beside LOG, and how the settings are given."""

    ranker: Annotated[
        str | None,
        _setting(
            "{rankers}. Default auto; lambdamart with --labels, --validation or a setting of it."
        ),
    ] = None
    config: Annotated[
        str | None,
        typer.Option(metavar="TOML", help="A file of settings; options given here win over it."),
    ] = None
    validation: Annotated[
        str | None,
        typer.Option(help="Held-out labels (LETOR text or a table), or clicks (a log), to watch."),
    ] = None
    init_model: Annotated[
        str | None, typer.Option(metavar="DIR", help="A saved model to continue.")
    ] = None
    labels: Annotated[
        bool, typer.Option("--labels", help="LOG holds relevance labels, not clicks.")
    ] = False
    shuffled: Annotated[
        str | None,
        _setting("Randomization on the sessions whose context is VALUE.", metavar="VALUE"),
    ] = None
    assignments: Annotated[
        list[str] | None,
        _setting(
            "Any further setting of the ranker, or parameter of its booster (repeatable).",
            "--set",
            metavar="NAME=VALUE",
        ),
    ] = None

    @property
    def one_machine(self) -> bool:
        """Whether something is asked for that no engine does."""
        return self.labels or self.shuffled is not None


def run(
    log: Log,
    out: FolderOut,
    *,
    training: TrainInput,
    settings: Settings,
    reading: DataInput,
    cluster: ClusterInput,
) -> None:
    """Train a ranker on a click log and save the model.

    Without further options method and settings are chosen from the clicks, and the summary at the end
    says what was tried and why the winner won. It draws the position bias that was learned.
    """
    from unskew.cli.train_settings import make_ranker, ranker_or, ranker_settings, read_config
    from unskew.registry import RANKERS

    chosen = {"ranker": training.ranker, **asdict(settings)}
    given = ranker_settings(read_config(training.config), chosen, training.assignments or [])
    by_hand = training.one_machine or training.validation is not None or cluster.wanted
    if cluster.wanted:
        given.setdefault("booster", "xgboost")
    name = ranker_or(given, training.init_model, by_hand=by_hand)
    if training.shuffled is not None and (
        training.labels or given.get("debias", "randomization") != "randomization"
    ):
        raise UsageError("--shuffled goes with clicks and --debias randomization alone")
    made = make_ranker(name, n_jobs=reading.threads, verbose=int(not reading.quiet), **given)
    inputs = [log, reading.features, training.config, training.validation, training.init_model]
    check_folder("--out", out, inputs, name, RANKERS[name].old_kinds)
    started = clock.perf_counter()
    if cluster.wanted:
        trained_on = _train_on_cluster(made, log, training, cluster)
    else:
        trained_on = _train_here(made, log, training, reading)
    made.save(out)
    _summary(made, trained_on, clock.perf_counter() - started, out)


def _train_on_cluster(made: Any, log: str, training: TrainInput, cluster: ClusterInput) -> str:
    """Train over parts with several workers; returns on what."""
    if training.one_machine:
        raise UsageError("--labels and --shuffled go without an engine: they train on one machine")
    engine = cluster.made()
    made.fit(log, validation=training.validation, init_model=training.init_model, engine=engine)
    return f"{log} with the engine {engine.name}"


def _train_here(made: Any, log: str, training: TrainInput, reading: DataInput) -> str:
    """Train on one machine; returns on what."""
    held_out = None
    if training.validation is not None:
        reading.refuse_idle_options(log, training.validation, labels=training.labels)
        held_out = reading.held_out(training.validation)
    options: dict[str, Any] = {"validation": held_out, "init_model": training.init_model}
    if training.labels:
        made.fit_labels(reading.labels(log, strict=held_out is None), **options)
        return "relevance labels"
    data = reading.impressions(log, strict=held_out is None)
    _show_features(data)
    if training.shuffled is not None:
        made.set_params(debias=_randomization(data, training.shuffled, made.n_positions))
    made.fit(data, **options)
    return _described(data)


def _randomization(data: Impressions, shuffled: str, n_positions: int | None) -> Any:
    """The estimator that looks at the sessions of one context."""
    from unskew.bias.randomization import Randomization

    context = shuffled_context(data, shuffled)
    return Randomization(context=context, n_positions=n_positions)


def _show_features(data: Impressions) -> None:
    """What will be a feature, and which of them should perhaps be none."""
    from unskew.log.leaks import find_leaks

    if data.features.n_features:  # without any, the ranker says what is missing
        say(f"features ({data.features.n_features}): {names_shown(data.features.names)}")
    for leak in find_leaks(data):
        show(("leak? ", "bold yellow"), leak.message, to=errors)


def _described(data: Impressions) -> str:
    return (
        f"{data.n_sessions:,} sessions of {data.n_queries:,} queries, {data.n_clicks:,} clicks, "
        f"{data.n_documents:,} documents, {data.features.n_features} features"
    )


def _summary(ranker: Any, trained_on: str, seconds: float, out: Place) -> None:
    trees = getattr(ranker, "trees_", None)
    what = type(ranker).__name__ if trees is None else f"{trees.n_rounds} trees"
    lines = [f"trained on {trained_on}", f"{what} in {seconds:.1f} s"]
    choice = getattr(ranker, "choice_", None)
    history = None if choice is not None else getattr(ranker, "validation_history_", None)
    if history:
        best = getattr(ranker, "best_round_", None) or len(history)
        lines.append(f"validation {history[best - 1]:.4f} after round {best}")
    importances = getattr(ranker, "feature_importances_", None)
    if importances is not None:
        order = importances.argsort()[::-1][:5]
        shares = (f"{ranker.feature_names_[k]} {importances[k]:.0%}" for k in order)
        lines.append(f"most important: {', '.join(shares)}")
    if choice is not None:
        lines = [str(choice), "", *lines]
    lines += ["", str(ranker.position_bias_), "", f"saved to {out}"]
    show("\n".join(lines))
