"""Running runs: several processes, a bar with the time left, and every result on disk at once."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import astuple, replace
from importlib.util import find_spec
from itertools import chain, groupby
from multiprocessing import active_children, get_context, parent_process
from pathlib import Path

from unskew.errors import MissingDependencyError, UsageError
from unskew.paper.runs import TUNED, Result, Run, Study, read_results, save_results
from unskew.paper.training import perform
from unskew.paper.worlds import ESTIMATED
from unskew.progress import progress_bar
from unskew.threads import limit_threads

# Results wait in memory for at most so many seconds.
SAVE_EVERY = 5.0

# How long a run takes beside one of LambdaMART in the paper's settings, roughly: for the time left.
_COST = {"lambdamart": 1, "auto": 2, "dnn": 4, "ranksvm": 1, "xgboost": 10, "lightgbm": 6}
_TUNED_COST = 3

# What some rankers need beyond the base install: the module and its package.
_EXTRAS = {"dnn": ("torch", "PyTorch"), "xgboost": ("xgboost", "XGBoost")}


def missing_runs(study: Study, runs: Iterable[Run], folder: Path) -> list[Run]:
    """The runs without a result in the folder, each once.

    A folder holds one study: rows of another would be drawn into the same tables.
    """
    results = read_results(folder)
    other = next((r.study for r in results if r.study != study.name), None)
    if other is not None:
        raise UsageError(
            f"{folder} holds results of another study, {other}, and this one is {study.name}: give "
            "it a folder of its own with --out"
        )
    done = {result.key for result in results}
    wanted = {study.key(run): run for run in runs}
    return [run for key, run in wanted.items() if key not in done]


def run_all(
    study: Study,
    runs: Sequence[Run],
    folder: Path,
    *,
    jobs: int | None = None,
    show: bool = False,
    say: Callable[[str], None] = lambda message: None,
) -> None:
    """Perform the runs that have no result in the folder yet.

    Whatever ends it, results that were complete are in the folder, and the next call goes on there.
    """
    todo = missing_runs(study, runs, folder)
    if not todo:
        return
    _check_extras(todo)
    jobs = (os.cpu_count() or 1) if jobs is None else jobs
    if jobs < 1:
        raise UsageError(f"jobs must be 1 or more, got {jobs}")
    jobs = min(jobs, len(todo))
    study = replace(study, threads=study.threads or max(1, (os.cpu_count() or 1) // jobs))
    total = sum(map(_cost, todo))
    waiting: list[Result] = []
    saved = time.monotonic()
    with progress_bar("runs", total, show=show) as advance:
        pace = _Pace(len(todo), total, say)
        try:
            for run, result in _results(study, todo, jobs):
                waiting.append(result)
                advance(_cost(run), f"{run.ranker}, {run.method}, seed {run.seed}")
                pace.look(_cost(run))
                if time.monotonic() - saved > SAVE_EVERY:
                    save_results(folder, waiting)
                    waiting, saved = [], time.monotonic()
        finally:
            if waiting:
                save_results(folder, waiting)


def _check_extras(runs: Iterable[Run]) -> None:
    """Report a missing optional dependency before the first training, not after an hour of it."""
    needed = {run.ranker for run in runs}
    for ranker, (module, package) in _EXTRAS.items():
        if ranker in needed and find_spec(module) is None:
            raise MissingDependencyError(package, "paper", f"the ranker {ranker}")
    if find_spec("matplotlib") is None:
        raise MissingDependencyError("Matplotlib", "paper", "drawing the figures")


class _Pace:
    """Says every minute how far it got: for logs, where no bar is drawn."""

    def __init__(self, n_runs: int, cost: int, say: Callable[[str], None]) -> None:
        self._n_runs, self._cost, self._say = n_runs, cost, say
        self._done = self._spent = 0
        self._started = self._said = time.monotonic()

    def look(self, cost: int) -> None:
        """One more run is done."""
        self._done += 1
        self._spent += cost
        now = time.monotonic()
        if now - self._said < 60.0:
            return
        self._said = now
        left = (now - self._started) * (self._cost - self._spent) / self._spent
        self._say(f"{self._done:,} of {self._n_runs:,} runs, about {left / 60:.0f} min left")


def _cost(run: Run) -> int:
    return _COST[run.ranker] * (_TUNED_COST if run.protocol == TUNED else 1)


def _results(study: Study, runs: Sequence[Run], jobs: int) -> Iterator[tuple[Run, Result]]:
    if jobs == 1:
        for run in chain.from_iterable(_tasks(runs)):
            yield run, perform(study, run)
        return
    # Forked children of a process that has threads may hang: they are started afresh.
    others = set(active_children())
    pool = ProcessPoolExecutor(
        jobs,
        mp_context=get_context("spawn"),
        initializer=_start_worker,
        initargs=(study.threads or 1,),
    )
    tasks = {pool.submit(_perform_all, study, task): task for task in _tasks(runs)}
    pending = set(tasks)
    try:
        while pending:
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            for future in done:
                yield from zip(tasks[future], future.result(), strict=True)
    finally:
        if pending:  # interrupted: what is half done is not waited for
            for process in set(active_children()) - others:
                process.terminate()
        pool.shutdown(cancel_futures=True)


def _tasks(runs: Sequence[Run]) -> list[list[Run]]:
    """World by world; the runs for which a bias is estimated first stay together and share it."""

    def place(run: Run) -> tuple[object, ...]:
        alone = () if run.method in ESTIMATED else (run.ranker, run.protocol, str(run.p))
        return (run.seed, run.fold, *astuple(run.clicks), run.method, *alone)

    return [list(group) for _, group in groupby(sorted(runs, key=place), key=place)]


def _start_worker(number: int) -> None:
    from threadpoolctl import threadpool_limits

    threading.Thread(target=_end_with_parent, daemon=True).start()
    # Ctrl-C must end a worker, not its training: a ranker would keep what it has so far.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    limit_threads(number)
    threadpool_limits(number)


def _end_with_parent() -> None:
    """End this process when the one that started it ends, however that happens."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _perform_all(study: Study, runs: list[Run]) -> list[Result]:
    return [perform(study, run) for run in runs]
