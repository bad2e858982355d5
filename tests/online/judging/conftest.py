"""Two rankings, texts for their documents, and a server that judges them."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import uvicorn

from unskew.online.judging.app import make_app
from unskew.online.judging.database import Database
from unskew.online.judging.guidelines import read_guidelines
from unskew.online.judging.items import Item, Items
from unskew.online.judging.queries import Query
from unskew.online.judging.questions import Desk
from unskew.online.judging.rankings import Ranking
from unskew.online.judging.serving import Settings, open_study
from unskew.online.judging.study import make_study

HOSTILE = "<script>window.taken = 1</script><img src=x onerror='window.taken = 1'>"


@dataclass
class Files:
    """The files of a study of ``n`` queries with five documents in each list."""

    folder: Path
    n: int = 6
    options: list[str] = field(default_factory=list)

    def __post_init__(self):
        a = [f"q{k:02d},d{(k + j) % 7},{j + 1}" for k in range(self.n) for j in range(5)]
        b = [f"q{k:02d},d{(k + 6 - j) % 7},{j + 1}" for k in range(self.n) for j in range(5)]
        self.write("new.csv", ["query,doc,rank", *a])
        self.write("old.csv", ["query,doc,rank", *b])
        self.write("queries.txt", [f"q{k:02d}" for k in range(self.n)])
        texts = [f"d{k},Title {k},Snippet {k},https://example.invalid/{k}" for k in range(5)]
        texts += [f'd5,"{HOSTILE}","{HOSTILE}",javascript:window.taken=1', "d6,,,"]
        self.write("items.csv", ["doc,title,snippet,url", *texts])
        self.write(
            "guide.md", ["# Rules", HOSTILE, "", "[x](javascript:taken=1) [y](https://e.invalid)"]
        )

    def write(self, name, lines):
        """Write a file of lines and return its path."""
        path = self.folder / name
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    @property
    def db(self):
        """Where the answers are."""
        return self.folder / "judgements.sqlite"

    def arguments(self, port=0):
        """The command line that serves the study."""
        named = ("queries.txt", "items.csv", "guide.md")
        queries, items, guide = (str(self.folder / name) for name in named)
        return [
            "judge", "serve", str(self.folder / "new.csv"), str(self.folder / "old.csv"),
            "--db", str(self.db), "--queries", queries, "--items", items, "--guidelines", guide,
            "--seed", "5", "--port", str(port), *self.options,
        ]  # fmt: skip


@pytest.fixture
def files(tmp_path):
    """The files of a small study."""
    return Files(tmp_path)


class Server:
    """The command ``unskew judge serve`` as a process."""

    def __init__(self, files, port=0):
        # A command that was started in the background may have been told to ignore Ctrl-C.
        program = (
            "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
            "from unskew.cli import main; main(sys.argv[1:])"
        )
        # File descriptors are handed over by number, so nothing but this process holds them.
        self.process = subprocess.Popen(
            [sys.executable, "-c", program, *files.arguments(port)],
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "COLUMNS": "200"},
        )
        self.url = self._url()

    def _url(self, patience=60.0):
        seen, end = b"", time.monotonic() + patience
        while time.monotonic() < end:
            ready, _, _ = select.select([self.process.stderr], [], [], 0.2)
            chunk = os.read(self.process.stderr.fileno(), 4096) if ready else b""
            seen += chunk
            found = re.search(rb"open (http://\S+)/ ", seen)
            if found:
                return found.group(1).decode()
            if ready and not chunk:
                break
        self.stop(signal.SIGKILL)
        raise AssertionError(f"the server did not start: {seen.decode()}")

    @property
    def port(self):
        """The port it listens on."""
        return int(self.url.rpartition(":")[2])

    def stop(self, how=signal.SIGTERM):
        """End the process by a signal and wait for it."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(how)
        self.process.wait(timeout=20)
        self.process.stderr.close()


@pytest.fixture
def serve():
    """Starts servers, and ends them after the test."""
    running = []

    def start(files, port=0):
        running.append(Server(files, port))
        return running[-1]

    yield start
    for server in running:
        server.stop(signal.SIGKILL)


@pytest.fixture
def serve_here():
    """Starts servers as threads of this process, which is faster; returns their addresses."""
    running = []

    def start(files):
        folder = files.folder
        settings = Settings(
            a=str(folder / "new.csv"), b=str(folder / "old.csv"), db=str(files.db),
            queries=str(folder / "queries.txt"), items=str(folder / "items.csv"), seed=5,
        )  # fmt: skip
        study, items = open_study(settings, 5)
        database = Database(files.db, seed=5)
        desk = Desk(database.begin(study), items, 5)
        app = make_app(desk, database, guidelines=read_guidelines(folder / "guide.md"))
        config = uvicorn.Config(app, log_level="error", lifespan="off", timeout_graceful_shutdown=1)
        server, listening = uvicorn.Server(config), socket.create_server(("127.0.0.1", 0))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        running.append((server, thread, listening, database))
        return f"http://127.0.0.1:{listening.getsockname()[1]}"

    yield start
    for server, thread, listening, database in running:
        server.should_exit = True
        thread.join()
        listening.close()
        database.close()


@pytest.fixture
def study_files():
    """Makes the files of a study: ``study_files(folder, n=40)``."""
    return Files


@pytest.fixture
def desk_and_database(tmp_path):
    """Makes a study of ``n`` queries in a database, without files or server."""
    opened = []

    def make(n=6, *, seed=5, timeout=5.0, items=None):
        queries = [Query(f"q{k:02d}") for k in range(n)]
        a = Ranking("new", {q.query: ("d1", "d2", "d3") for q in queries})
        b = Ranking("old", {q.query: ("d3", "d2", "d4") for q in queries})
        database = Database(tmp_path / "judgements.sqlite", seed=seed, timeout=timeout)
        opened.append(database)
        asked = database.begin(make_study(a, b, queries=queries))
        texts = Items({(None, "d1"): Item("d1", HOSTILE, HOSTILE, "javascript:alert(1)")})
        return Desk(asked, items or texts, seed), database

    yield make
    for database in opened:
        database.close()
