"""The code in the documentation of position bias runs, in a fresh process and an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"


@pytest.mark.slow
@pytest.mark.parametrize("page", ["how-to/estimate-bias.md"])
def test_the_code_of_a_page_runs(page, tmp_path):
    """From top to bottom, with warnings as errors."""
    blocks = re.findall(
        r"^```python\n(.*?)^```$", (DOCS / page).read_text(), re.MULTILINE | re.DOTALL
    )
    assert blocks
    command = [sys.executable, "-W", "error", "-c", "\n".join(blocks)]
    path = os.pathsep.join(map(os.path.abspath, sys.path))
    # One thread: on a busy machine the threads of several libraries wait for each other.
    environment = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False,
        timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
