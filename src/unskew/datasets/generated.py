"""`make_search_dataset`: generated data that behaves like web search data, from one of three worlds.

Behind every document stand a few *factors*, partly shared by the documents of a query. Grades cut a
function of the factors, with label noise on top, at the shares of a public dataset. The worlds
differ in that function and in the features:

mixed
    A sum of terms that trees can see and a line cannot: some factors count directly, one pair of
    factors counts only together, one factor counts when it is neither high nor low, one changes its
    sign with the kind of query. The features are many noisy views of the factors: correlated,
    heavy-tailed, sparse, binary, constant, or of the query alone, and some are only noise.
base-rates
    Every query has a base rate of its own, which no feature shows, and its documents differ by three
    factors alone. Most features are noise.
interactions
    No factor counts by itself: relevance is products of pairs of factors, thresholds on two of them
    together, and signs that change with the kind of query.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np
import numpy.typing as npt

from unskew.array_types import FloatArray
from unskew.errors import UsageError
from unskew.log.features import Features
from unskew.log.labelled import LabelledData

Float32Array = npt.NDArray[np.float32]

# Shares of the grades 0 to 4: Yahoo LTRC set 1 (Chapelle and Chang, 2011) and MSLR-WEB10K.
GRADE_SHARES: Mapping[str, tuple[float, ...]] = MappingProxyType(
    {
        "yahoo": (0.2192, 0.5022, 0.2230, 0.0388, 0.0168),
        "mslr": (0.5201, 0.3219, 0.1328, 0.0178, 0.0074),
    }
)

# Queries are generated in blocks of this size, each with a random stream of its own.
BLOCK = 1_024
FACTORS = 8
QUERY_FACTORS = 2
MIN_FEATURES = 16
VIEW_NOISE = 0.35
QUERY_PART = 0.35  # how much of a factor's variance the documents of a query share

# The kinds of features and their shares; the first FACTORS features are always plain views.
KINDS: Mapping[str, float] = MappingProxyType(
    {
        "view": 0.36,
        "heavy": 0.22,
        "sparse": 0.12,
        "binary": 0.06,
        "query": 0.08,
        "noise": 0.12,
        "constant": 0.04,
    }
)

# In the world of base rates few features say anything.
MOSTLY_NOISE: Mapping[str, float] = MappingProxyType(
    {
        "view": 0.14,
        "heavy": 0.06,
        "sparse": 0.02,
        "binary": 0.02,
        "query": 0.04,
        "noise": 0.70,
        "constant": 0.02,
    }
)


@dataclass(frozen=True)
class _World:
    """The relevance of documents by their factors, those of their query and its difficulty."""

    relevance: Callable[[FloatArray, FloatArray, FloatArray], FloatArray]
    kinds: Mapping[str, float]


def _mixed(z: FloatArray, u: FloatArray, difficulty: FloatArray) -> FloatArray:
    return np.asarray(
        0.75 * z[:, 0]
        + 0.45 * z[:, 1]
        + 0.80 * z[:, 2] * z[:, 3]
        + 1.60 * (np.abs(z[:, 4]) < 0.6)
        + 0.80 * np.sign(u[:, 0]) * z[:, 5]
        + 0.90 * np.maximum(z[:, 6], 0.0) * (z[:, 0] > 0)
        + 0.60 * difficulty
    )


def _base_rates(z: FloatArray, u: FloatArray, difficulty: FloatArray) -> FloatArray:
    own = 2.0 * np.tanh(1.5 * z[:, 0]) + 1.2 * z[:, 1] + 1.4 * (z[:, 2] > 0.3)
    return np.asarray(own + 1.5 * difficulty)


def _interactions(z: FloatArray, u: FloatArray, difficulty: FloatArray) -> FloatArray:
    return np.asarray(
        1.00 * z[:, 0] * z[:, 1]
        + 0.80 * z[:, 2] * z[:, 3]
        + 1.20 * (z[:, 4] > 0) * (z[:, 5] > 0)
        + 0.70 * np.sign(u[:, 0]) * z[:, 6]
        + 0.70 * np.sign(u[:, 1] * z[:, 7]) * z[:, 0]
        + 0.40 * difficulty
    )


WORLDS: Mapping[str, _World] = MappingProxyType(
    {
        "mixed": _World(_mixed, KINDS),
        "base-rates": _World(_base_rates, MOSTLY_NOISE),
        "interactions": _World(_interactions, KINDS),
    }
)


@dataclass(frozen=True, eq=False)
class _Plan:
    """What is the same for all documents: each feature's kind, its loadings and its scale."""

    kind: npt.NDArray[np.str_]
    loading: Float32Array
    query_loading: Float32Array
    scale: Float32Array

    def names(self) -> tuple[str, ...]:
        return tuple(f"{kind}_{i + 1}" for i, kind in enumerate(self.kind))


