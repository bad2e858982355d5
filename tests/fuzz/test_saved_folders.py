"""Saved folders that were damaged and signed again never crash, hang or load wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz.saved_folders import KINDS

TESTS = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_damaged_folders(kind):
    """A few hundred cases from a fixed seed: each is refused by our own error, or right."""
    # A process of its own: this one may have used threads, and then it cannot be forked.
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    command = [sys.executable, "-m", "fuzz.saved_folders", "240", "0", kind.name]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "refused" in done.stdout
    assert "right" in done.stdout


ENDS = """
import os, time
from fuzz.oracle import Kind, run

def attempt(sample, number, place):
    if number == 1:
        os.kill(os.getpid(), 11)
    if number == 2:
        raise KeyError("x")
    if number == 3:
        return "too small"
    if number == 4:
        time.sleep(60)
    if number == 5:
        bytearray(64 << 30)

import fuzz.oracle
fuzz.oracle.SECONDS = 1.0
found = run(Kind("self", ("a",), lambda folder: None, attempt), range(7))
print(found)
"""


def test_the_oracle_notices():
    """A crash, a traceback, a wrong result, a hang and too much memory are findings."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", ENDS], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("5 bad, 2 right")
    for end in ("SIGSEGV", "KeyError", "too small", "hangs", "MemoryError"):
        assert end in done.stdout
