"""How far debiasing may be trusted on a real log: learned from its lists, judged by shuffled ones.

    python benchmarks/random_lists.py [searches.csv.gz] [--seeds 4]

A third of Expedia's hotel searches were shown in random order, so that clicks on them rank hotels
without favour to any position. `unskew.fit` learns from the other two thirds; its debiased and its
undebiased half are added up in several shares, among which it has to choose without those clicks.
LambdaMART on raw clicks is trained beside it.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

import unskew
from _kept import Kept
from unskew.array_types import FloatArray
from unskew.choose.blend import tree_weights
from unskew.log.counts import count_statistics, sums

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
LOG = Path(os.environ.get("UNSKEW_DATA", BESIDE)) / "expedia" / "searches.csv.gz"
# What is known only after the click, what no feature is, and what says which lists were shuffled.
LEFT_OUT = "booking_bool, gross_bookings_usd, date_time, source, random_bool"
PATIENCE = 50
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


def searches(log: Path, *, shuffled: bool) -> unskew.Impressions:
    """The searches with lists of one kind."""
    rows = duckdb.sql(
        f"SELECT * EXCLUDE ({LEFT_OUT}) FROM read_csv('{log}') WHERE random_bool = {int(shuffled)}"
    )
    return unskew.read_log(
        rows, session="srch_id", query="srch_id", doc="prop_id", click="click_bool", progress=False
    )


def clicked(data: unskew.Impressions) -> unskew.LabelledData:
    """The clicks of each document as its relevance."""
    clicks = sums(data.pages.document, count_statistics(data).clicks, len(data.documents))
    return unskew.LabelledData.from_rows(data.features, clicks, data.documents.query)


def main() -> None:
    """Print the NDCG of each share, and the share that was chosen."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("log", type=Path, nargs="?", default=LOG)
    parser.add_argument("--seeds", type=int, default=4)
    given = parser.parse_args()
    natural, shuffled = (searches(given.log, shuffled=kind) for kind in (False, True))
    judged = clicked(shuffled)

    def quality(score: Any) -> FloatArray:
        return unskew.evaluate(score, judged, metrics=["ndcg@10"]).per_query["ndcg@10"]

    print("trained on", natural, "judged by", shuffled)
    print("seed  share of the debiased half" + "".join(f"{share:>8.0%}" for share in SHARES))
    gains = []
    for seed in range(given.seeds):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ranker = Kept(random_state=seed, n_jobs=1, verbose=0).fit(natural)
            raw = unskew.UnbiasedLambdaMART(
                debias=None, early_stopping_rounds=PATIENCE, random_state=seed, n_jobs=1, verbose=0
            ).fit(natural)
        values = []
        for weights in ranker.blends(SHARES):
            models = tree_weights(ranker.search.found, weights)
            score = sum(w * one.ranker.predict(judged.features) for one, w in models)
            values.append(np.nanmean(quality(score)))
        chosen, rival = (quality(one.predict(judged.features)) for one in (ranker, raw))
        gains.append(chosen - rival)
        print(
            f"{seed:>4}  NDCG@10 of clicks          " + "".join(f"{one:>8.4f}" for one in values),
            f"; chosen {ranker.choice_.trust:.0%}: {np.nanmean(chosen):.4f}, "
            f"LambdaMART on raw clicks {np.nanmean(rival):.4f}",
        )
    gain = np.mean(gains, axis=0)
    gain = gain[~np.isnan(gain)]
    print(
        f"chosen over raw clicks, the mean of the seeds by search: {gain.mean():+.4f} "
        f"± {gain.std(ddof=1) / np.sqrt(len(gain)):.4f} (standard error)"
    )
    print(next(one for one in ranker.choice_.reasons if "logged order" in one))


if __name__ == "__main__":
    main()
