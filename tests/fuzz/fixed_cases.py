"""Cases from a fixed seed, for the quick tests: each module of kinds in a process of its own."""

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
# The test files that share the modules, so that several processes share the work.
SHARED = {
    "logs": ("tables", "other_logs"),
    "commands": ("commands", "interruptions"),
}
SHARED["files"] = tuple(set(PLAN) - {module for some in SHARED.values() for module in some})


def every_kind(share: str) -> pytest.MarkDecorator:
    """A parameter for every kind of the modules of one test file."""
    kinds = [(module, kind) for module in sorted(SHARED[share]) for kind in PLAN[module]]
    return pytest.mark.parametrize(("module", "kind"), kinds)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own: this one may have used threads and cannot be forked."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    return subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False
    )


def check(module: str, kind: str) -> None:
    """Each case is refused by our own error, or confirmed."""
    done = run("-m", f"fuzz.{module}", str(CASES.get(module, 200)), "0", kind)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "right" in done.stdout
    if kind != "full disk":
        assert "refused" in done.stdout
