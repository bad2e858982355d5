"""The judging server under load: many assessors at once, then a kill in the middle.

Loopback only, and bounded: 1,000 answers at 20 at once by default. Prints answers a second of the
server and, measured in the same run, of a bare SQLite file written with the same guarantees; checks
that no answer is lost or doubled, and that every answer acknowledged before a SIGKILL is on disk.

    python benchmarks/judging_load.py
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2 as httpx

from unskew.online.judging.database import read_judged

FIELD = re.compile(r'name="(token|question)" value="([^"]*)"')


class Load:
    """A study in a folder, its server, and what the assessors got acknowledged."""

    def __init__(self, folder: Path, n_queries: int) -> None:
        self.folder = folder
        self.db = folder / "judgements.sqlite"
        self.acknowledged: list[tuple[str, int]] = []
        for name, docs in (("new", "abcde"), ("old", "fghij")):
            rows = [f"q{k},{d},{r}" for k in range(n_queries) for r, d in enumerate(docs, start=1)]
            (folder / f"{name}.csv").write_text("\n".join(["query,doc,rank", *rows]) + "\n")

    def start(self) -> tuple[subprocess.Popen[bytes], str]:
        """The server's process and its address."""
        program = "import sys; from unskew.cli import main; main(sys.argv[1:])"
        files = [str(self.folder / "new.csv"), str(self.folder / "old.csv")]
        process = subprocess.Popen(
            [
                sys.executable, "-c", program, "judge", "serve", *files,
                "--db", str(self.db), "--port", "0",
            ],
            stderr=subprocess.PIPE,
        )  # fmt: skip
        assert process.stderr is not None
        for line in process.stderr:
            if found := re.search(rb"open (http://\S+)/ ", line):
                threading.Thread(target=process.stderr.read, daemon=True).start()
                return process, found.group(1).decode()
        raise SystemExit("the server did not start")

    def judge(self, url: str, name: str) -> None:
        """Judge as one assessor until nothing is left or the server is gone."""
        options = {"base_url": url, "headers": {"Origin": url}, "timeout": 60.0}
        with (
            contextlib.suppress(httpx.TransportError),
            httpx.Client(trust_env=False, **options) as client,  # type: ignore[arg-type]
        ):
            token = dict(FIELD.findall(client.get("/").text))["token"]
            client.post("/name", data={"token": token, "name": name})
            while "question" in (fields := dict(FIELD.findall(client.get("/judge").text))):
                response = client.post("/answer", data={**fields, "answer": "left"})
                assert response.status_code == 303, response.status_code
                self.acknowledged.append((name, int(fields["question"])))

    def stored(self) -> Counter[tuple[str, int]]:
        """How often each assessor's answer to each question counts."""
        judged = read_judged(self.db)
        numbers = {query: k for k, query in enumerate(judged.asked, start=1)}
        return Counter((j.assessor, numbers[j.query]) for j in judged.judgements)


def bare_sqlite(folder: Path, n: int) -> float:
    """Seconds that ``n`` synced transactions of one row take on the same disk."""
    connection = sqlite3.connect(folder / "bare.sqlite", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE t (x)")
    start = time.perf_counter()
    for k in range(n):
        connection.execute("INSERT INTO t VALUES (?)", (k,))
    seconds = time.perf_counter() - start
    connection.close()
    return seconds


def whole(folder: Path, answers: int, at_once: int) -> None:
    """Every answer is there once."""
    load = Load(folder, answers // at_once)
    process, url = load.start()
    start = time.perf_counter()
    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(lambda k: load.judge(url, f"a{k}"), range(at_once)))
    seconds = time.perf_counter() - start
    process.send_signal(signal.SIGTERM)
    process.wait()
    stored = load.stored()
    n = len(load.acknowledged)
    lost = len(set(load.acknowledged) - set(stored))
    doubled = sum(count > 1 for count in stored.values())
    bare = bare_sqlite(folder, n)
    print(
        f"{n:,} answers at {at_once} at once: {lost} lost, {doubled} doubled, "
        f"{n / seconds:,.0f} answers a second (a page and a form each); "
        f"bare synced SQLite {n / bare:,.0f} a second"
    )
    assert (n, lost, doubled, stored.total()) == (answers, 0, 0, answers)


def killed(folder: Path, answers: int, at_once: int) -> None:
    """Every answer acknowledged before the kill is there once."""
    load = Load(folder, answers // at_once)
    process, url = load.start()
    with ThreadPoolExecutor(at_once) as pool:
        work = [pool.submit(load.judge, url, f"a{k}") for k in range(at_once)]
        while len(load.acknowledged) < answers // 2 and not all(f.done() for f in work):
            time.sleep(0.002)
        os.kill(process.pid, signal.SIGKILL)
        for future in work:
            future.result()
    process.wait()
    stored = load.stored()
    lost = len(set(load.acknowledged) - set(stored))
    print(
        f"killed with SIGKILL after {len(load.acknowledged):,} acknowledged answers: "
        f"{lost} of them lost, {stored.total():,} on disk, "
        f"{sum(count > 1 for count in stored.values())} doubled"
    )
    assert lost == 0
    assert set(stored.values()) == {1}


def main() -> None:
    """Run both loads in folders of their own."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--answers", type=int, default=1000)
    parser.add_argument("--at-once", type=int, default=20)
    options = parser.parse_args()
    for load in (whole, killed):
        with tempfile.TemporaryDirectory() as folder:
            load(Path(folder), options.answers, options.at_once)


if __name__ == "__main__":
    main()
