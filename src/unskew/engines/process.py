"""A worker in a process of its own: XGBoost ends the process of a worker that loses the others.

Every engine runs its workers this way, so that an executor of Spark or a worker of Dask never dies with
them, and so that a worker that hangs can be ended.
"""

from __future__ import annotations

import json
import os
import pickle
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from unskew.engines.job import Job, Outcome
from unskew.errors import DataError, EngineError, StoreError, UnskewError, UsageError
from unskew.store import NO_ROOM

_KINDS = {kind.__name__: kind for kind in (DataError, EngineError, StoreError, UsageError)}
_POLL = 0.05


class WorkerProcess:
    """A worker that runs, its outcome or its error in a folder."""

    def __init__(
        self, folder: Path, job: Job, worker: int, n_workers: int, tracker: Mapping[str, Any]
    ) -> None:
        self.folder, self.worker, self.n_workers = folder, worker, n_workers
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        content = {"job": job, "worker": worker, "n_workers": n_workers, "tracker": dict(tracker)}
        (folder / "job.pickle").write_bytes(pickle.dumps(content))
        paths = [path for path in sys.path if path]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        with (folder / "log.txt").open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-m", "unskew.engines.process", str(folder)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment,
                start_new_session=True,
            )  # fmt: skip

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether the process has ended, well or not."""
        return self._process.poll() is not None

    @property
    def failed(self) -> bool:
        """Whether it ended without an outcome."""
        return self.ended and not (self.folder / "outcome.pickle").is_file()

    def error(self) -> UnskewError:
        """Why it failed."""
        told = self.folder / "error.json"
        if told.is_file():
            content = json.loads(told.read_text(encoding="utf-8"))
            kind = _KINDS.get(content["kind"])
            if kind is not None:
                return kind(content["message"])
            return EngineError(
                f"worker {self.worker + 1} of {self.n_workers} failed: {content['message']}"
            )
        code = self._process.poll()
        how = f"ended with code {code}"
        if code is not None and code < 0:
            how = f"was ended by {signal.Signals(-code).name}"
        last = (self.folder / "log.txt").read_text(encoding="utf-8", errors="replace").strip()
        shown = f" ({last.splitlines()[-1][:300]})" if last else ""
        return EngineError(f"worker {self.worker + 1} of {self.n_workers} {how}{shown}")

    def outcome(self) -> Outcome:
        """What it gave; the error if it failed."""
        if self.failed:
            raise self.error()
        found: Outcome = pickle.loads((self.folder / "outcome.pickle").read_bytes())  # noqa: S301
        return found

    def kill(self) -> None:
        """End the process, if it runs still."""
        if not self.ended:
            self._process.kill()
            self._process.wait()


def run_worker(
    job: Job,
    worker: int,
    n_workers: int,
    tracker: Mapping[str, Any],
    *,
    cancelled: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Run one worker to its end, in a process of its own and a folder that is removed."""
    with TemporaryDirectory(prefix="unskew-worker-") as folder:
        process = WorkerProcess(Path(folder), job, worker, n_workers, tracker)
        try:
            while not process.ended and not cancelled():
                time.sleep(_POLL)
            return process.outcome()
        finally:
            process.kill()


def _main(folder: Path) -> int:
    from unskew.engines.worker import work

    # Ctrl-C reaches the whole terminal: the program that launched us decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    given = pickle.loads((folder / "job.pickle").read_bytes())  # noqa: S301
    try:
        outcome = work(given["job"], given["worker"], given["n_workers"], given["tracker"])
    except Exception as error:
        content = {"kind": _kind(error), "message": _reason(error)}
        (folder / "error.json").write_text(json.dumps(content), encoding="utf-8")
        import traceback

        traceback.print_exc()
        return 1
    partial = folder / "outcome.partial"
    partial.write_bytes(pickle.dumps(outcome))
    partial.rename(folder / "outcome.pickle")
    return 0


def _kind(error: Exception) -> str:
    """The name of the error, or of the first of ours that it is derived from."""
    names = [kind.__name__ for kind in type(error).__mro__]
    return next((name for name in names if name in _KINDS), names[0])


def _reason(error: Exception) -> str:
    """An error in one line; XGBoost tells the reason last, and then where in its source."""
    if isinstance(error, OSError) and error.errno in NO_ROOM:
        return (
            f"its disk is full ({error}). Remedy: make room, or give other folders for temporary files "
            "(TMPDIR), checkpoints and external memory"
        )
    text = str(error).partition("Stack trace:")[0].strip()
    steps = re.findall(r"^- \[[^\]]*\]: (.*)$", text, re.MULTILINE)
    if steps:
        return f"it lost the other workers ({steps[-1].strip()})"
    return text.splitlines()[-1] if text else repr(error)


if __name__ == "__main__":
    sys.exit(_main(Path(sys.argv[1])))
