"""A click model fitted to a log: its parameters and a relevance for every document."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from unskew.array_types import FloatArray
from unskew.clicks.fitting.likelihood import ClickLikelihood
from unskew.clicks.fitting.log_clicks import LogClicks
from unskew.clicks.fitting.measures import ClickMeasures, measure_log
from unskew.clicks.fitting.posterior import Posterior, posterior_of
from unskew.clicks.fitting.requirements import check_clicks, warn_of_unlinked_positions
from unskew.clicks.fitting.table import TableFit, fit_table
from unskew.errors import UsageError
from unskew.log.impressions import Impressions
from unskew.position_bias import PositionBias
from unskew.registry import CLICK_MODELS

if TYPE_CHECKING:
    import pyarrow as pa


# Fewer sessions than this leave the curve of a context close to that of all sessions.
FEW_SESSIONS = 100.0


@dataclass(frozen=True, eq=False)
class FittedClickModel:
    """What a click model learned from a log without looking at features.

    Attributes
    ----------
    name
        The model's name in the registry.
    data
        The log.
    likelihood
        The model on that log, with its parameters.
    table
        One relevance per document, and how the EM went.

    Examples
    --------
    >>> import unskew
    >>> labels = unskew.datasets.make_search_dataset(n_queries=40, n_features=16, seed=0)
    >>> policy = unskew.simulate.random_policy(labels)
    >>> log = unskew.simulate.sample(labels, policy=policy, sessions=20_000, seed=0)
    >>> data = unskew.read_log(log)
    >>> fitted = unskew.clicks.fit_click_model(data, "pbm")
    >>> fitted.name, len(fitted.position_bias())
    ('pbm', 10)

    """

    name: str
    data: Impressions
    likelihood: ClickLikelihood
    table: TableFit

    @property
    def parameters(self) -> dict[str, Any]:
        """Examination, continuation, satisfaction and trust, by name."""
        return self.likelihood.parameters()

    @property
    def relevance(self) -> FloatArray:
        """P(relevant) of each distinct (query, doc), in the order of `to_arrow`.

        The number of the document in row i of the log's documents is ``data.documents.number[i]``.
        """
        return self.table.relevance

    @cached_property
    def examination(self) -> pa.Table:
        """The chance that a result is examined, as a table.

        Its rows are positions; of a contextual model contexts and positions; of the user browsing
        model positions and the position of the last click above (0: none). In chain models, where it
        follows from what stands above, it is the mean over the sessions of the log. A model with trust
        bias has in its place the chance of a click on a relevant result, and as ``trust`` that of a
        click on an irrelevant one.
        """
        import pyarrow as pa

        return pa.table(self.likelihood.examination(self.relevance))

    @property
    def continuation(self) -> float | FloatArray | None:
        """The chance to go on: one number, or after a click at each position; None without one."""
        return self.parameters.get("continuation")

    @property
    def satisfaction(self) -> float | FloatArray | None:
        """The chance that a click ends the search: of each document, or as a share of its relevance.

        None where the model has none.
        """
        found = self.parameters
        return found.get("satisfaction", found.get("satisfaction_share"))

    def position_bias(self, context: Any = None) -> PositionBias:
        """How examination falls with the position, which any ranker takes as ``debias=``.

        Of a contextual model it is the mean over all sessions, or the curve of one ``context``.
        """
        self.likelihood.evidence(self.relevance)
        return self.likelihood.position_bias(context)

    @cached_property
    def posterior(self) -> Posterior:
        """Mean and spread of every document's relevance, given its clicks and its query's mean."""
        prior = self.table.query_mean[self.likelihood.clicks.query]
        return posterior_of(self.likelihood, self.relevance, prior, self.table.strength)

    def measures(self, data: Impressions | None = None) -> ClickMeasures:
        """How well it predicts the clicks of a log, by default those it was fitted to.

        Documents are recognised by query and doc. A new one has the mean relevance of its query, and
        that of the whole log if the query is new as well.
        """
        if data is None:
            return measure_log(self.likelihood, self.relevance)
        mine, other = self.likelihood.clicks, LogClicks(data, None, False)
        known = other.known_in(mine)
        relevance = np.append(self.relevance, np.nan)[known]
        mean = dict(zip(self.data.queries.tolist(), self.table.query_mean.tolist(), strict=True))
        of_query = [mean.get(query, self.table.log_mean) for query in data.queries.tolist()]
        relevance = np.where(known < 0, np.array(of_query)[other.query], relevance)
        return measure_log(self.likelihood.on(data, known=known), relevance)

    def to_arrow(self) -> pa.Table:
        """One row per document: query, doc, relevance, its spread, impressions and clicks.

        ``relevance`` is the mean of the posterior and ``spread`` its standard deviation.
        """
        import pyarrow as pa

        clicks = self.likelihood.clicks
        shown, clicked = clicks.totals()
        return pa.table(
            {
                "query": pa.array(self.data.queries[clicks.query]),
                "doc": pa.array(clicks.doc),
                "relevance": self.posterior.mean,
                "spread": self.posterior.spread,
                "impressions": shown,
                "clicks": clicked,
            }
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know before the parameters are used, in sentences."""
        found = []
        if not self.table.converged:
            found.append(
                f"the EM had not settled after {self.table.n_iterations} steps: give n_iterations"
            )
        for name, sessions in self.likelihood.clicks.sessions_by_context().items():
            if self.name == "contextual" and sessions < FEW_SESSIONS:
                found.append(
                    f"context {name!r} has {sessions:g} sessions: its curve is mostly that of all"
                )
        return tuple(found)

    def __str__(self) -> str:
        clicks = self.likelihood.clicks
        lines = [
            f"{self.name}, {CLICK_MODELS[self.name].summary}",
            f"{clicks.n_documents:,} documents, {self.table.n_iterations} EM steps, mean relevance "
            f"{self.table.log_mean:.3f}",
        ]
        for name, value in self.parameters.items():
            if isinstance(value, float):
                lines.append(f"{name} {value:.3f}")
        return "\n".join((*lines, str(self.position_bias()), *self.notes))


