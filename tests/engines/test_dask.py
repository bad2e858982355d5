"""A real Dask cluster on this machine: the model of one worker, and clear errors."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from clicked_parts import SETTINGS, digest, trained

import unskew
from unskew.engines import Dask
from unskew.errors import EngineError, UsageError

pytest.importorskip("distributed", reason="the tests of Dask need the extra dask")
# Closing a cluster leaves sockets to the garbage collector.
pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"
)


def test_a_cluster_gives_the_model_of_one_worker(parts: Path) -> None:
    """Two and four workers give the trees and biases of one, bit for bit; a killed one is an error."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=4,
            threads_per_worker=1,
            dashboard_address=None,
            silence_logs=50,
            scheduler_kwargs={"dashboard_address": ":0"},
        ) as cluster,
        Client(cluster) as client,
    ):
        ranker = unskew.UnbiasedLambdaMART(**SETTINGS)
        alone = digest(trained(unskew.UnbiasedLambdaMART(**SETTINGS), parts))
        for n in (2, 4):
            ranker.fit(parts, engine=Dask(client=client, n_workers=n, timeout=100))
            assert digest(ranker) == alone
        pids = list(client.run(os.getpid).values())

        def kill(now: Any) -> None:
            if now.number == 3:
                os.kill(pids[1], signal.SIGKILL)

        engine = Dask(client=cluster.scheduler_address, timeout=20)
        with pytest.raises(EngineError, match=r"is gone|was lost|it lost the other|was ended by"):
            unskew.UnbiasedLambdaMART(**SETTINGS).fit(parts, engine=engine, callbacks=[kill])
        with pytest.raises(EngineError, match="workers, and n_workers asks for 9"):
            ranker.fit(parts, engine=Dask(client=client, n_workers=9, timeout=1))


def test_a_cluster_that_is_not_there(parts: Path) -> None:
    """An address without a scheduler, and what is no client, are errors that name them."""
    fit = unskew.UnbiasedLambdaMART(**SETTINGS).fit
    with pytest.raises(EngineError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        fit(parts, engine=Dask(client="tcp://127.0.0.1:9", timeout=1))
    with pytest.raises(
        UsageError, match=r"client must be a distributed\.Client or an address, got int"
    ):
        fit(parts, engine=Dask(client=3))


def test_workers_that_do_not_start(parts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script that Dask's workers cannot import is an error with the line that it needs."""
    import distributed

    def fail(**options: Any) -> None:
        raise RuntimeError("Nanny failed to start.")

    monkeypatch.setattr(distributed, "LocalCluster", fail)
    with pytest.raises(
        EngineError, match=r"could not start 2 workers .*if __name__ == '__main__':"
    ):
        unskew.UnbiasedLambdaMART(**SETTINGS).fit(parts, engine="dask")