def _plan(n_features: int, kinds: Mapping[str, float], rng: np.random.Generator) -> _Plan:
    counts = [max(1, round(share * n_features)) for share in kinds.values()]
    counts[0] = n_features - sum(counts[1:])
    rest = np.repeat(list(kinds), counts)
    # Every factor is seen plainly at least once, however few features there are.
    rest = np.concatenate((rest[:FACTORS], rng.permutation(rest[FACTORS:])))
    rest[:FACTORS] = "view"
    for place, missing in zip(
        range(FACTORS, n_features), [k for k in kinds if k not in rest], strict=False
    ):
        rest[place] = missing
    primary = np.concatenate((rng.permutation(FACTORS), rng.integers(0, FACTORS, n_features)))
    loading = 0.25 * rng.normal(size=(FACTORS, n_features)) * (rng.random(n_features) < 0.5)
    loading[primary[:n_features], np.arange(n_features)] += rng.choice([-1.0, 1.0], n_features)
    return _Plan(
        kind=rest.astype(np.str_),
        loading=loading.astype(np.float32),
        query_loading=rng.normal(size=(QUERY_FACTORS, n_features)).astype(np.float32),
        scale=np.exp(rng.normal(scale=1.0, size=n_features)).astype(np.float32),
    )


@dataclass(frozen=True, eq=False)
class _Block:
    """The documents of some queries before they have features: factors and relevance."""

    sizes: npt.NDArray[np.int64]
    factor: Float32Array
    query_factor: Float32Array
    relevance: Float32Array


def _block(
    world: _World,
    n_queries: int,
    docs_per_query: float,
    label_noise: float,
    rng: np.random.Generator,
) -> _Block:
    spread = 0.45
    length = docs_per_query * np.exp(rng.normal(-(spread**2) / 2, spread, n_queries))
    sizes = np.clip(np.rint(length), 2, max(2, 6 * docs_per_query)).astype(np.int64)
    query = np.repeat(np.arange(n_queries), sizes)
    shared = rng.normal(size=(n_queries, FACTORS), scale=np.sqrt(QUERY_PART))
    own = rng.normal(size=(len(query), FACTORS), scale=np.sqrt(1.0 - QUERY_PART))
    z = shared[query] + own
    u = rng.normal(size=(n_queries, QUERY_FACTORS))[query]
    difficulty = rng.normal(size=n_queries)[query]
    relevance = world.relevance(z, u, difficulty)
    relevance = relevance + label_noise * rng.normal(size=len(query))
    return _Block(sizes, z.astype(np.float32), u.astype(np.float32), relevance.astype(np.float32))