def likelihood_of(
    name: str,
    data: Impressions,
    *,
    n_positions: int | None = None,
    mass: FloatArray | None = None,
    by_version: bool = True,
) -> ClickLikelihood:
    """A click model of the registry on a log, before it has learned anything.

    ``by_version`` gives each feature version of a document a relevance of its own.
    """
    if name not in CLICK_MODELS:
        raise UsageError(f"click model {name!r} is not known: choose among {list(CLICK_MODELS)}")
    if n_positions is not None and n_positions < 1:
        raise UsageError(f"n_positions must be 1 or more, or None for all, got {n_positions}")
    kind, clicks = CLICK_MODELS[name].load(), LogClicks(data, mass, by_version)
    check_clicks(clicks, kind)
    n = data.n_curve_positions(n_positions)
    found: ClickLikelihood = kind.likelihood(clicks, n_positions=n)
    return found


def fit_click_model(
    data: Impressions,
    model: str = "pbm",
    *,
    n_positions: int | None = None,
    strength: float | None = None,
    n_iterations: int = 500,
    tolerance: float = 1e-6,
    mass: FloatArray | None = None,
) -> FittedClickModel:
    """Fit a click model to a log by EM, with one relevance for each document.

    Features are not looked at, and the feature versions of a document are one document. Where no
    document was seen at several positions, models that need that warn.

    Parameters
    ----------
    data
        The log.
    model
        A name of the registry: ``pbm``, ``ubm``, ``dbn``, ``dcm``, ``cascade``, ``trust`` or
        ``contextual``.
    n_positions
        Positions beyond share the parameters of this one. By default all have their own.
    strength
        How many examined impressions the mean of its query is worth to a document; estimated from
        the log by default.
    n_iterations, tolerance
        The most EM steps; fewer when two improve the log-likelihood by less than this share.
    mass
        Replaces how much each pattern of the log counts, for resampling and held-out sessions.

    Examples
    --------
    >>> import unskew
    >>> labels = unskew.datasets.make_search_dataset(n_queries=40, n_features=16, seed=0)
    >>> policy = unskew.simulate.random_policy(labels)
    >>> log = unskew.simulate.sample(labels, policy=policy, sessions=20_000, seed=0)
    >>> data = unskew.read_log(log)
    >>> fitted = unskew.clicks.fit_click_model(data, "pbm")
    >>> bias = fitted.position_bias()
    >>> bool(bias.t_plus[0] > bias.t_plus[5])
    True

    """
    if strength is not None and not strength > 0:
        raise UsageError(f"strength must be above 0, or None to estimate it, got {strength}")
    if n_iterations < 1:
        raise UsageError(f"n_iterations must be 1 or more, got {n_iterations}")
    likelihood = likelihood_of(model, data, n_positions=n_positions, mass=mass, by_version=False)
    warn_of_unlinked_positions(likelihood, model)
    table = fit_table(
        likelihood, likelihood.clicks.query, strength=strength, n_iterations=n_iterations,
        tolerance=tolerance,
    )  # fmt: skip
    return FittedClickModel(model, data, likelihood, table)
