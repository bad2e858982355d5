"""How far debiasing may be trusted on a real log: learned from its lists, judged by shuffled ones.

    python benchmarks/random_lists.py [searches.csv.gz] [--seeds 4]

A third of Expedia's hotel searches were shown in random order, so that clicks on them rank hotels
without favour to any position. `unskew.fit` learns from the other two thirds; its debiased and its
undebiased half are added up in several shares, among which it has to choose without those clicks.
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
from unskew.choose.blend import blend_weights, tree_weights
from unskew.choose.ranker import AutoRanker
from unskew.log.counts import count_statistics, sums

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
LOG = Path(os.environ.get("UNSKEW_DATA", BESIDE)) / "expedia" / "searches.csv.gz"
# What is known only after the click, what no feature is, and what says which lists were shuffled.
LEFT_OUT = "booking_bool, gross_bookings_usd, date_time, source, random_bool"
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


class Kept(AutoRanker):
    """The ranker with its search, to look at what it did not choose."""

    search: Any

    def _watched(self, search: Any) -> None:
        self.search = search


def main() -> None:
    """Print the NDCG of each share, and the share that was chosen."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("log", type=Path, nargs="?", default=LOG)
    parser.add_argument("--seeds", type=int, default=4)
    given = parser.parse_args()
    natural, shuffled = (searches(given.log, shuffled=kind) for kind in (False, True))
    judged = clicked(shuffled)

    def quality(score: Any) -> tuple[float, float]:
        found = unskew.evaluate(score, judged, metrics=["ndcg@10"]).per_query["ndcg@10"]
        found = found[~np.isnan(found)]
        return float(found.mean()), float(found.std() / np.sqrt(len(found)))

    print("trained on", natural, "judged by", shuffled)
    print("seed  share of the debiased half" + "".join(f"{share:>8.0%}" for share in SHARES))
    for seed in range(given.seeds):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ranker = Kept(random_state=seed, n_jobs=1, verbose=0).fit(natural)
        values = []
        for share in SHARES:
            models = tree_weights(
                ranker.search.found, blend_weights(share, finished=False, raw=True)
            )
            score = sum(w * one.ranker.predict(judged.features) for one, w in models)
            values.append(quality(score))
        chosen = quality(ranker.predict(judged.features))
        print(
            f"{seed:>4}  NDCG@10 of clicks          "
            + "".join(f"{one:>8.4f}" for one, _ in values),
            f" (± {values[0][1]:.4f}); chosen {ranker.choice_.trust:.0%}: {chosen[0]:.4f}",
        )
    print(next(one for one in ranker.choice_.reasons if "logged order" in one))


if __name__ == "__main__":
    main()
