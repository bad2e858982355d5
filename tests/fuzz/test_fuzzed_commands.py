"""Commands on damaged files, with strange options, on a full disk or killed end as promised."""

from __future__ import annotations

from fuzz.fixed_cases import check, every_kind, run


@every_kind("commands")
def test_fixed_cases_of_commands(module, kind):
    """Some cases from a fixed seed: each is refused by our own error, or confirmed."""
    check(module, kind)


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
