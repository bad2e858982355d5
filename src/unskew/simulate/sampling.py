"""`sample`: labelled data, a logging policy and a click model become a click log.

The log is a table with the columns ``session``, ``query``, ``doc``, ``position``, ``click`` and,
for contextual models, ``context``. The truth behind it (model, parameters, examination by position)
travels in the table's metadata, also through Parquet; `true_propensities` reads it back.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from unskew.array_types import FloatArray
from unskew.clicks import ClickModel, click_model
from unskew.clicks.kernels import FlatPages
from unskew.clicks.stream import Streams, stream_key
from unskew.errors import DataError, UsageError
from unskew.log.labelled import LabelledData
from unskew.progress import progress_bar
from unskew.simulate.pages import draw_pages
from unskew.simulate.policies import LoggingPolicy, rank_svm_policy
from unskew.simulate.propensities import Propensities, average_propensities
from unskew.store import replace_file

METADATA_KEY = b"unskew.simulation"

# Sessions drawn at a time: a batch of pages of ten takes some 80 MB.
CHUNK = 1 << 18


@dataclass(frozen=True, eq=False)
class _Simulation:
    """Everything that is fixed before the first session is drawn."""

    data: LabelledData
    model: ClickModel
    policy: LoggingPolicy
    sessions: int
    seed: int
    traffic: FloatArray

    def batch(self, first: int, count: int) -> pa.RecordBatch:
        pages = draw_pages(
            self.policy, self.traffic, first=first, count=count, n_sessions=self.sessions,
            seed=self.seed,
        )  # fmt: skip
        context = self.model.draw_contexts(first, count, seed=self.seed)
        flat = FlatPages(pages.offsets, pages.row, context)
        streams = Streams(stream_key(self.seed, "click"), first)
        click = self.model.draw(flat, self.data.relevance, streams)
        lengths = np.diff(pages.offsets)
        columns = {
            "session": pa.array(pages.session),
            "query": self._query.column(np.repeat(pages.query, lengths)),
            "doc": self._doc.column(pages.row),
            "position": pa.array(pages.position),
            "click": pa.array(click),
        }
        if self.model.contexts:
            indices = pa.array(np.repeat(context, lengths))
            names = list(self.model.contexts)
            columns["context"] = pa.DictionaryArray.from_arrays(indices, names)
        return pa.RecordBatch.from_pydict(columns, metadata=self._metadata)

    @cached_property
    def _query(self) -> _Names:
        return _Names(self.data.query[self.data.offsets[:-1]])

    @cached_property
    def _doc(self) -> _Names:
        return _Names(self.data.doc)

    @cached_property
    def _metadata(self) -> dict[bytes, bytes]:
        truth = average_propensities(self.model, self.data, self.policy, self.traffic)
        about = {
            "model": self.model.name,
            "parameters": self.model.describe(),
            "seed": self.seed,
            "sessions": self.sessions,
            "propensity": truth.mean.tolist(),
            "propensity_by_context": {k: v.tolist() for k, v in truth.by_context.items()},
        }
        return {METADATA_KEY: json.dumps(about).encode()}


class _Names:
    """A column of names: whole numbers are copied, anything else is a dictionary."""

    def __init__(self, values: npt.NDArray[Any]) -> None:
        self._plain = np.issubdtype(values.dtype, np.integer)
        if self._plain:
            self._values: npt.NDArray[Any] = values.astype(np.int64)
        else:
            names, codes = np.unique(values.astype(str), return_inverse=True)
            self._dictionary = pa.array(names.tolist(), pa.string())
            self._values = codes.astype(np.int32)

    def column(self, index: npt.NDArray[np.int32]) -> pa.Array:
        """The Arrow column of the names with the given numbers."""
        column = pa.array(self._values[index])
        return column if self._plain else pa.DictionaryArray.from_arrays(column, self._dictionary)


def _prepare(
    data: LabelledData,
    model: ClickModel | str,
    policy: LoggingPolicy | None,
    sessions: int,
    seed: int,
    traffic: npt.ArrayLike | None,
) -> _Simulation:
    if isinstance(model, str):
        model = click_model(model)
    if sessions < 1:
        raise UsageError(f"sessions must be 1 or more, got {sessions}")
    if seed < 0:
        raise UsageError(f"seed must be 0 or more, got {seed}")
    if policy is None:
        policy = rank_svm_policy(data, seed=seed)
    if not np.array_equal(policy.offsets, data.offsets):
        raise UsageError("policy was made for other data: make it from the data that is simulated")
    weight = np.ones(data.n_queries) if traffic is None else np.asarray(traffic, dtype=np.float64)
    if weight.shape != (data.n_queries,):
        raise UsageError(f"traffic must have one weight per query: {data.n_queries:,}")
    if not (np.isfinite(weight).all() and (weight >= 0).all() and weight.sum() > 0):
        raise UsageError("traffic must be finite weights, 0 or more, and not all 0")
    # A grade off the scale is found here, before the first session.
    model.attraction(data.relevance)
    return _Simulation(data, model, policy, sessions, seed, weight / weight.sum())


def sample_batches(
    data: LabelledData,
    *,
    model: ClickModel | str = "pbm",
    policy: LoggingPolicy | None = None,
    sessions: int,
    seed: int,
    traffic: npt.ArrayLike | None = None,
    chunk: int = CHUNK,
) -> Iterator[pa.RecordBatch]:
    """Sample a click log batch by batch; see `sample`. ``chunk`` sessions are drawn at a time.

    Examples
    --------
    >>> import unskew
    >>> labels = unskew.datasets.make_search_dataset(n_queries=30, n_features=16, seed=0)
    >>> batches = unskew.simulate.sample_batches(labels, sessions=100, seed=0)
    >>> sum(batch.num_rows for batch in batches) >= 100
    True

    """
    if chunk < 1:
        raise UsageError(f"chunk must be 1 or more, got {chunk}")
    simulation = _prepare(data, model, policy, sessions, seed, traffic)
    return (
        simulation.batch(first, min(chunk, sessions - first)) for first in range(0, sessions, chunk)
    )


def sample(
    data: LabelledData,
    *,
    model: ClickModel | str = "pbm",
    policy: LoggingPolicy | None = None,
    sessions: int,
    seed: int,
    traffic: npt.ArrayLike | None = None,
    chunk: int = CHUNK,
) -> pa.Table:
    """Sample a click log.

    Parameters
    ----------
    data
        Documents with grades.
    model
        A click model or its name.
    policy
        Which lists are shown; by default those of a Ranking SVM trained on 1% of the queries.
    sessions
        How many sessions to draw; each asks one query, drawn by its traffic.
    seed
        The same seed gives the same log, whatever the number of threads or the chunk.
    traffic
        How often each query is asked, as weights; equally often by default.
    chunk
        How many sessions are drawn at a time.

    Examples
    --------
    >>> import unskew
    >>> labels = unskew.datasets.make_search_dataset(n_queries=30, n_features=16, seed=0)
    >>> log = unskew.simulate.sample(labels, model="cascade", sessions=100, seed=0)
    >>> log.column_names
    ['session', 'query', 'doc', 'position', 'click']

    """
    batches = sample_batches(
        data, model=model, policy=policy, sessions=sessions, seed=seed, traffic=traffic, chunk=chunk
    )
    return pa.Table.from_batches(batches)


def sample_to_parquet(
    path: str | os.PathLike[str],
    data: LabelledData,
    *,
    model: ClickModel | str = "pbm",
    policy: LoggingPolicy | None = None,
    sessions: int,
    seed: int,
    traffic: npt.ArrayLike | None = None,
    chunk: int = CHUNK,
    progress: bool = False,
) -> Path:
    """Sample a click log into a Parquet file in bounded memory; see `sample`.

    The file appears under its name only when it is complete.

    Examples
    --------
    >>> import unskew
    >>> labels = unskew.datasets.make_search_dataset(n_queries=30, n_features=16, seed=0)
    >>> path = unskew.simulate.sample_to_parquet("clicks.parquet", labels, sessions=100, seed=0)
    >>> unskew.read_log(path).n_sessions
    100

    """
    import pyarrow.parquet as pq

    simulation = _prepare(data, model, policy, sessions, seed, traffic)
    target = Path(path)

    def write(partial: Path) -> None:
        with (
            progress_bar("sessions", sessions, show=progress) as advance,
            pq.ParquetWriter(partial, simulation.batch(0, 0).schema, compression="zstd") as writer,
        ):
            for first in range(0, sessions, chunk):
                count = min(chunk, sessions - first)
                writer.write_batch(simulation.batch(first, count))
                advance(count)

    replace_file(target, write)
    return target


def true_propensities(log: pa.Table | str | os.PathLike[str]) -> Propensities:
    """The true examination by position of a simulated log, from a table or a Parquet file.

    Examples
    --------
    >>> import unskew
    >>> labels = unskew.datasets.make_search_dataset(n_queries=30, n_features=16, seed=0)
    >>> log = unskew.simulate.sample(labels, model="pbm", sessions=100, seed=0)
    >>> unskew.simulate.true_propensities(log).relative[:2].round(2).tolist()
    [1.0, 0.9]

    """
    import pyarrow.parquet as pq

    schema = log.schema if isinstance(log, pa.Table) else pq.read_schema(log)
    about: Mapping[bytes, bytes] = schema.metadata or {}
    if METADATA_KEY not in about:
        raise DataError("the log carries no true propensities: it was not simulated by Unskew")
    truth = json.loads(about[METADATA_KEY])
    return Propensities(
        np.array(truth["propensity"]),
        {name: np.array(values) for name, values in truth["propensity_by_context"].items()},
    )
