"""`report`: one page about a log and the models that would rank it anew."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from unskew.errors import UsageError
from unskew.log.impressions import Impressions
from unskew.log.inspection import Inspection, inspect_impressions
from unskew.log.labelled import LabelledData
from unskew.places import is_saved, without_secrets
from unskew.position_bias import PositionBias
from unskew.reporting.answer import Answer, answer_html, answer_of
from unskew.reporting.findings import Findings, Scope, find
from unskew.reporting.models import Models, named_models
from unskew.reporting.page import Section, page
from unskew.reporting.sections.bias import bias_section
from unskew.reporting.sections.log import ctr_section, log_section
from unskew.reporting.sections.models import features_section, settings_section, tried_section
from unskew.reporting.sections.movement import exposure_section, movement_section
from unskew.reporting.sections.quality import clicks_section, labels_section
from unskew.reporting.sections.queries import queries_section


@dataclass(frozen=True, eq=False)
class Report:
    """A report: the answer, the page, and what stands behind them.

    Attributes
    ----------
    answer
        Whether a model is better than what is live, by how much, how sure, what next.
    findings
        The numbers of every section.
    html
        The page, one file that opens without a network.

    Examples
    --------
    >>> import unskew
    >>> from unskew.datasets.tables import features_table
    >>> labels = unskew.datasets.make_search_dataset(n_queries=60, n_features=16, seed=0)
    >>> log = unskew.simulate.sample(labels, sessions=2_000, seed=0)
    >>> data = unskew.read_log(log, features=features_table(labels))
    >>> ranker = unskew.UnbiasedLambdaMART(n_estimators=5, random_state=0, verbose=0).fit(data)
    >>> found = unskew.report({"mine": ranker}, data, methods=["relative-ctr"], n_resamples=2)
    >>> isinstance(found, unskew.Report), found.html.startswith("<!DOCTYPE html>")
    (True, True)

    """

    answer: Answer
    findings: Findings
    html: str = field(repr=False)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page; never half of it."""
        from unskew.store import replace_file

        replace_file(Path(path), lambda file: file.write_text(self.html, encoding="utf-8"))

    def __repr__(self) -> str:
        return f"Report({self.answer.sentence})"

    def _repr_html_(self) -> str:
        inside = escape(self.html, quote=True)
        return f'<iframe srcdoc="{inside}" width="100%" height="900" title="Report"></iframe>'


def report(
    models: Models,
    log: Impressions | str | os.PathLike[str],
    labels: LabelledData | str | os.PathLike[str] | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    bias: PositionBias | Mapping[str, PositionBias] | None = None,
    curves: Mapping[str, PositionBias] | None = None,
    title: str | None = None,
    notes: Sequence[Section] = (),
    inspection: Inspection | None = None,
    labels_source: str | None = None,
    most_documents: int | None = Scope.most_documents,
    methods: Sequence[str] | None = None,
    judge_by: str | None = None,
    n_resamples: int = Scope.n_resamples,
    seed: int = 0,
    progress: bool = False,
) -> Report:
    """One page about a click log and the models that would rank it anew.

    Parameters
    ----------
    models
        Fitted rankers, folders of saved ones, or either by name; one or several.
    log
        The clicks that judge them, best of sessions that no model has seen: `Impressions`, or a file
        or folder of them.
    labels
        Labelled documents for metrics on labels, if there are any.
    out
        The file to write the page to.
    bias
        A position bias to judge by, or several curves by name, of which the first judges. By default
        the log is asked, and then the models.
    curves
        Further curves to be shown beside the others, by name.
    title
        The title of the page.
    notes
        Further sections for the end of the page.
    inspection
        What is known about the log, if it was read with problems.
    labels_source
        What the page calls the labels.
    most_documents
        Of a larger log whole queries with about so many documents are drawn for what needs scores;
        None scores them all.
    methods
        The methods by which the bias is estimated; by default those that take seconds.
    judge_by
        The method, model or given curve whose bias judges all rankings.
    n_resamples
        Resamples for the intervals of the bias curves.
    seed
        For what is drawn at random.
    progress
        Whether to show bars.

    Examples
    --------
    >>> import unskew
    >>> from unskew.datasets.tables import features_table
    >>> labels = unskew.datasets.make_search_dataset(n_queries=60, n_features=16, seed=0)
    >>> log = unskew.simulate.sample(labels, sessions=2_000, seed=0)
    >>> data = unskew.read_log(log, features=features_table(labels))
    >>> ranker = unskew.UnbiasedLambdaMART(n_estimators=5, random_state=0, verbose=0).fit(data)
    >>> found = unskew.report({"mine": ranker}, data, methods=["relative-ctr"], n_resamples=2)
    >>> found.html.startswith("<!DOCTYPE html>")
    True

    """
    named = named_models(models)
    if not named:
        raise UsageError(
            "a report needs a model: give a fitted ranker or the folder of a saved one"
        )
    data, source = _clicks(log)
    on, on_name = _labels(labels)
    given = {"given bias": bias} if isinstance(bias, PositionBias) else dict(bias or {})
    seen = inspection or inspect_impressions(data, source)
    scope = Scope(
        most_documents, n_resamples, methods, judge_by, seed, progress, shown=dict(curves or {})
    )
    # Threads of linear algebra gain nothing on such sums, and lose much on a busy machine.
    with threadpool_limits(limits=1, user_api="blas"):
        found = find(named, data, seen, on, given, scope, without_secrets(labels_source or on_name))
    answer = answer_of(found)
    made = Report(answer, found, _page(found, answer, title, notes))
    if out is not None:
        made.save(out)
    return made


def _clicks(log: Any) -> tuple[Impressions, str]:
    if isinstance(log, Impressions):
        return log, "the log"
    from unskew.log.parts import load
    from unskew.log.read import read_log

    path = os.fspath(log)
    return (load(path) if is_saved(path) else read_log(path)), without_secrets(path)


def _labels(labels: Any) -> tuple[LabelledData | None, str]:
    if labels is None or isinstance(labels, LabelledData):
        return labels, "the labels"
    from unskew.log.read import read_labels

    return read_labels(os.fspath(labels)), without_secrets(os.fspath(labels))


def _page(found: Findings, answer: Answer, title: str | None, notes: Sequence[Section]) -> str:
    from unskew import __version__

    best = answer.best.model
    sections = [
        clicks_section(found),
        labels_section(found),
        queries_section(found, best),
        movement_section(found, best),
        exposure_section(found),
        log_section(found),
        ctr_section(found),
        bias_section(found),
        features_section(found),
        tried_section(found),
        settings_section(found),
        *notes,
    ]
    seen = found.inspection
    lead = (
        f"{len(found.models)} model{'s' if len(found.models) > 1 else ''} against the order that "
        f"{seen.source} shows: {seen.sessions:,} sessions, {seen.queries:,} queries, {seen.clicks:,} "
        "clicks."
    )
    return page(
        title or "Is the new ranking better?",
        lead,
        [one for one in sections if one is not None],
        first=answer_html(answer),
        footer=f"Made by Unskew {__version__}. Nothing on this page is loaded from a network.",
    )
