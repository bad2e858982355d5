"""Engine: what every launcher of workers shares: restarts, checkpoints, and the fitted ranker."""

from __future__ import annotations

import socket
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from unskew.engines.checkpoint import read_checkpoint
from unskew.engines.fitting import Fitting
from unskew.engines.job import Job, Outcome
from unskew.engines.reporting import RoundListener
from unskew.errors import DataError, EngineError, MissingDependencyError, UsageError, warn
from unskew.places import PlaceLike, local_path, place_of
from unskew.progress import progress_bar
from unskew.rankers.training import Callback, round_note

# Seconds in which all workers must have started, whatever the timeout between them.
_START = 120


@dataclass(kw_only=True)
class Engine(ABC):
    """Trains a ranker over parts with several workers.

    Parameters
    ----------
    n_workers
        How many workers there are. The model does not depend on it.
    timeout
        How many seconds a worker waits for another before the training fails.
    checkpoints
        A folder or URI in which the training is kept every ``checkpoint_every`` rounds. A training
        with the same parts and settings that finds it goes on from there.
    checkpoint_every
        So many rounds lie between two checkpoints.
    restarts
        How often a training that lost a worker is begun again, from the last checkpoint if there is
        one, before it is an error.
    external_memory
        A folder in which each worker keeps its binned features, instead of in memory.

    """

    name: ClassVar[str]

    n_workers: int | None = None
    timeout: int = 300
    checkpoints: PlaceLike | None = None
    checkpoint_every: int = 50
    restarts: int = 0
    external_memory: str | Path | None = None

    def fit(
        self,
        ranker: Any,
        parts: Any,
        *,
        validation: Any = None,
        callbacks: Sequence[Callback] = (),
        init_model: Any = None,
    ) -> Any:
        """Fit the ranker to parts; see `Ranker.fit`."""
        self._check()
        fitting = Fitting.of(ranker, parts, validation=validation, init_model=init_model)
        job = replace(
            fitting.job(),
            checkpoints=None if self.checkpoints is None else place_of(self.checkpoints),
            checkpoint_every=self.checkpoint_every,
            external_memory=None
            if self.external_memory is None
            else local_path(self.external_memory, "external_memory"),
        )
        outcome = self.run(job, callbacks=callbacks, progress=ranker.verbose > 0)
        for remark in outcome.remarks:
            warn(remark)
        return fitting.keep(outcome)

    def _check(self) -> None:
        for name, least in {
            "n_workers": 1,
            "timeout": 1,
            "checkpoint_every": 1,
            "restarts": 0,
        }.items():
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < least):
                raise UsageError(f"{name} must be a whole number, {least} or higher, got {value!r}")
        try:
            import xgboost  # noqa: F401
        except ModuleNotFoundError as error:
            raise MissingDependencyError("XGBoost", "xgboost", "Training with an engine") from error

    def run(
        self, job: Job, *, callbacks: Sequence[Callback] = (), progress: bool = False
    ) -> Outcome:
        """Train, beginning again after the loss of a worker as often as that is allowed."""
        for attempt in range(self.restarts + 1):
            if job.checkpoints is not None:
                job = replace(job, progress=read_checkpoint(job.checkpoints, job.key))
            try:
                return self._attempt(job, callbacks, progress)
            except EngineError as error:
                if attempt == self.restarts:
                    raise EngineError(f"{error}. {self._how_to_go_on(job)}") from error
                warn(
                    f"{error}; the training is begun again ({attempt + 1} of {self.restarts})",
                )
        raise AssertionError("the last attempt returns or raises")

    def _how_to_go_on(self, job: Job) -> str:
        if job.checkpoints is None:
            return (
                "The model was not kept: with checkpoints='folder' a training can go on, and with "
                "restarts=1 it does so by itself"
            )
        return f"Run the same again to go on from the last checkpoint in {job.checkpoints}"

    def _attempt(self, job: Job, callbacks: Sequence[Callback], progress: bool) -> Outcome:
        done = 0 if job.progress is None else len(job.progress.t_plus)
        if done >= job.n_rounds:
            job = replace(job, n_rounds=done)
        with (
            progress_bar("training", job.n_rounds - done, show=progress) as advance,
            self._listening(callbacks, advance) as listener,
        ):
            try:
                outcome = self._launch(replace(job, report=listener.address), listener)
            except (DataError, UsageError, EngineError):
                if listener.error is not None:
                    raise listener.error from None
                raise
        if listener.error is not None:
            raise listener.error
        return outcome

    @contextmanager
    def _listening(self, callbacks: Sequence[Callback], advance: Any) -> Iterator[RoundListener]:
        listener = RoundListener(self.host, callbacks, advance, lambda seen: round_note(seen, ""))
        try:
            yield listener
        finally:
            listener.close()

    @property
    def host(self) -> str:
        """The address under which workers reach this program."""
        return "127.0.0.1"

    def _with_threads(self, job: Job, threads: int) -> Job:
        """The job with so many threads for a worker, unless ``n_jobs`` of the ranker says."""
        if job.parameters.get("nthread"):
            return job
        return replace(job, parameters={**job.parameters, "nthread": max(1, threads)})

    @abstractmethod
    def _launch(self, job: Job, listener: RoundListener) -> Outcome:
        """Run all workers; an `EngineError` if one is lost."""

    @contextmanager
    def _tracker(self, n_workers: int) -> Iterator[Mapping[str, Any]]:
        """The arguments by which workers find each other."""
        if n_workers == 1:
            yield {}
            return
        import xgboost
        from xgboost.tracker import RabitTracker

        tracker = RabitTracker(
            n_workers, self.host, sortby="task", timeout=max(self.timeout, _START)
        )
        tracker.start()
        try:
            yield {**tracker.worker_args(), "dmlc_timeout": self.timeout, "dmlc_retry": 3}
        finally:
            # A tracker whose workers are gone complains about that when it ends.
            with suppress(xgboost.core.XGBoostError):
                tracker.free()


def own_address(towards: str) -> str:
    """The address of this machine as another one sees it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((towards, 9))
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"
