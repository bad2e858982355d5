"""The models themselves: their features, what was tried, their settings, all versions."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import replace
from html import escape
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from unskew.charts import Bar, BarChart, LineChart
from unskew.charts.chart import Table
from unskew.charts.figure import facts, figure, html_table
from unskew.position_bias import PositionBias
from unskew.reporting.findings import Findings
from unskew.reporting.page import Section, bullets, paragraph, table
from unskew.reporting.sections.bias import round_word
from unskew.reporting.sections.quality import looks_of

MOST_FEATURES = 15
MOST_TRIED = 60
_PACKAGES = ("unskew", "numpy", "lightgbm", "xgboost", "scikit-learn", "duckdb", "pyarrow", "torch")


def features_section(found: Findings) -> Section | None:
    """The importance of features for every model."""
    looks, html = looks_of(found), ""
    for name, model in found.models.items():
        one = found.importances[name]
        if one is None:
            continue
        order = np.argsort(-one.share, kind="stable")[:MOST_FEATURES]
        left = len(one.share) - len(order)
        more = f" {left:,} more features are not shown." if left > 0 else ""
        html += figure(
            BarChart(
                title=f"Features of {name}",
                caption=f"The importance of a feature: {one.how}.{more}",
                bars=[Bar(model.feature_names_[k], [float(one.share[k])]) for k in order],
                groups=["share"],
                looks=[looks[name]],
                x_label="share",
                share=True,
            )
        )
    pair = f'<div class="pair">{html}</div>' if len(found.models) > 1 else html
    return Section("Which features matter", pair) if html else None


def tried_section(found: Findings) -> Section | None:
    """What was tried when the settings of a model were chosen, if the model knows."""
    html = ""
    for name, model in found.models.items():
        choice = getattr(model, "choice_", None)
        if choice is not None:
            html += f"<h3>{escape(name)}</h3>{_choice(choice)}"
    return Section("What was tried", html) if html else None


def _choice(choice: Any) -> str:
    """The winner, why it won, and the tables of what was tried."""
    winner = getattr(choice, "winner", None)
    html = "" if winner is None else paragraph(f"Chosen: {winner}.")
    html += bullets([str(reason) for reason in getattr(choice, "reasons", ())])
    for name in ("trials", "blends"):
        rows = [dict(one) for one in getattr(choice, name, ()) if isinstance(one, Mapping)]
        if rows:
            header = list(dict.fromkeys(key for one in rows for key in one))
            cells = [[_short(one.get(key)) for key in header] for one in rows[:MOST_TRIED]]
            html += table(header, cells)
    return html or paragraph(str(choice))


def _short(value: Any) -> str:
    """A setting or a measure as a short text."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_short(one)}" for key, one in value.items())
    text = str(value)
    return text if len(text) <= 200 else text[:199] + "…"


def settings_section(found: Findings) -> Section:
    """The settings of every model, the validation of those that have one, the versions."""
    settings = {name: _settings(model) for name, model in found.models.items()}
    names = list(dict.fromkeys(key for one in settings.values() for key in one))
    rows = [[name, *(one.get(name, "–") for one in settings.values())] for name in names]
    html = html_table(Table(["setting", *settings], rows), numbers=False)
    for name, model in found.models.items():
        chart = _validation(name, model)
        html += figure(chart) if chart is not None else ""
    versions = [("python", platform.python_version()), *_versions()]
    return Section("Settings and versions", html + "<h3>Versions</h3>" + facts(versions))


def _settings(model: Any) -> dict[str, str]:
    params = model.get_params(deep=False) if hasattr(model, "get_params") else {}
    told = {
        name: "a given position bias" if isinstance(value, PositionBias) else _short(value)
        for name, value in params.items()
    }
    rounds = len(getattr(model, "bias_history_", ()))
    return {
        "kind": type(model).__name__, **told, f"{round_word(model)}s kept": f"{rounds:,}",
        "features": f"{len(model.feature_names_):,}",
    }  # fmt: skip


def _validation(name: str, model: Any) -> LineChart | None:
    measures = getattr(model, "validation_history_", None)
    if not measures or not hasattr(model, "plot"):
        return None
    unit = round_word(model)
    drawn: LineChart = model.plot("validation")
    caption = drawn.caption.replace("round", unit)
    return replace(drawn, title=f"{name}: validation by {unit}", caption=caption, x_label=unit)


def _versions() -> list[tuple[str, str]]:
    rows = []
    for package in _PACKAGES:
        try:
            rows.append((package, version(package)))
        except PackageNotFoundError:
            continue
    return rows
