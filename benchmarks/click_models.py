"""Fitting click models against CLAX: held-out quality, and the time that training takes.

    python benchmarks/click_models.py --clax PYTHON             Yandex's log and a simulated one
    python benchmarks/click_models.py --large 20                what 20 million sessions take

PYTHON is an interpreter that has `clax-models`, best of an environment of its own:

    python -m venv clax && clax/bin/pip install clax-models "jax<0.7"

Both see the same sessions: eight tenths to train, one to stop CLAX by, one to measure. Ours fits on the
compressed log, CLAX on sessions that already lie in memory; reading counts for neither. CLAX takes the
settings of its authors' experiment (AdamW with a rate of 0.01, stopped when the validation loss no
longer falls; compiling is part of its time) and is cut off after ``--limit`` seconds a model; where that
happens the table says so. Seconds of processors are what to look at on a machine with other work.
Yandex's log is looked for in the folder ``UNSKEW_DATA``, then in ``../shared/data``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import unskew
from unskew.clicks import fit_click_model
from unskew.clicks.fitting.log_clicks import LogClicks
from unskew.clicks.fitting.measures import measure_log
from unskew.log.impressions import Impressions

FloatArray = npt.NDArray[np.float64]

MODELS = ("pbm", "ubm", "dbn", "dcm")
SHARES = {"train": 0.8, "validation": 0.1, "test": 0.1}
LENGTH = 10
REPEATS = 5

COLD = """
import json, sys, time
import numpy as np
import unskew
data, mass = unskew.load(sys.argv[1]), np.load(sys.argv[2])
from unskew.clicks import fit_click_model
start = time.perf_counter()
fit_click_model(data, sys.argv[3], mass=mass)
print(json.dumps(time.perf_counter() - start))
"""


class Result(NamedTuple):
    """What one library made of one model; ``processor`` are the seconds of all processors."""

    seconds: float
    processor: float
    log_likelihood: float
    conditional_perplexity: float
    note: str = ""


def yandex() -> Impressions | None:
    """Yandex's log, if it is there."""
    folder = Path(os.environ.get("UNSKEW_DATA", Path(__file__).parents[1].parent / "shared/data"))
    file = folder / "yandex" / "sessions.parquet"
    if not file.is_file():
        print(f"Yandex's log is not at {file}: name the folder by UNSKEW_DATA")
        return None
    return unskew.read_log(file)


def simulate(file: Path, n_sessions: int, n_queries: int) -> None:
    """User browsing clicks on pages of ten of a ranker that changes from time to time."""
    from unskew.clicks import UserBrowsingModel

    labels = unskew.datasets.make_search_dataset(n_queries=n_queries, n_features=16, seed=0)
    size = np.diff(labels.offsets)
    policy = unskew.simulate.drifting_policy(labels, labels.relevance, noise=1.0, length=LENGTH)
    traffic = np.where(size >= LENGTH, 1.0 / np.arange(1, len(size) + 1) ** 0.7, 0.0)
    unskew.simulate.sample_to_parquet(
        file, labels, model=UserBrowsingModel(), policy=policy, sessions=n_sessions, seed=0,
        traffic=traffic,
    )  # fmt: skip


def split(data: Impressions, seed: int = 0) -> dict[str, FloatArray]:
    """How many sessions of each pattern are for training, for validation and for the test."""
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(data.patterns.count, list(SHARES.values()))
    return dict(zip(SHARES, counts.T.astype(np.float64), strict=True))


def ours(data: Impressions, masses: dict[str, FloatArray], model: str) -> Result:
    """Fit and measure; the median time of several fits, after one that compiles."""
    times = []
    for _ in range(REPEATS + 1):
        start, processor = time.perf_counter(), time.process_time()
        fitted = fit_click_model(data, model, mass=masses["train"])
        times.append((time.perf_counter() - start, time.process_time() - processor))
    found = measure_log(fitted.likelihood.on(data, masses["test"]), fitted.relevance)
    note = f"{fitted.table.n_iterations} EM steps"
    seconds, processor = np.median(times[1:], axis=0).tolist()
    return Result(seconds, processor, found.log_likelihood, found.conditional_perplexity, note)


def cold(data: Impressions, mass: FloatArray, model: str) -> float:
    """Seconds of the first fit ever, with nothing compiled."""
    with tempfile.TemporaryDirectory() as folder:
        data.save(Path(folder) / "log")
        np.save(Path(folder) / "mass.npy", mass)
        command = [sys.executable, "-c", COLD, f"{folder}/log", f"{folder}/mass.npy", model]
        done = subprocess.run(
            command, check=True, capture_output=True, text=True,
            env={**os.environ, "NUMBA_CACHE_DIR": f"{folder}/compiled"},
        )  # fmt: skip
        return float(json.loads(done.stdout))


