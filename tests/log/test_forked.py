"""A process that was forked from one that has read a log reads logs as well."""

from __future__ import annotations

import os
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

CHILD = """
import os, signal, sys, unskew
before = unskew.read_log(sys.argv[1])
if sys.argv[2] == "trained":
    unskew.UnbiasedLambdaMART(n_estimators=2, min_data_in_leaf=1, verbose=0, n_jobs=2).fit(before)
child = os.fork()
if child == 0:
    signal.alarm(60)
    same = unskew.read_log(sys.argv[1]).equals(before)
    os._exit(0 if same else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("parent", ["read", "trained"])
def test_a_forked_child_reads_a_log(parent: str, tmp_path) -> None:  # type: ignore[no-untyped-def]
    """The child reads the same Impressions, whether its parent has only read or has trained too."""
    n = 60
    log = {
        "session": [k // 3 for k in range(3 * n)], "query": [k // 30 for k in range(3 * n)],
        "doc": [k % 3 for k in range(3 * n)], "position": [k % 3 + 1 for k in range(3 * n)],
        "click": [int(k % 7 in (0, 4)) for k in range(3 * n)], "x": [k % 3 for k in range(3 * n)],
    }  # fmt: skip
    pq.write_table(pa.table(log), tmp_path / "log.parquet")
    run = [sys.executable, "-W", "ignore", "-c", CHILD, str(tmp_path / "log.parquet"), parent]
    ended = subprocess.run(run, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stderr
