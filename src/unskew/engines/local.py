"""Local: workers as processes of this machine."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

from unskew.engines.engine import Engine
from unskew.engines.job import Job, Outcome
from unskew.engines.process import WorkerProcess
from unskew.engines.reporting import RoundListener

_POLL = 0.02


@dataclass(kw_only=True)
class Local(Engine):
    """Workers as processes of this machine, by default as many as it has cores.

    A worker that dies is noticed at once: the others are ended, and the training fails or begins
    again. The parameters are those of `Engine`.

    Examples
    --------
    >>> import unskew
    >>> unskew.engines.Local(n_workers=2, checkpoints="checkpoints").n_workers
    2

    """

    name: ClassVar[str] = "local"

    def _launch(self, job: Job, listener: RoundListener) -> Outcome:
        cores = os.cpu_count() or 1
        n = self.n_workers or cores
        job = self._with_threads(job, cores // n)
        with TemporaryDirectory(prefix="unskew-local-") as folder, self._tracker(n) as tracker:
            workers = [
                WorkerProcess(Path(folder) / f"worker-{k}", job, k, n, tracker) for k in range(n)
            ]
            self.pids = [worker.pid for worker in workers]
            try:
                return self._wait(workers, listener)
            finally:
                for worker in workers:
                    worker.kill()

    def _wait(self, workers: list[WorkerProcess], listener: RoundListener) -> Outcome:
        while True:
            try:
                failed = [worker for worker in workers if worker.failed]
                if failed:
                    raise _first_cause(failed)
                if all(worker.ended for worker in workers):
                    return workers[0].outcome()
                time.sleep(_POLL)
            except KeyboardInterrupt:
                # The workers finish the round and give back the rounds that are complete.
                if listener.stop or not listener.last_round:
                    raise
                listener.stop = True


def _first_cause(failed: list[WorkerProcess]) -> Exception:
    """The error that says most: one of ours before a process that was ended, that before the rest."""
    time.sleep(_POLL)
    errors = [worker.error() for worker in failed]
    told = [error for error in errors if not str(error).startswith("worker ")]
    ended = [error for error in errors if "was ended by" in str(error)]
    return (told or ended or errors)[0]