def write_sessions(file: Path, data: Impressions, masses: dict[str, FloatArray]) -> None:
    """The sessions one by one, as CLAX takes them."""
    rng = np.random.default_rng(1)
    content: dict[str, Any] = {"n_documents": data.n_documents}
    for name, mass in masses.items():
        rows = LogClicks(data, mass, by_version=False).rows()
        # CLAX keeps the number 0 for padding.
        document = rows.document.reshape(-1, LENGTH).astype(np.int32) + 1
        click = rows.clicked.reshape(-1, LENGTH).astype(np.float32)
        each = np.repeat(np.arange(len(document)), mass[mass > 0].astype(np.int64))
        order = rng.permutation(each)
        content[f"{name}_document"], content[f"{name}_click"] = document[order], click[order]
    np.savez(file, **content)


def clax(python: str, file: Path, model: str, limit: float) -> Result | str:
    """What CLAX made of the same sessions, or why it made nothing."""
    command = [python, str(Path(__file__).with_name("_clax.py")), str(file), model, str(limit)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no message"]
        return f"CLAX failed: {lines[-1]}"
    found = json.loads(done.stdout.strip().splitlines()[-1])
    note = f"cut off after {limit:g} s" if found["stopped"] else f"{found['epochs']} epochs"
    return Result(
        found["seconds"],
        found["processor"],
        found["log_likelihood"],
        found["conditional_perplexity"],
        note,
    )


def has_clax(python: str | None) -> bool:
    """Whether that interpreter can import CLAX; says what to do if not."""
    if python is None:
        print("CLAX is not measured: name an interpreter that has it with --clax (see --help)")
        return False
    try:
        subprocess.run([python, "-c", "import clax"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        print(f'CLAX is not installed for {python}: pip install clax-models "jax<0.7" there')
        return False
    return True


def compare(title: str, data: Impressions, options: argparse.Namespace) -> None:
    """The table of one log."""
    masses = split(data)
    print(f"\n{title}: {data}\n")
    print(
        "| model | | log-likelihood | conditional perplexity | seconds | of processors | cold | |"
    )
    print("|---|---|---:|---:|---:|---:|---:|---|")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "sessions.npz"
        if options.clax:
            write_sessions(file, data, masses)
        for model in options.models:
            mine = ours(data, masses, model)
            first = cold(data, masses["train"], model)
            print(_row(model, "Unskew", mine, f"{first:.1f}"), flush=True)
            if not options.clax:
                continue
            theirs = clax(options.clax, file, model, options.limit)
            if isinstance(theirs, str):
                print(f"| {model} | CLAX | {theirs} | | | | | |")
            else:
                ratio = (
                    f"{theirs.seconds / mine.seconds:.0f} times ours ("
                    f"{theirs.processor / mine.processor:.0f} by processor), {theirs.note}"
                )
                print(_row(model, "CLAX", theirs._replace(note=ratio), ""), flush=True)


def _row(model: str, library: str, found: Result, first: str) -> str:
    return (
        f"| {model} | {library} | {found.log_likelihood:.5f} | {found.conditional_perplexity:.5f} "
        f"| {found.seconds:.3f} | {found.processor:.3f} | {first} | {found.note} |"
    )


def large(millions: float, n_queries: int, models: list[str]) -> None:
    """What a large log takes, from the file to the fitted model."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "log.parquet"
        simulate(file, int(millions * 1e6), n_queries)
        start = time.perf_counter()
        data = unskew.read_log(file)
        seconds = time.perf_counter() - start
        print(f"\n{millions:g} million sessions: {data}\n\nread and compressed in {seconds:.1f} s")
        for model in models:
            start = time.perf_counter()
            fitted = fit_click_model(data, model)
            seconds = time.perf_counter() - start
            print(f"{model}: {seconds:.1f} s, {fitted.table.n_iterations} EM steps", flush=True)


def main() -> None:
    """Parse, fit, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clax", metavar="PYTHON", help="an interpreter that has clax-models")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for a model of CLAX")
    parser.add_argument("--sessions", type=int, default=1_000_000, help="of the simulated log")
    parser.add_argument("--queries", type=int, default=5_000, help="of the simulated logs")
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--only", choices=("yandex", "simulated"), help="one of both logs")
    parser.add_argument(
        "--large", type=float, metavar="MILLIONS", help="time one large log instead"
    )
    options = parser.parse_args()
    if options.large:
        large(options.large, options.queries, options.models)
        return
    if not has_clax(options.clax):
        options.clax = None
    real = yandex() if options.only != "simulated" else None
    if real is not None:
        compare("Yandex", real, options)
    if options.only != "yandex":
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "log.parquet"
            simulate(file, options.sessions, options.queries)
            compare("simulated, user browsing clicks", unskew.read_log(file), options)


if __name__ == "__main__":
    main()
