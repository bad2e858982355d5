"""`unskew train`: a click log becomes a model."""

from __future__ import annotations

import time as clock
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unskew.cli.clusters import ClusterInput
from unskew.cli.console import errors, names_shown, say, show
from unskew.cli.reading import DataInput, Log, context_of
from unskew.cli.writing import check_folder
from unskew.errors import UsageError

if TYPE_CHECKING:
    from unskew.log.impressions import Impressions

_CHOICE = "The choice, unless --ranker or a setting of a ranker says otherwise"
_RANKER = "The ranker"
_TREES = "Its trees"


def _setting(text: str, panel: str = _RANKER) -> Any:
    return typer.Option(help=text, rich_help_panel=panel)


@dataclass(frozen=True)
class Settings:
    """Settings of a ranker; None leaves its default."""

    seconds: Annotated[
        float | None, _setting("The most seconds that choosing may take (default any).", _CHOICE)
    ] = None
    trials: Annotated[
        int | None, _setting("The most trainings that choosing may take (default 40).", _CHOICE)
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
    booster: Annotated[str | None, _setting("{boosters} (default lightgbm).", _TREES)] = None
    n_estimators: Annotated[
        int | None,
        _setting("Rounds, one tree each (default by the size of the log, up to 300).", _TREES),
    ] = None
    learning_rate: Annotated[float | None, _setting("The rate (default 0.05).", _TREES)] = None
    num_leaves: Annotated[
        int | None, _setting("Leaves of a tree (default by the size of the log, 4 to 31).", _TREES)
    ] = None
    feature_fraction: Annotated[
        float | None, _setting("Share of the features a tree sees (default 0.9).", _TREES)
    ] = None
    bagging_fraction: Annotated[
        float | None, _setting("Share of the documents a tree sees (default 0.9).", _TREES)
    ] = None
    min_data_in_leaf: Annotated[
        int | None, _setting("Fewest documents in a leaf (default 50 rows' worth).", _TREES)
    ] = None
    min_sum_hessian_in_leaf: Annotated[
        float | None, _setting("Smallest hessian of a leaf (default 2.5).", _TREES)
    ] = None


def run(
    log: Log,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The model's folder.")],
    ranker: Annotated[
        str | None,
        _setting("{rankers}. Default auto; lambdamart with --labels, --validation or a setting of it."),
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(metavar="TOML", help="A file of settings; options given here win over it."),
    ] = None,
    validation: Annotated[
        str | None,
        typer.Option(help="Held-out labels (LETOR text or a table), or clicks (a log), to watch."),
    ] = None,
    init_model: Annotated[
        str | None, typer.Option(metavar="DIR", help="A saved model to continue.")
    ] = None,
    labels: Annotated[
        bool, typer.Option("--labels", help="LOG holds relevance labels, not clicks.")
    ] = False,
    shuffled: Annotated[
        str | None,
        typer.Option(
            metavar="VALUE", rich_help_panel=_RANKER,
            help="Randomization on the sessions whose context is VALUE.",
        ),
    ] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", rich_help_panel=_RANKER,
            help="Any further setting of the ranker, or parameter of its booster (repeatable).",
        ),
    ] = None,
    *,
    settings: Settings,
    reading: DataInput,
    cluster: ClusterInput,
) -> None:  # fmt: skip
    """Train a ranker on a click log and save the model.

    Without further options method and settings are chosen from the clicks, and the summary at the end
    says what was tried and why the winner won. It draws the position bias that was learned.
    """
    from unskew.cli.train_settings import make_ranker, ranker_or, ranker_settings, read_config
    from unskew.registry import RANKERS

    chosen = {"ranker": ranker, **asdict(settings)}
    given = ranker_settings(read_config(config), chosen, assignments or [])
    by_hand = labels or validation is not None or shuffled is not None or cluster.wanted
    if cluster.wanted:
        given.setdefault("booster", "xgboost")
    name = ranker_or(given, init_model, by_hand=by_hand)
    if shuffled is not None and (labels or given.get("debias", "randomization") != "randomization"):
        raise UsageError("--shuffled goes with clicks and --debias randomization alone")
    made = make_ranker(name, n_jobs=reading.threads, verbose=int(not reading.quiet), **given)
    inputs = [log, reading.features, config, validation, init_model]
    check_folder("--out", out, inputs, name, RANKERS[name].old_kinds)
    if cluster.wanted:
        _train_on_cluster(made, log, out, validation, init_model, cluster, local=labels or shuffled)
        return
    if validation is not None:
        reading.refuse_idle_options(log, validation, labels=labels)
    held_out = None if validation is None else reading.held_out(validation)
    options: dict[str, Any] = {"validation": held_out, "init_model": init_model}
    started = clock.perf_counter()
    if labels:
        made.fit_labels(reading.labels(log, strict=validation is None), **options)
        trained_on = "relevance labels"
    else:
        data = reading.impressions(log, strict=validation is None)
        _show_features(data)
        if shuffled is not None:
            made.set_params(debias=_randomization(data, shuffled, given))
        made.fit(data, **options)
        trained_on = _described(data)
    made.save(out)
    _summary(made, trained_on, clock.perf_counter() - started, out)


def _train_on_cluster(
    made: Any,
    log: str,
    out: Path,
    validation: str | None,
    init_model: str | None,
    cluster: ClusterInput,
    *,
    local: Any,
) -> None:
    """Train over parts with several workers."""
    if local:
        raise UsageError("--labels and --shuffled go without an engine: they train on one machine")
    engine = cluster.made()
    started = clock.perf_counter()
    made.fit(log, validation=validation, init_model=init_model, engine=engine)
    made.save(out)
    _summary(made, f"{log} with the engine {engine.name}", clock.perf_counter() - started, out)


def _randomization(data: Impressions, shuffled: str, given: dict[str, Any]) -> Any:
    """The estimator that looks at the sessions of one context."""
    from unskew.bias.randomization import Randomization

    context = context_of(data, shuffled, "--shuffled")
    return Randomization(context=context, n_positions=given.get("n_positions"))


def _show_features(data: Impressions) -> None:
    """What will be a feature, and which of them should perhaps be none."""
    from unskew.log.leaks import find_leaks

    say(f"features ({data.features.n_features}): {names_shown(data.features.names)}")
    for leak in find_leaks(data):
        show(("leak? ", "bold yellow"), leak.message, to=errors)


def _described(data: Impressions) -> str:
    return (
        f"{data.n_sessions:,} sessions of {data.n_queries:,} queries, {data.n_clicks:,} clicks, "
        f"{data.n_documents:,} documents, {data.features.n_features} features"
    )


def _summary(ranker: Any, trained_on: str, seconds: float, out: Path) -> None:
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
