"""The oracle of every fuzzed file: our own error, or a result that is right.

A kind of file is a `Kind`: a folder of valid samples, how a case is damaged, and what is done with
it. Each case runs in a process of a pool that has a limit on its memory and on its time, so that a
crash, a hang or an explosion of memory is a finding and not the end of the run. A case is known by
its kind and its number: the same number is the same case.
"""

from __future__ import annotations

import faulthandler
import os
import resource
import select
import signal
import struct
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from unskew.errors import UnskewError

SECONDS = 60.0
MEMORY = 6 << 30

# What a case may end with: everything else is a finding.
REFUSED, RIGHT = "refused", "right"


@dataclass(frozen=True)
class Kind:
    """A kind of file that this program reads.

    Attributes
    ----------
    samples
        The names of the valid samples.
    prepare
        Writes them into a folder. It runs in a process of its own: whoever has used threads cannot
        be forked.
    attempt
        Damages the sample by the case's number, reads it and uses it, within a folder of its own.
        It raises an `UnskewError`, or returns None if what came out is right; a text says what is
        wrong with it.

    """

    name: str
    samples: Sequence[str]
    prepare: Callable[[Path], None]
    attempt: Callable[[Path, int, Path], str | None]

    def sample(self, number: int) -> str:
        """The sample that a case damages."""
        return self.samples[number % len(self.samples)]


@dataclass
class Findings:
    """How the cases ended, and the cases that ended badly."""

    ends: Counter[str] = field(default_factory=Counter)
    bad: list[str] = field(default_factory=list)

    def note(self, kind: Kind, number: int, end: str) -> None:
        """Count how a case ended."""
        self.ends[end if end in {REFUSED, RIGHT} else "bad"] += 1
        if end not in {REFUSED, RIGHT}:
            self.bad.append(f"{kind.name} {number} ({kind.sample(number)}): {end}")

    def __str__(self) -> str:
        ends = ", ".join(f"{count:,} {end}" for end, count in sorted(self.ends.items()))
        return "\n".join((ends, *self.bad[:20]))


def run(kind: Kind, cases: range) -> Findings:
    """Every case of a kind, in forked children of this process, which has all modules loaded."""
    findings = Findings()
    with tempfile.TemporaryDirectory(prefix="fuzz-samples-") as folder:
        _prepare(kind, Path(folder))
        at = cases.start
        while at < cases.stop:
            # One child works through the cases until one of them ends it.
            end, at = _run_child(kind, range(at, cases.stop), Path(folder), findings)
            if end is not None:
                findings.note(kind, at, end)
                at += 1
    return findings


def _prepare(kind: Kind, folder: Path) -> None:
    child = os.fork()
    if child == 0:
        try:
            kind.prepare(folder)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if status:
        raise AssertionError(f"the samples of {kind.name} could not be made")


def _run_child(
    kind: Kind, cases: range, samples: Path, findings: Findings
) -> tuple[str | None, int]:
    """What ended the child early, if anything did, and the next case."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        _work(kind, cases, samples, write_end)
    os.close(write_end)
    at = cases.start
    try:
        while True:
            ready, _, _ = select.select([read_end], [], [], SECONDS)
            if not ready:
                os.kill(child, signal.SIGKILL)
                return f"hangs for more than {SECONDS:.0f} s", at
            header = os.read(read_end, 4)
            if not header:
                break
            message = os.read(read_end, struct.unpack("I", header)[0]).decode()
            findings.note(kind, at, message)
            at += 1
    finally:
        os.close(read_end)
        _, status = os.waitpid(child, 0)
    if at < cases.stop:
        code = os.waitstatus_to_exitcode(status)
        ended = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return f"the interpreter ended with {ended}", at
    return None, at


def _work(kind: Kind, cases: range, samples: Path, write_end: int) -> None:
    """The cases in order; each is answered on the pipe."""
    faulthandler.disable()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number in cases:
        answer = _answer(kind, samples, number).encode()[:4000]
        os.write(write_end, struct.pack("I", len(answer)) + answer)
    os._exit(0)


def _answer(kind: Kind, samples: Path, number: int) -> str:
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            wrong = kind.attempt(samples / kind.sample(number), number, Path(folder))
        except UnskewError:
            return REFUSED
        except BaseException as error:  # a finding, whatever it is
            last = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(last.filename).name}:{last.lineno}"
            return f"traceback: {type(error).__name__} at {where}: {str(error)[:200]}"
    return RIGHT if wrong is None else f"wrong: {wrong}"


def main(kinds: Sequence[Kind]) -> None:
    """So many cases from a number on, of the kinds named or of every kind."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    failed = False
    for kind in kinds:
        if sys.argv[3:] and kind.name not in sys.argv[3:]:
            continue
        started = time.monotonic()
        found = run(kind, range(first, first + count))
        failed |= bool(found.bad)
        sys.stdout.write(f"{kind.name}, {time.monotonic() - started:.0f} s: {found}\n")
    sys.exit(int(failed))
