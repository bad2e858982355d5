"""``make fuzz``: every kind of file and every command, writers, kills; ``python -m fuzz 50000``."""

from __future__ import annotations

import subprocess
import sys
import time
from importlib import import_module

# How many cases of each kind there are in 51,000: those that cost little, more often.
PLAN: dict[str, dict[str, int]] = {
    "small_files": {
        "bias files": 10_000, "configs": 8_000, "records of a search": 1_500,
        "lists of features": 1_500, "queries and guidelines": 1_500,
    },
    "saved_folders": {"models": 12_000, "impressions": 3_000},
    "parts": {"parts": 1_500, "checkpoints": 1_500},
    "tables": {
        "labels": 2_600, "logs": 2_000, "logs of many files": 1_500, "features": 1_200,
        "candidates": 600,
    },
    "other_logs": {"clicks apart": 400, "JSON and databases": 600},
    "commands": {"commands on damaged files": 700, "commands with strange options": 700},
    "interruptions": {"full disk": 200},
}  # fmt: skip
ROUNDS = 200


def main() -> int:
    """Run everything; the exit code is 1 if anything was found."""
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    share = wanted / sum(sum(kinds.values()) for kinds in PLAN.values())
    failed = False
    for module, kinds in PLAN.items():
        for kind, count in kinds.items():
            # A process for each: whoever has used threads cannot be forked.
            command = [
                sys.executable,
                "-m",
                f"fuzz.{module}",
                str(-int(-count * share // 1)),
                str(first),
            ]
            failed |= subprocess.run([*command, kind], check=False).returncode != 0
    started = time.monotonic()
    rounds = max(2, round(ROUNDS * min(1.0, share)))
    outcome = dict(import_module("fuzz.writers").run(rounds))
    sys.stdout.write(f"writers, {time.monotonic() - started:.0f} s: {outcome}\n")
    command = [sys.executable, "-m", "fuzz.interruptions", "kills", str(rounds)]
    failed |= subprocess.run(command, check=False).returncode != 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
