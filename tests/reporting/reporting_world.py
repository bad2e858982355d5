"""A small world: a log whose lists change, models that learned from another, and labels."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pyarrow as pa

import unskew
from unskew.datasets import make_search_dataset
from unskew.datasets.tables import features_table
from unskew.simulate import click_model, sample, score_policy

HOSTILE = "</script><script>window.taken = 1</script><img src=x onerror='window.taken = 1'>"


def two_lists(data, sessions, seed):
    """A log of two rankers, on two devices, so that documents move and there are contexts."""
    parts = []
    for number, device in enumerate(("desktop", "phone")):
        noise = np.random.default_rng(number).normal(scale=1.5, size=len(data))
        policy = score_policy(data, data.relevance + noise)
        log = sample(
            data, model=click_model("pbm", theta=1.0), policy=policy, sessions=sessions,
            seed=seed + number,
        )  # fmt: skip
        n = len(log)
        session = pa.array([f"{number}-{one}" for one in log["session"].to_pylist()])
        log = log.set_column(log.schema.get_field_index("session"), "session", session)
        parts.append(log.append_column("context", pa.array([device] * n)))
    return pa.concat_tables(parts)


def small_world():
    """The data, the logs and two models."""
    data = make_search_dataset(n_queries=90, n_features=16, seed=4)
    train, test = data.take_queries(np.arange(45)), data.take_queries(np.arange(45, 90))
    seen = unskew.read_log(two_lists(train, 1_500, 1), features=features_table(train))
    table = two_lists(test, 1_500, 7)
    settings = {"n_estimators": 12, "n_jobs": 1, "verbose": 0, "random_state": 1}
    models = {
        "raw": unskew.UnbiasedLambdaMART(debias=None, **settings).fit(seen),
        "debiased": unskew.UnbiasedLambdaMART(p=0.5, **settings).fit(seen),
    }
    return SimpleNamespace(
        test=test,
        table=table,
        features=features_table(test),
        log=unskew.read_log(table, features=features_table(test)),
        models=models,
    )
