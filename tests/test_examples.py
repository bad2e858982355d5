"""The examples run from top to bottom on the data they are about."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_expedia_example_ends_with_a_decision(real_data: Path, tmp_path: Path) -> None:
    """It reads the log, measures the bias, trains, and writes a report with an answer."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(ROOT / "examples" / "expedia.py")],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "UNSKEW_DATA": str(real_data)},
    )
    assert done.returncode == 0, done.stderr
    assert "position 2: measured 0.77" in done.stdout
    assert "what is live" in done.stdout.splitlines()[-1]
    assert (tmp_path / "expedia.html").stat().st_size < 2_000_000
