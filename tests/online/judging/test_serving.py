"""The server as a process: load, a kill in the middle, addresses and what stops it from starting."""

from __future__ import annotations

import contextlib
import http.client
import re
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx2 as httpx
import pytest

from unskew.cli import main
from unskew.online.judging.database import read_judged

FIELD = re.compile(r'name="(token|question)" value="([^"]*)"')


@contextmanager
def sign_in(url, name):
    """A client that judges under a name."""
    with httpx.Client(base_url=url, headers={"Origin": url}, timeout=30, trust_env=False) as client:
        token = dict(FIELD.findall(client.get("/").text))["token"]
        assert client.post("/name", data={"token": token, "name": name}).status_code == 303
        yield client


def judge_all(url, name, answer, acknowledged):
    """Answer until nothing is left or the server is gone; note what was acknowledged."""
    with contextlib.suppress(httpx.TransportError), sign_in(url, name) as client:
        while True:
            fields = dict(FIELD.findall(client.get("/judge").text))
            if "question" not in fields:
                return
            response = client.post("/answer", data={**fields, "answer": answer})
            assert response.status_code == 303
            acknowledged.append((name, int(fields["question"])))


def test_load(study_files, serve, tmp_path):
    """Ten assessors at once: every acknowledged answer is there once, under its assessor."""
    server = serve(study_files(tmp_path, n=12))
    acknowledged: list[tuple[str, int]] = []
    with ThreadPoolExecutor(10) as pool:
        answers = ("left", "right", "same", "both_bad", "skip")
        work = [
            pool.submit(judge_all, server.url, f"a{k}", answers[k % 5], acknowledged)
            for k in range(10)
        ]
        for future in work:
            future.result()
    found = read_judged(tmp_path / "judgements.sqlite").judgements
    assert len(found) == len(set(acknowledged)) == len(acknowledged) == 120
    assert set(Counter((j.assessor, j.query) for j in found).values()) == {1}
    assert all(j.answer.value == answers[int(j.assessor[1:]) % 5] for j in found)


def test_killed_in_the_middle(study_files, serve, tmp_path):
    """After SIGKILL every acknowledged answer is in the database, once, and judging goes on."""
    files = study_files(tmp_path, n=60)
    server = serve(files)
    acknowledged: list[tuple[str, int]] = []
    with ThreadPoolExecutor(6) as pool:
        work = [pool.submit(judge_all, server.url, f"a{k}", "left", acknowledged) for k in range(6)]
        end = time.monotonic() + 30
        while len(acknowledged) < 40 and time.monotonic() < end:
            time.sleep(0.01)
        server.stop(signal.SIGKILL)
        for future in work:
            future.result()
    again = serve(files)
    stored = stored_answers(files.db)
    assert 40 <= len(acknowledged) < 360
    assert set(acknowledged) <= set(stored)
    assert set(stored.values()) == {1}
    with sign_in(again.url, "a0") as client:
        done = sum(name == "a0" for name, _ in stored)
        assert f"{done} of 60 judged" in client.get("/judge").text


def stored_answers(path):
    """How often each assessor's answer to each question counts."""
    judged = read_judged(path)
    numbers = {query: k for k, query in enumerate(judged.asked, start=1)}
    return Counter((j.assessor, numbers[j.query]) for j in judged.judgements)


def test_malformed_http(files, serve):
    """Bytes that are no request get 400, and the server lives on."""
    server = serve(files)
    for sent in (b"\x00\x01\x02\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"POST /answer\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
            connection.sendall(sent)
            assert b" 400 " in connection.recv(4096)
    without_host = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    without_host.putrequest("GET", "/", skip_host=True)
    without_host.endheaders()
    assert without_host.getresponse().status == 400
    without_host.close()
    assert httpx.get(server.url, trust_env=False).status_code == 200


def test_loopback_only_unless_told(files, serve):
    """By default the server listens on the loopback address and on no other."""
    server = serve(files)
    assert server.url.startswith("http://127.0.0.1:")
    address = socket.gethostbyname(socket.gethostname())
    if not address.startswith("127."):
        with pytest.raises(OSError, match="refused"):
            socket.create_connection((address, server.port), timeout=2).close()


def test_ctrl_c(files, serve):
    """Ctrl-C ends the server cleanly and says where the answers are."""
    server = serve(files)
    server.process.send_signal(signal.SIGINT)
    assert b"stopped; the answers are in" in server.process.stderr.read()
    assert server.process.wait(timeout=20) == 0


def test_warning_beyond_loopback(files):
    """On another address a warning says that others can reach the page."""
    program = (
        "import sys, uvicorn\n"
        "uvicorn.Server.run = lambda *_, **__: None\n"
        "from unskew.cli import main; main(sys.argv[1:])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, *files.arguments(), "--host", "0.0.0.0"],  # noqa: S104
        capture_output=True,
        text=True,
        check=True,
    )
    assert "warning: this address can be reached from other machines" in ran.stderr


def refused(capsys, *arguments):
    """What the command line says when it refuses, in one line."""
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    assert stop.value.code in {1, 2}
    return " ".join(capsys.readouterr().err.split())


def test_port_in_use(files, capsys):
    """A port that is taken is an error that names it, and no database is begun."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = refused(capsys, *files.arguments(port))
    assert f"cannot listen on 127.0.0.1, port {port}" in said
    assert not files.db.exists()
    said = refused(capsys, *files.arguments(), "--host", "no.such.host.invalid")
    assert "is no address of this machine" in said


@pytest.mark.parametrize(
    ("name", "lines", "message"),
    [
        ("new.csv", ["query,doc,rank"], "the ranking new has no rows"),
        ("new.csv", ["query,doc,rank", "q00,d1,1", "q00,d1,2"], "has the doc 'd1' 2 times"),
        ("queries.txt", ["q00", "nowhere"], "are in neither ranking, the first is 'nowhere'"),
        ("items.csv", ["doc,title", "d1,One"], "not in the table of items, the first is doc"),
        ("judgements.sqlite", ["hello " * 100], "is not a SQLite database"),
    ],
)
def test_bad_files(files, capsys, name, lines, message):
    """A file that does not fit stops the command with what is wrong, before a database is begun."""
    files.write(name, lines)
    assert message in refused(capsys, *files.arguments())
    assert name == "judgements.sqlite" or not files.db.exists()


def test_missing_dependency(files, capsys, monkeypatch):
    """Without the extra the error has the install line."""
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    said = refused(capsys, *files.arguments())
    assert "needs uvicorn, which is not installed: pip install 'unskew[judge]'" in said
