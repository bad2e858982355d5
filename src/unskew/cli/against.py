"""`unskew inspect --against`: a new log beside the one that a model was trained on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from unskew.cli.console import figures, output, plain_table, print_json, show
from unskew.cli.reading import LogInput, Wanted
from unskew.errors import UsageError
from unskew.loading import load_ranker
from unskew.terminal import bar

if TYPE_CHECKING:
    from unskew.log.drift import Drift

_SHOWN_POSITIONS = 20
_SHOWN_FEATURES = 10


def compare(log: str, model: str, as_json: bool, reading: LogInput) -> None:
    """Print how a log differs from the one of a model."""
    from unskew.log.drift import compare_log

    ranker = load_ranker(model)
    data = reading.impressions(log, Wanted([ranker]))
    if not data.n_sessions:
        raise UsageError(f"{log} has no sessions to compare")
    found = compare_log(data, ranker.feature_names_, ranker.training_log_)
    if as_json:
        print_json({"log": log, "model": model, **found.to_dict()})
        return
    show((f"{log} against {model}", "bold"))
    _show(found)


def _show(found: Drift) -> None:
    if not found.compared:
        show(
            ("note:", "yellow"),
            " the model remembers nothing of its log: it was saved by an earlier version, or trained "
            "on labels. Only its features are compared; train it again on clicks for the rest.",
        )
    else:
        output.print(_summary(found))
        output.print(_curve(found))
        output.print(_features(found))
    if found.new_features:
        names = ", ".join(found.new_features[:8]) + (" …" if len(found.new_features) > 8 else "")
        show(("note:", "yellow"), f" the model does not know the columns {names}")
    for reason in found.reasons:
        show(("retrain:", "bold red"), f" {reason}")
    if found.compared and not found.retrain:
        show(("no need to retrain:", "bold green"), " the log is like the one of the training")


def _summary(found: Drift) -> Table:
    unseen = {"documents": found.unseen_documents, "queries": found.unseen_queries}
    rows = [
        (f"{found.ctr_now:.2%}", f"CTR, {found.ctr_before:.2%} in training"),
        (f"{found.curve_change:.0%}", "mean change of the CTR of a position, beyond chance"),
        (f"{found.position_index:.2f}", "stability index of the positions shown"),
    ]
    for what, share in unseen.items():
        if share is not None:
            rows.append((f"{share:.0%}", f"of what is shown are {what} that were not in training"))
    return figures(rows)


def _curve(found: Drift) -> Table:
    names = ("position", "training", "now")
    table = plain_table("CTR by position", numbers=names, last=[""])
    shown = found.positions[:_SHOWN_POSITIONS]
    highest = max((max(at.before or 0, at.now or 0) for at in shown), default=0)
    for at in shown:
        drawn = Text(bar(at.now or 0, highest, width=24), "cyan") if highest else Text("")
        rates = ("" if rate is None else f"{rate:.2%}" for rate in (at.before, at.now))
        table.add_row(str(at.position), *rates, drawn)
    if len(found.positions) > len(shown):
        table.add_row(f"… {len(found.positions) - len(shown)} more")
    return table


def _features(found: Drift) -> Table:
    names = ("feature", "stability index", "missing in training", "missing now")
    table = plain_table("Features that moved most", numbers=names)
    for one in found.features[:_SHOWN_FEATURES]:
        missing = (f"{share:.1%}" for share in (one.missing_before, one.missing_now))
        table.add_row(Text(one.name), f"{one.stability_index:.2f}", *missing)
    return table
