"""One epoch of the neural ranker over the statistics of a million simulated sessions.

    python benchmarks/neural.py --device cpu
    python benchmarks/neural.py --device cuda

The log is simulated in memory: pages of ten results, position-based clicks. An epoch runs over its
distinct pages; the output also says how many sessions a second that is, since the pages stand for
all of them. Run it on both devices to compare them. Needs NumPy, Numba and PyTorch only.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from unskew.log.features import Features
from unskew.log.impressions import Documents, Impressions, Pages, Patterns
from unskew.pairs.statistic import pair_statistics
from unskew.position_bias import PositionBias
from unskew.rankers.neural.pytorch import device_of, pytorch
from unskew.rankers.neural.training import NeuralSettings, NeuralTraining

EXAMINATION = np.array([0.68, 0.61, 0.48, 0.34, 0.28, 0.20, 0.11, 0.10, 0.08, 0.06])
SHOWN, CANDIDATES, PAGES_PER_QUERY = 10, 15, 3


def simulated_log(n_sessions: int, n_queries: int, n_features: int) -> Impressions:
    """Position-based clicks: three different pages a query, sessions spread over them."""
    rng = np.random.default_rng(0)
    values = rng.standard_normal((n_queries * CANDIDATES, n_features), dtype=np.float32)
    truth = values[:, :8].sum(axis=1)
    relevance = 1.0 / (1.0 + np.exp(2.0 - truth / truth.std()))
    n_pages = n_queries * PAGES_PER_QUERY
    query = np.repeat(np.arange(n_queries, dtype=np.int32), PAGES_PER_QUERY)
    order = np.argsort(rng.random((n_pages, CANDIDATES)), axis=1)[:, :SHOWN]
    document = (query[:, None] * CANDIDATES + order).astype(np.int32)
    page = np.sort(rng.integers(n_pages, size=n_sessions))
    click = rng.random((n_sessions, SHOWN)) < EXAMINATION * relevance[document[page]]
    # A pattern is a page with a set of clicked places, which is a number below 1024.
    code = page * 2**SHOWN + click @ (1 << np.arange(SHOWN))
    kept, count = np.unique(code, return_counts=True)
    clicked = (kept[:, None] >> np.arange(SHOWN)) & 1
    names = tuple(f"f{k}" for k in range(n_features))
    return Impressions(
        queries=np.arange(n_queries),
        contexts=np.empty(0, dtype=object),
        documents=Documents(
            np.repeat(np.arange(n_queries, dtype=np.int32), CANDIDATES),
            np.arange(len(values)), Features(values, names),
        ),
        pages=Pages(
            query, np.arange(n_pages + 1) * SHOWN, document.reshape(-1),
            np.tile(np.arange(1, SHOWN + 1, dtype=np.int32), n_pages),
        ),
        patterns=Patterns(
            page=(kept >> SHOWN).astype(np.int32),
            context=np.full(len(kept), -1, dtype=np.int32),
            weight=np.ones(len(kept)),
            count=count,
            offsets=np.concatenate(([0], np.cumsum(clicked.sum(axis=1)))),
            slot=np.nonzero(clicked)[1].astype(np.int32),
            grade=np.ones(int(clicked.sum()), dtype=np.uint8),
        ),
    )  # fmt: skip


def seconds_per_epoch(data: Impressions, options: argparse.Namespace) -> tuple[float, int]:
    """The time of one epoch, the better of two after one to warm up, and the pages in it."""
    torch = pytorch()
    device = device_of(options.device)
    dual = options.method == "dual-learning"
    settings = NeuralSettings(
        loss="pairwise" if options.method == "pairwise" else "listwise", dual=dual, seed=0,
        sides=(True, True), batch_pages=options.batch_pages,
    )  # fmt: skip
    training = NeuralTraining(
        data, data.features.values.astype(np.float32), pair_statistics(data),
        bias=PositionBias.none(SHOWN), settings=settings, device=device,
    )  # fmt: skip
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        loss = training.epoch()
        if device.type == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
        print(f"  epoch: {times[-1]:.2f} s, loss {loss:.4f}", flush=True)
    return min(times[1:]), len(training.batches)


def main() -> None:
    """Parse, simulate, train, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    parser.add_argument("--sessions", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--features", type=int, default=136)
    parser.add_argument("--batch-pages", type=int, default=256)
    parser.add_argument(
        "--method", choices=["pairwise", "listwise", "dual-learning"], default="pairwise"
    )
    options = parser.parse_args()
    data = simulated_log(options.sessions, options.queries, options.features)
    print(
        f"{data.n_sessions:,} sessions, {data.n_pages:,} pages, {len(data.documents):,} documents"
    )
    seconds, pages = seconds_per_epoch(data, options)
    print(f"{options.method} on {device_of(options.device)}, {options.batch_pages} pages a batch:")
    print(f"  {seconds:.2f} s an epoch, {pages / seconds:,.0f} pages a second,")
    print(f"  {data.n_sessions / seconds:,.0f} sessions a second")


if __name__ == "__main__":
    main()