def _fill(plan: _Plan, block: _Block, rng: np.random.Generator, out: Float32Array) -> None:
    """The features of a block, written in place."""
    np.matmul(block.factor, plan.loading, out=out)
    out += VIEW_NOISE * rng.standard_normal(out.shape, dtype=np.float32)
    of_query = plan.kind == "query"
    out[:, of_query] = block.query_factor @ plan.query_loading[:, of_query]
    noise = plan.kind == "noise"
    out[:, noise] = rng.standard_normal((len(out), int(noise.sum())), dtype=np.float32)
    heavy = plan.kind == "heavy"
    out[:, heavy] = np.floor(10.0 * np.exp(1.3 * out[:, heavy]))
    sparse = plan.kind == "sparse"
    out[:, sparse] = np.maximum(out[:, sparse] - 1.2, 0.0)
    binary = plan.kind == "binary"
    out[:, binary] = out[:, binary] > 0.5
    out[:, plan.kind == "constant"] = 1.0
    out *= plan.scale


def make_search_dataset(
    *,
    n_queries: int = 1_000,
    n_features: int = 64,
    docs_per_query: float = 20.0,
    seed: int = 0,
    grades: Literal["yahoo", "mslr"] = "yahoo",
    label_noise: float = 1.0,
    world: Literal["mixed", "base-rates", "interactions"] = "mixed",
) -> LabelledData:
    """Generate documents with grades 0 to 4, query by query.

    Parameters
    ----------
    n_queries
        How many queries.
    n_features
        How many features, 16 or more. Their names tell their kind.
    docs_per_query
        How many documents a query has on average; the numbers vary, from 2 up.
    seed
        The same seed gives the same data.
    grades
        Whose shares the five grades have: ``"yahoo"`` or ``"mslr"``.
    label_noise
        The standard deviation of the noise in the relevance before it is cut into grades; the
        relevance itself has one of about 1.8.
    world
        What makes a document relevant: ``"mixed"``, ``"base-rates"`` or ``"interactions"``.

    Examples
    --------
    >>> import unskew
    >>> labels = unskew.datasets.make_search_dataset(n_queries=30, n_features=16, seed=0)
    >>> labels.n_queries, labels.features.n_features, int(labels.relevance.max())
    (30, 16, 4)

    """
    if n_queries < 1:
        raise UsageError(f"n_queries must be 1 or more, got {n_queries}")
    if n_features < MIN_FEATURES:
        raise UsageError(f"n_features must be {MIN_FEATURES} or more, got {n_features}")
    if not docs_per_query >= 2:
        raise UsageError(f"docs_per_query must be 2 or more, got {docs_per_query}")
    if not label_noise >= 0:
        raise UsageError(f"label_noise must be 0 or more, got {label_noise}")
    if grades not in GRADE_SHARES:
        raise UsageError(f"grades must be one of {tuple(GRADE_SHARES)}, got {grades!r}")
    if world not in WORLDS:
        raise UsageError(f"world must be one of {tuple(WORLDS)}, got {world!r}")
    chosen = WORLDS[world]
    plan = _plan(n_features, chosen.kinds, np.random.default_rng([seed, 0]))
    blocks = [
        _block(
            chosen,
            min(BLOCK, n_queries - first),
            docs_per_query,
            label_noise,
            np.random.default_rng([seed, 1, first]),
        )
        for first in range(0, n_queries, BLOCK)
    ]
    sizes = np.concatenate([block.sizes for block in blocks])
    values = np.empty((int(sizes.sum()), n_features), dtype=np.float32)
    at = 0
    for number, block in enumerate(blocks):
        rows = len(block.relevance)
        _fill(plan, block, np.random.default_rng([seed, 2, number]), values[at : at + rows])
        at += rows
    return LabelledData(
        Features(values, plan.names()),
        _cut(np.concatenate([block.relevance for block in blocks]), GRADE_SHARES[grades]),
        np.repeat(np.arange(1, n_queries + 1), sizes),
        np.arange(len(values)),
    )


def _cut(relevance: Float32Array, shares: tuple[float, ...]) -> FloatArray:
    """Grades 0 to 4 with the given shares, by descending relevance."""
    bounds = np.quantile(relevance, np.cumsum(shares)[:-1])
    return np.digitize(relevance, bounds).astype(np.float64)
