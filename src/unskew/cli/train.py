"""`unskew train`: a click log becomes a model."""

from __future__ import annotations

import time as clock
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unskew.cli import options as o
from unskew.cli.console import output

if TYPE_CHECKING:
    from unskew.log.impressions import Impressions
    from unskew.rankers.lambdamart.ranker import UnbiasedLambdaMART

_RANKER = "The ranker"
_TREES = "Its trees"


def _setting(text: str, panel: str = _RANKER) -> Any:
    return typer.Option(help=text, rich_help_panel=panel)


def run(
    log: o.Log,
    out: Annotated[str, typer.Option("--out", "-o", metavar="DIR", help="The model's folder.")],
    config: Annotated[
        str | None,
        typer.Option(metavar="TOML", help="A file of settings; options given here win over it."),
    ] = None,
    validation: Annotated[
        str | None,
        typer.Option(help="Held-out labels (LETOR text), or clicks (a log), to watch."),
    ] = None,
    init_model: Annotated[
        str | None, typer.Option(metavar="DIR", help="A saved model to continue.")
    ] = None,
    labels: Annotated[
        bool, typer.Option("--labels", help="LOG holds relevance labels, not clicks.")
    ] = False,
    debias: Annotated[
        str | None,
        _setting(
            "pairwise (default), clicked, randomization, regression-em, table-em, relative-ctr, none, "
            "or propensities such as 0.68,0.61,0.48."
        ),
    ] = None,
    p: Annotated[float | None, _setting("Regularisation of the bias (default 0.5).")] = None,
    sigma: Annotated[float | None, _setting("Steepness of the loss (default 2).")] = None,
    n_positions: Annotated[
        int | None, _setting("Positions with a bias of their own (default all).")
    ] = None,
    early_stopping_rounds: Annotated[
        int | None, _setting("Stop after so many rounds without a better validation measure.")
    ] = None,
    ndcg_at: Annotated[int | None, _setting("The k of the validation's NDCG@k (default 10).")] = None,
    random_state: Annotated[int | None, _setting("The seed.")] = None,
    booster: Annotated[str | None, _setting("lightgbm (default) or xgboost.", _TREES)] = None,
    n_estimators: Annotated[int | None, _setting("Rounds, one tree each (default 300).", _TREES)] = None,
    learning_rate: Annotated[float | None, _setting("The rate (default 0.05).", _TREES)] = None,
    num_leaves: Annotated[int | None, _setting("Leaves of a tree (default 31).", _TREES)] = None,
    feature_fraction: Annotated[
        float | None, _setting("Share of the features a tree sees (default 0.9).", _TREES)
    ] = None,
    bagging_fraction: Annotated[
        float | None, _setting("Share of the documents a tree sees (default 0.9).", _TREES)
    ] = None,
    min_data_in_leaf: Annotated[
        int | None, _setting("Fewest documents in a leaf (default 50 rows' worth).", _TREES)
    ] = None,
    min_sum_hessian_in_leaf: Annotated[
        float | None, _setting("Smallest hessian of a leaf (default 2.5).", _TREES)
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", rich_help_panel=_TREES,
            help="Any further parameter of the booster (repeatable).",
        ),
    ] = None,
    session: o.Session = "session",
    query: o.Query = "query",
    doc: o.Doc = "doc",
    position: o.Position = "position",
    click: o.Click = "click",
    weight: o.Weight = None,
    context: o.Context = None,
    time: o.Time = None,
    features: o.FeaturesTable = None,
    categorical: o.Categorical = None,
    ignore: o.Ignore = None,
    table: o.TableName = None,
    first_position: o.FirstPosition = 1,
    memory_limit: o.MemoryLimit = None,
    threads: o.Threads = None,
    quiet: o.Quiet = False,
) -> None:  # fmt: skip
    """Train Unbiased LambdaMART on a click log and save the model.

    The summary at the end draws the position bias that was learned with it.
    """
    given = dict(locals())
    from unskew.rankers.lambdamart.ranker import UnbiasedLambdaMART

    ranker = UnbiasedLambdaMART(**_settings(given), n_jobs=threads, verbose=0 if quiet else 1)
    held_out = None if validation is None else _held_out(validation, given)
    started = clock.perf_counter()
    if labels:
        from unskew import read_labels

        ranker.fit_labels(read_labels(log), validation=held_out, init_model=init_model)
        trained_on = "relevance labels"
    else:
        data = o.open_log(log, given)
        ranker.fit(data, validation=held_out, init_model=init_model)
        trained_on = _described(data)
    ranker.save(out)
    _summary(ranker, trained_on, clock.perf_counter() - started, out)


def _settings(given: dict[str, Any]) -> dict[str, Any]:
    from unskew.cli.train_settings import ranker_settings, read_config
    from unskew.rankers.lambdamart.ranker import UnbiasedLambdaMART

    names = set(UnbiasedLambdaMART().get_params()) & set(given)
    options = {name: given[name] for name in names}
    return ranker_settings(read_config(given["config"]), options, given["set_"] or [])


def _held_out(path: str, given: dict[str, Any]) -> Any:
    """Labels are text with qid; anything else is a log, read like the one to train on."""
    from unskew import read_labels
    from unskew.log.letor import is_letor

    if is_letor(path):
        return read_labels(path)
    return o.open_log(path, given)


def _described(data: Impressions) -> str:
    return (
        f"{data.n_sessions:,} sessions of {data.n_queries:,} queries, {data.n_clicks:,} clicks, "
        f"{data.n_documents:,} documents, {data.features.n_features} features"
    )


def _summary(ranker: UnbiasedLambdaMART, trained_on: str, seconds: float, out: str) -> None:
    lines = [f"trained on {trained_on}", f"{ranker.trees_.n_rounds} trees in {seconds:.1f} s"]
    if ranker.validation_history_:
        best = ranker.best_round_ or len(ranker.validation_history_)
        measure = ranker.validation_history_[-1 if ranker.best_round_ is None else best - 1]
        lines.append(f"validation {measure:.4f} after round {best}")
    order = ranker.feature_importances_.argsort()[::-1][:5]
    shares = (f"{ranker.feature_names_[k]} {ranker.feature_importances_[k]:.0%}" for k in order)
    lines += [f"most important: {', '.join(shares)}", "", str(ranker.position_bias_), ""]
    lines.append(f"saved to {out}")
    output.print("\n".join(lines), highlight=False, markup=False, soft_wrap=True)
