"""What the first run of each command takes in a fresh container, before any kernel is compiled.

    python benchmarks/cold_start.py                  a log of its own
    python benchmarks/cold_start.py --log LOG        `inspect` on a log of yours as well

Every command runs twice, as a process of its own: with an empty cache of compiled kernels, and again
with what the first run has compiled.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow.parquet as pq

import unskew


def prepare(folder: Path) -> None:
    """Write labels, a log of 2,000 sessions with 64 features, and candidates."""
    labels = unskew.datasets.make_search_dataset(n_queries=70, n_features=64, seed=0)
    policy = unskew.simulate.rank_svm_policy(labels, seed=0)
    log = unskew.simulate.sample(labels, policy=policy, sessions=2_000, seed=0)
    pq.write_table(log, folder / "log.parquet")
    features = unskew.datasets.features_table(labels)
    pq.write_table(features, folder / "features.parquet")
    data = unskew.read_log(log, features=features)
    unskew.UnbiasedLambdaMART(n_estimators=20, verbose=0).fit(data).save(folder / "model")


COMMANDS: dict[str, list[str]] = {
    "--help": ["--help"],
    "inspect": ["inspect", "log.parquet", "--features", "features.parquet"],
    "advise": ["advise", "log.parquet", "--features", "features.parquet"],
    "compact": ["compact", "log.parquet", "-o", "out/compacted"],
    "bias": ["bias", "log.parquet", "--features", "features.parquet"],
    "clicks": ["clicks", "log.parquet", "--features", "features.parquet"],
    "train": ["train", "log.parquet", "--features", "features.parquet", "-o", "out/chosen"],
    "train --ranker lambdamart": [
        "train", "log.parquet", "--features", "features.parquet", "--ranker", "lambdamart",
        "-o", "out/lambdamart",
    ],
    "rank": ["rank", "model", "features.parquet", "-o", "out/ranked.parquet"],
    "evaluate --log": [
        "evaluate", "model", "--log", "log.parquet", "--features", "features.parquet",
    ],
    "report": [
        "report", "model", "--log", "log.parquet", "--features", "features.parquet",
        "-o", "out/report.html",
    ],
    "export": ["export", "model", "--to", "lightgbm", "-o", "out/exported"],
}  # fmt: skip


def seconds(command: list[str], folder: Path, cache: Path) -> float:
    """How long a command takes with this cache of compiled kernels."""
    shutil.rmtree(folder / "out", ignore_errors=True)
    (folder / "out").mkdir()
    start = time.perf_counter()
    program = [sys.executable, "-c", "from unskew.cli import main; main()", *command]
    done = subprocess.run(
        program, cwd=folder, env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"unskew {' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return time.perf_counter() - start


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--log", type=Path)
    arguments = parser.parse_args()
    commands = dict(COMMANDS)
    if arguments.log:
        commands[f"inspect {arguments.log.name}"] = ["inspect", str(arguments.log.resolve())]
    print("| command | first run, s | next runs, s | added, s |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        for k, (title, command) in enumerate(commands.items()):
            first, again = (seconds(command, folder, folder / f"cache-{k}") for _ in range(2))
            print(f"| `{title}` | {first:.1f} | {again:.1f} | {first - again:.1f} |", flush=True)


if __name__ == "__main__":
    main()
