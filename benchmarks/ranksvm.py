"""PropensityRankSVM against scikit-learn's LinearSVC on pair differences, and five million pairs.

    UNSKEW_DATA=/folder/with/mq2008/and/mslr178 python benchmarks/ranksvm.py

Quality: both learn from the labels of the same training queries, with the same standardised
features and their default settings, and are judged by NDCG@10 on queries they have not seen.
LinearSVC gets at most `--peer-pairs` of the pairs, drawn at random. Size: a simulated log with five
million distinct pairs; time and peak memory of one fit.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
from sklearn.svm import LinearSVC

import unskew
from _memory import peak_bytes
from unskew.log.features import Features
from unskew.log.impressions import Documents, Impressions, Pages, Patterns
from unskew.pairs.pair_losses import PairLosses
from unskew.pairs.statistic import pair_statistics
from unskew.rankers.labels import label_impressions
from unskew.rankers.standardizer import Standardizer
from unskew.rankers.validation import mean_ndcg

FloatArray = npt.NDArray[np.float64]
Split = tuple[unskew.LabelledData, unskew.LabelledData]


def data_folder() -> Path | None:
    """Where the LETOR files are, if they are."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("UNSKEW_DATA", beside))
    return folder if (folder / "mq2008").is_dir() else None


def mq2008(folder: Path) -> Iterator[Split]:
    """The five folds of MQ2008: three parts to train, one to test."""
    parts = [unskew.read_labels(str(folder / "mq2008" / f"S{k}.txt.gz")) for k in range(1, 6)]
    for fold in range(5):
        chosen = [parts[(fold + step) % 5] for step in range(3)]
        values = np.vstack([part.features.values for part in chosen])
        query = np.concatenate(
            [np.char.add(f"{k}:", p.query.astype(str)) for k, p in enumerate(chosen)]
        )
        relevance = np.concatenate([part.relevance for part in chosen])
        features = unskew.Features(values, chosen[0].features.names)
        yield unskew.LabelledData.from_rows(features, relevance, query), parts[(fold + 4) % 5]


def mslr178(folder: Path) -> Iterator[Split]:
    """Five folds over the queries of the MSLR sample."""
    data = unskew.read_labels(str(folder / "mslr178" / "mslr178.txt.gz"))
    fold_of = np.random.default_rng(0).permutation(data.n_queries) % 5
    for fold in range(5):
        train, test = np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)
        yield data.take_queries(train), data.take_queries(test)


def ours(train: unskew.LabelledData, test: unskew.LabelledData) -> tuple[float, float]:
    """NDCG@10 and seconds of PropensityRankSVM."""
    begin = time.perf_counter()
    ranker = unskew.PropensityRankSVM(verbose=0).fit_labels(train)
    seconds = time.perf_counter() - begin
    return mean_ndcg(ranker.predict(test), test.relevance, test.offsets, 10), seconds


def peer(
    train: unskew.LabelledData, test: unskew.LabelledData, most_pairs: int
) -> tuple[float, float]:
    """NDCG@10 and seconds of LinearSVC on the differences of pairs, half of them turned round."""
    begin = time.perf_counter()
    standardizer = Standardizer.of(train.features, missing="impute")
    values = standardizer.apply(train.features.values, train.features.names)
    data = label_impressions(train)
    pairs = PairLosses.of(data.pages, pair_statistics(data), 1)
    chosen = np.random.default_rng(0).permutation(len(pairs))[:most_pairs]
    sign = np.where(np.arange(len(chosen)) % 2, 1.0, -1.0)
    differences = values[pairs.document_i[chosen]]
    differences -= values[pairs.document_j[chosen]]
    differences *= sign[:, None]
    model = LinearSVC(fit_intercept=False, dual=False).fit(differences, sign)
    seconds = time.perf_counter() - begin
    score = standardizer.apply(test.features.values, test.features.names) @ model.coef_[0]
    return mean_ndcg(score, test.relevance, test.offsets, 10), seconds


def quality(folder: Path, most_pairs: int) -> None:
    """A table: mean NDCG@10 over the folds, and how long training took."""
    print("| labels | PropensityRankSVM | LinearSVC | time, ours / LinearSVC |")
    print("|---|---:|---:|---:|")
    for name, folds in (("MQ2008", mq2008(folder)), ("MSLR, 178 queries", mslr178(folder))):
        found = np.array([(ours(*split), peer(*split, most_pairs)) for split in folds])
        (mine, my_time), (theirs, their_time) = found.mean(axis=0)
        row = f"| {name} | {mine:.4f} | {theirs:.4f} | "
        print(
            row + f"{my_time:.1f} s / {their_time:.1f} s = {my_time / their_time:.2f} |", flush=True
        )


def large_log(n_pairs: int, n_features: int) -> Impressions:
    """A log with about so many distinct pairs: pages of 20 results, each clicked at ten of them."""
    rng = np.random.default_rng(0)
    size, clicked = 20, 10
    n = n_pairs // (clicked * (size - 1))
    values = rng.standard_normal((n * size, n_features), dtype=np.float32)
    truth = values @ rng.standard_normal(n_features).astype(np.float32)
    chance = truth.reshape(n, size) / truth.std() + rng.gumbel(size=(n, size)) + 2.0
    slots = np.sort(np.argsort(-chance, axis=1)[:, :clicked], axis=1).astype(np.int32)
    one = np.arange(n, dtype=np.int32)
    names = tuple(f"f{k}" for k in range(n_features))
    return Impressions(
        queries=one,
        contexts=np.empty(0, dtype=object),
        documents=Documents(np.repeat(one, size), np.arange(n * size), Features(values, names)),
        pages=Pages(
            one, np.arange(n + 1) * size, np.arange(n * size, dtype=np.int32),
            np.tile(np.arange(1, size + 1, dtype=np.int32), n),
        ),
        patterns=Patterns(
            page=np.repeat(one, clicked),
            context=np.full(n * clicked, -1, dtype=np.int32),
            weight=np.ones(n * clicked),
            count=rng.integers(1, 5, size=n * clicked),
            offsets=np.arange(n * clicked + 1),
            slot=slots.reshape(-1),
            grade=np.ones(n * clicked, dtype=np.uint8),
        ),
    )  # fmt: skip


def size(n_pairs: int, n_features: int) -> None:
    """Time and memory of one fit on a large log, with known propensities."""
    data = large_log(n_pairs, n_features)
    pairs = len(pair_statistics(data))
    bias = unskew.PositionBias.from_propensities(1.0 / np.arange(1, 21))
    begin = time.perf_counter()
    ranker = unskew.PropensityRankSVM(debias=bias, verbose=0).fit(data)
    seconds = time.perf_counter() - begin
    peak = peak_bytes() / 2**30
    print(f"{pairs:,} pairs of {len(data.documents):,} documents, {n_features} features:")
    gap = ranker.gap_ / ranker.objective_
    print(f"{seconds:.0f} s, peak memory {peak:.2f} GiB, certified relative gap {gap:.1e}")


def main() -> None:
    """Parse, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--pairs", type=int, default=5_000_000, help="0 leaves this part out")
    parser.add_argument("--features", type=int, default=136)
    parser.add_argument("--peer-pairs", type=int, default=200_000)
    parser.add_argument("--no-quality", action="store_true")
    options = parser.parse_args()
    if options.pairs:
        size(options.pairs, options.features)
    folder = data_folder()
    if options.no_quality:
        return
    if folder is None:
        sys.exit("the labelled data is absent: set UNSKEW_DATA to the folder with mq2008, mslr178")
    quality(folder, options.peer_pairs)


if __name__ == "__main__":
    main()
