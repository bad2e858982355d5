"""The sessions of a log in two parts by query: those to learn from, and those that end the training."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray
from unskew.errors import DataError
from unskew.log.impressions import Impressions
from unskew.log.labelled import LabelledData

# The share of the queries that early stopping holds out where the caller gives no validation data.
HELD_OUT = 0.2


class MassSplit(NamedTuple):
    """How much each pattern counts in training, and how much held out."""

    training: FloatArray
    held_out: FloatArray


def held_out_queries(
    clicked: npt.NDArray[np.bool_],
    share: float,
    rng: np.random.Generator,
    *,
    with_what: str = "with a click",
) -> npt.NDArray[np.bool_]:
    """Which queries are held out: this share of those that were ``clicked``, and of the others.

    Both parts have a clicked query. ``with_what`` says in an error what a clicked query has.
    """
    if np.count_nonzero(clicked) < 2:
        raise DataError(
            f"early stopping holds out {share:.0%} of the queries, but there are "
            f"{np.count_nonzero(clicked)} {with_what}: give validation=, or set "
            "early_stopping_rounds=None and choose n_estimators yourself"
        )
    held_out = np.zeros(len(clicked), dtype=np.bool_)
    for group, fewest in ((clicked, 1), (~clicked, 0)):
        members = rng.permutation(np.flatnonzero(group))
        number = min(max(round(share * len(members)), fewest), len(members) - fewest)
        held_out[members[:number]] = True
    return held_out


def split_by_query(data: Impressions, share: float, rng: np.random.Generator) -> MassSplit:
    """Hold out the sessions of a share of the queries."""
    patterns = data.patterns
    query = data.pages.query[patterns.page]
    clicks = np.bincount(query, np.diff(patterns.offsets) * patterns.mass, len(data.queries))
    held_out = held_out_queries(clicks > 0, share, rng)
    mass = patterns.mass
    return MassSplit(
        training=np.where(held_out[query], 0.0, mass),
        held_out=np.where(held_out[query], mass, 0.0),
    )


def hold_out_clicks(
    data: Impressions, share: float, rng: np.random.Generator
) -> tuple[Impressions, Impressions]:
    """The sessions to learn from, and those of a share of the queries; documents stay as they are."""
    split = split_by_query(data, share, rng)
    return (
        data.take_patterns(np.flatnonzero(split.training > 0)),
        data.take_patterns(np.flatnonzero(split.held_out > 0)),
    )


def hold_out_labels(
    labels: LabelledData, share: float, rng: np.random.Generator
) -> tuple[LabelledData, LabelledData]:
    """The labels to learn from, and those of a share of the queries."""
    relevant = np.logical_or.reduceat(labels.relevance > 0, labels.offsets[:-1])
    held_out = held_out_queries(relevant, share, rng, with_what="with a relevant document")
    return (
        labels.take_queries(np.flatnonzero(~held_out)),
        labels.take_queries(np.flatnonzero(held_out)),
    )


def shown_documents(data: Impressions, mass: FloatArray) -> npt.NDArray[np.intp]:
    """The documents of the pages that these masses of the patterns show, ascending."""
    pages = data.pages
    shown = np.bincount(data.patterns.page, weights=mass, minlength=len(pages)) > 0
    entries = np.repeat(shown, np.diff(pages.offsets))
    return np.unique(pages.document[entries]).astype(np.intp)
