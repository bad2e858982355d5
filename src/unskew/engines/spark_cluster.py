"""Spark: workers as the tasks of one barrier stage."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from unskew.engines.engine import Engine, own_address
from unskew.engines.job import Job, Outcome
from unskew.engines.process import run_worker
from unskew.engines.reporting import RoundListener
from unskew.engines.spark_session import spark_reason, spark_session
from unskew.errors import EngineError, UnskewError, UsageError


@dataclass(kw_only=True)
class Spark(Engine):
    """Workers as the tasks of one barrier stage, which Spark starts all together.

    Parameters
    ----------
    session
        A `SparkSession`. Without one, the active session is taken, or one is started.
    master
        Where such a session runs, as ``spark.master`` has it; by default on this machine.
    n_workers
        By default as many as Spark can run at once.
    timeout, checkpoints, checkpoint_every, restarts, external_memory
        As for every `Engine`. The parts and the checkpoints are URIs, or folders that the executors
        see under the same path, as the folder of the external memory is.

    Examples
    --------
    >>> import unskew
    >>> unskew.engines.Spark(n_workers=4, master="local[4]").n_workers
    4

    """

    name: ClassVar[str] = "spark"

    session: Any = None
    master: str | None = None
    _host: str = field(default="127.0.0.1", init=False, repr=False)

    @property
    def host(self) -> str:
        """The address under which workers reach this program."""
        return self._host

    def run(self, job: Job, **options: Any) -> Outcome:
        """Train on the cluster."""
        given, self.session = self.session, spark_session(self.session, self.master)
        self._host = _driver_host(self.session)
        try:
            return super().run(job, **options)
        finally:
            self.session = given

    def _launch(self, job: Job, listener: RoundListener) -> Outcome:
        slots = _slots(self.session)
        n = self.n_workers or slots or 1
        if slots is not None and n > slots:
            raise UsageError(
                f"n_workers is {n}, but Spark can run {slots} tasks at once: a barrier stage needs "
                "one slot for each worker"
            )
        with self._tracker(n) as tracker:
            frame = self.session.range(0, n, 1, n)
            task = _task(self._with_threads(job, _cores_per_task(self.session)), n, dict(tracker))
            try:
                rows = frame.mapInArrow(task, "worker int, outcome binary", barrier=True).collect()
            except Exception as error:
                raise EngineError(f"Spark lost a worker ({spark_reason(error)})") from error
        found = [pickle.loads(row["outcome"]) for row in rows if row["outcome"]]  # noqa: S301
        errors = [one for one in found if isinstance(one, Exception)]
        if errors:
            raise _cause(errors)
        return next(one for one in found if isinstance(one, Outcome))


def _task(job: Job, n: int, tracker: dict[str, Any]) -> Any:
    """What every task of the stage does; an error is a result, so that Spark does not repeat it."""

    def train(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa
        from pyspark import BarrierTaskContext

        worker = BarrierTaskContext.get().partitionId()
        for _ in batches:
            pass
        outcome: Any
        try:
            outcome = run_worker(job, worker, n, tracker)
        except UnskewError as error:
            outcome = error
        told = isinstance(outcome, Exception) or worker == 0
        yield pa.RecordBatch.from_pydict(
            {
                "worker": pa.array([worker], pa.int32()),
                "outcome": pa.array([pickle.dumps(outcome) if told else b""], pa.binary()),
            }
        )

    return train


def _cause(errors: list[Exception]) -> Exception:
    """The error that says most: one that names no lost worker, then one that was ended."""
    told = [error for error in errors if not str(error).startswith("worker ")]
    ended = [error for error in errors if "was ended by" in str(error)]
    return (told or ended or errors)[0]


def _slots(session: Any) -> int | None:
    """How many tasks Spark can run at once, where it says so."""
    try:
        return int(session.sparkContext.defaultParallelism)
    except Exception:
        return None


def _cores_per_task(session: Any) -> int:
    return int(session.conf.get("spark.task.cpus", "1"))


def _driver_host(session: Any) -> str:
    try:
        host = session.conf.get("spark.driver.host", "127.0.0.1")
        master = session.conf.get("spark.master", "local")
    except Exception:
        return own_address("8.8.8.8")
    return "127.0.0.1" if str(master).startswith("local") else str(host)
