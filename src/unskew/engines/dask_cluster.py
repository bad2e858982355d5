"""Dask: one worker on each worker of a Dask cluster."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar
from urllib.parse import urlsplit

from unskew.engines.engine import Engine, own_address
from unskew.engines.job import Job, Outcome
from unskew.engines.process import run_worker
from unskew.engines.reporting import RoundListener
from unskew.errors import EngineError, MissingDependencyError, UnskewError, UsageError

_POLL = 0.2


@dataclass(kw_only=True)
class Dask(Engine):
    """One worker on each worker of a Dask cluster, or on ``n_workers`` of them.

    Parameters
    ----------
    client
        A `distributed.Client`, or the address of a scheduler (``"tcp://…"``). Without one, a cluster
        of ``n_workers`` processes (by default 2) is started on this machine, and ended afterwards.
    n_workers, timeout, checkpoints, checkpoint_every, restarts, external_memory
        As for every `Engine`. The parts and the checkpoints are URIs, or folders that the workers
        see under the same path, as the folder of the external memory is.

    Examples
    --------
    >>> import unskew
    >>> unskew.engines.Dask(n_workers=2, restarts=1).n_workers
    2

    """

    name: ClassVar[str] = "dask"

    client: Any = None
    _host: str = field(default="127.0.0.1", init=False, repr=False)

    @property
    def host(self) -> str:
        """The address under which workers reach this program."""
        return self._host

    def run(self, job: Job, **options: Any) -> Outcome:
        """Train on the cluster, or on one of its own for as long as that takes."""
        with self._connected() as client:
            given, self.client = self.client, client
            self._host = own_address(urlsplit(client.scheduler.address).hostname or "127.0.0.1")
            try:
                return super().run(job, **options)
            finally:
                self.client = given

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        try:
            from distributed import Client, LocalCluster
        except ModuleNotFoundError as error:
            raise MissingDependencyError("Dask", "dask", 'engine="dask"') from error
        if isinstance(self.client, Client):
            yield self.client
        elif isinstance(self.client, str):
            try:
                client = Client(self.client, timeout=min(self.timeout, 30))
            except (OSError, TimeoutError, ValueError) as error:
                raise EngineError(
                    f"no Dask scheduler answers at {self.client} ({error}): check the address"
                ) from error
            with client:
                yield client
        elif self.client is None:
            with (
                _own_cluster(LocalCluster, self.n_workers or 2) as cluster,
                Client(cluster) as client,
            ):
                yield client
        else:
            raise UsageError(
                f"client must be a distributed.Client or an address, got {type(self.client).__name__}"
            )

    def _launch(self, job: Job, listener: RoundListener) -> Outcome:
        client = self.client
        addresses = self._addresses(client)
        n = len(addresses)
        with self._tracker(n) as tracker:
            futures = [
                client.submit(
                    run_worker, self._with_threads(job, int(cores)), k, n, tracker,
                    workers=[address], allow_other_workers=False, pure=False, retries=0,
                )
                for k, (address, cores) in enumerate(addresses.items())
            ]  # fmt: skip
            try:
                return self._wait(client, futures, list(addresses))
            finally:
                client.cancel(futures, force=True)

    def _addresses(self, client: Any) -> dict[str, int]:
        """The workers of the cluster that take part, and the cores of each."""
        found = dict(sorted(client.ncores().items()))
        wanted = self.n_workers or len(found)
        deadline = time.monotonic() + min(self.timeout, 30)
        while len(found) < max(1, wanted) and time.monotonic() < deadline:
            time.sleep(_POLL)  # a cluster that has just been started
            found = dict(sorted(client.ncores().items()))
            wanted = self.n_workers or len(found)
        if len(found) < max(1, wanted):
            raise EngineError(
                f"the Dask cluster has {len(found)} workers, and n_workers asks for {max(1, wanted)}"
            )
        return dict(list(found.items())[:wanted])

    def _wait(self, client: Any, futures: list[Any], addresses: list[str]) -> Outcome:
        while True:
            for k, future in enumerate(futures):
                if future.status in {"error", "cancelled", "lost"}:
                    time.sleep(_POLL)
                    raise _cause(futures, k)
            if all(future.status == "finished" for future in futures):
                outcome: Outcome = futures[0].result()
                return outcome
            gone = sorted(set(addresses) - set(client.ncores()))
            if gone:
                raise EngineError(f"the Dask worker {gone[0]} is gone")
            time.sleep(_POLL)


def _own_cluster(kind: Any, n_workers: int) -> Any:
    """A cluster of processes on this machine."""
    try:
        # Without a dashboard its port is taken all the same: any that is free.
        return kind(
            n_workers=n_workers, threads_per_worker=1, dashboard_address=None, silence_logs=50,
            scheduler_kwargs={"dashboard_address": ":0"},
        )  # fmt: skip
    except RuntimeError as error:
        raise EngineError(
            f"Dask could not start {n_workers} workers on this machine ({error}). Each of them "
            "imports the script that is running: put what the script does under "
            "\"if __name__ == '__main__':\", or give the address of a cluster"
        ) from error


def _cause(futures: list[Any], k: int) -> Exception:
    """The error that says most: one of ours that names no lost worker, else the first."""
    found = [future.exception() for future in futures if future.status == "error"]
    ours = [error for error in found if isinstance(error, UnskewError)]
    for group in (
        [error for error in ours if not str(error).startswith("worker ")],
        [error for error in ours if "was ended by" in str(error)],
        ours,
    ):
        if group:
            return group[0]
    if not found:
        return EngineError(f"the task of worker {k + 1} was lost with its Dask worker")
    return EngineError(f"a Dask worker failed: {found[0]!r}")
