"""Damaged files and strange calls of every kind end with our own error, or right."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz.__main__ import PLAN

TESTS = Path(__file__).resolve().parents[1]
# A few hundred cases of what is read; fewer of whole commands, which take longer.
CASES = {"commands": 48, "interruptions": 13}


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own: this one may have used threads and cannot be forked."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    return subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("module", "kind"), [(module, kind) for module, kinds in PLAN.items() for kind in kinds]
)
def test_fixed_cases(module, kind):
    """A few hundred cases from a fixed seed: each is refused by our own error, or confirmed."""
    done = run("-m", f"fuzz.{module}", str(CASES.get(module, 200)), "0", kind)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "right" in done.stdout
    if kind != "full disk":
        assert "refused" in done.stdout


def test_kills():
    """Killed at random moments, commands leave what was there or what is new, and no trace."""
    done = run("-m", "fuzz.interruptions", "kills", "6")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 right" in done.stdout


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
    done = run("-c", ENDS)
    assert done.stdout.startswith("5 bad, 2 right")
    for end in ("SIGSEGV", "KeyError", "too small", "hangs", "MemoryError"):
        assert end in done.stdout
