"""The judgements on disk: one SQLite file, one transaction an answer, synced before it counts."""

from __future__ import annotations

import json
import secrets
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from unskew.errors import DataError, StoreError, UnskewError, UsageError
from unskew.online.judging.answers import Answer, Judgement
from unskew.online.judging.study import Question, Study

APPLICATION = 0x756A6467  # "ujdg" in the header of the file says that it is ours
VERSION = 1

_SCHEMA = """
CREATE TABLE study (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    seed INTEGER NOT NULL, secret TEXT NOT NULL, begun_at TEXT NOT NULL,
    name_a TEXT, name_b TEXT, top INTEGER
) STRICT;
CREATE TABLE questions (
    question INTEGER PRIMARY KEY, query TEXT NOT NULL UNIQUE,
    list_a TEXT NOT NULL, list_b TEXT NOT NULL, identical INTEGER NOT NULL
) STRICT;
CREATE TABLE assessors (assessor INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE answers (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    assessor INTEGER NOT NULL REFERENCES assessors, question INTEGER NOT NULL REFERENCES questions,
    answer TEXT NOT NULL CHECK (answer IN ('left', 'same', 'both_bad', 'right', 'skip')),
    a_was_left INTEGER NOT NULL, reason TEXT NOT NULL,
    answered_at TEXT NOT NULL, undone_at TEXT
) STRICT;
-- At most one answer of an assessor to a question counts; undone ones stay for the record.
CREATE UNIQUE INDEX one_answer ON answers (assessor, question) WHERE undone_at IS NULL;
"""


@dataclass(frozen=True)
class Given:
    """An answer that an assessor gave to a question."""

    id: int
    question: int
    answer: Answer
    reason: str


@dataclass(frozen=True)
class Judged:
    """All that a database holds, for results."""

    name_a: str
    name_b: str
    top: int
    seed: int
    asked: tuple[str, ...]
    identical: tuple[str, ...]
    judgements: tuple[Judgement, ...]


class Database:
    """The judgements of one study, open for writing; safe to use from several threads.

    Opening a path at which there is nothing begins a database, with ``seed`` or a random one.

    Examples
    --------
    >>> from unskew.online.judging import Answer, Database, Ranking, make_study
    >>> new, old = Ranking("new", {"tea": ("a", "b")}), Ranking("old", {"tea": ("b", "a")})
    >>> database = Database("judged.sqlite", seed=1)
    >>> (question,) = database.begin(make_study(new, old))
    >>> ann = database.assessor("Ann")
    >>> database.record(ann, question, Answer.LEFT, a_was_left=True).answer.value
    'left'
    >>> database.close()

    """

    def __init__(self, path: str | Path, *, seed: int | None = None, timeout: float = 5.0) -> None:
        self.path = Path(path)
        if not self.path.parent.is_dir():
            raise DataError(f"{path}: there is no folder {str(self.path.parent)!r}; make it first")
        self._lock = threading.RLock()
        with _told(self.path):
            self._connection = sqlite3.connect(
                self.path, timeout=timeout, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare(seed)
            except BaseException:
                self._connection.close()
                raise
        self.seed, self.secret = self._study(seed)

    def _prepare(self, seed: int | None) -> None:
        is_new = _is_empty(self._connection)
        if not is_new:
            _check_kind(self._connection, self.path)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute("PRAGMA foreign_keys = ON")
        if not is_new:
            return
        chosen = secrets.randbits(32) if seed is None else seed
        with self._transaction():
            if not _is_empty(self._connection):  # another process was faster
                return
            for statement in _SCHEMA.split(";\n"):
                self._connection.execute(statement)
            self._connection.execute(
                "INSERT INTO study (one, seed, secret, begun_at) VALUES (1, ?, ?, ?)",
                (chosen, secrets.token_hex(32), _now()),
            )
            self._connection.execute(f"PRAGMA application_id = {APPLICATION}")
            self._connection.execute(f"PRAGMA user_version = {VERSION}")

    def _study(self, seed: int | None) -> tuple[int, str]:
        kept, secret = self._rows("SELECT seed, secret FROM study")[0]
        try:
            _refuse_other_seed(self.path, kept, seed)
        except UsageError:
            self.close()
            raise
        return kept, secret

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock, _told(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def _rows(self, sql: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        with self._lock, _told(self.path):
            return self._connection.execute(sql, values).fetchall()

    def begin(self, study: Study) -> dict[int, Question]:
        """Enter the study's questions and return those to ask, by their number.

        A query that is there already must have the same two lists. The others are added, so that a
        study can grow.
        """
        with self._transaction() as connection:
            connection.execute(
                "UPDATE study SET name_a = ?, name_b = ?, top = ? WHERE name_a IS NULL",
                (study.name_a, study.name_b, study.top),
            )
            known = {
                query: (number, list_a, list_b)
                for number, query, list_a, list_b in connection.execute(
                    "SELECT question, query, list_a, list_b FROM questions"
                )
            }
            asked: dict[int, Question] = {}
            for query, question in study.questions.items():
                lists = (json.dumps(question.list_a), json.dumps(question.list_b))
                if query not in known:
                    row = connection.execute(
                        "INSERT INTO questions (query, list_a, list_b, identical) VALUES (?, ?, ?, ?)",
                        (query, *lists, question.is_identical),
                    )
                    known[query] = (row.lastrowid, *lists)
                number, *kept = known[query]
                if tuple(kept) != lists:
                    raise DataError(
                        f"{self.path} was begun with other lists for query {query!r}: rankings or "
                        "--top have changed. Remedy: begin another database with --db"
                    )
                if not question.is_identical:
                    asked[number] = question
        return asked

    def assessor(self, name: str) -> int:
        """The number of an assessor, entered on first use."""
        find = "SELECT assessor FROM assessors WHERE name = ?"
        found = self._rows(find, (name,))
        if found:
            return int(found[0][0])
        with self._transaction() as connection:
            connection.execute("INSERT OR IGNORE INTO assessors (name) VALUES (?)", (name,))
        return int(self._rows(find, (name,))[0][0])

    def given(self, assessor: int, *, undone: bool = False) -> list[Given]:
        """An assessor's answers that count, or those taken back, oldest first."""
        rows = self._rows(
            "SELECT id, question, answer, reason FROM answers WHERE assessor = ? "
            "AND (undone_at IS NOT NULL) = ? ORDER BY id",
            (assessor, undone),
        )
        return [_given(row) for row in rows]

    def record(
        self, assessor: int, question: int, answer: Answer, *, a_was_left: bool, reason: str = ""
    ) -> Given:
        """Write an answer to disk and return what counts: an earlier answer to it is kept."""
        values = (assessor, question, answer.value, a_was_left, reason, _now())
        with self._transaction() as connection:
            connection.execute(
                "INSERT INTO answers (assessor, question, answer, a_was_left, reason, answered_at) "
                "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                values,
            )
            row = connection.execute(
                "SELECT id, question, answer, reason FROM answers "
                "WHERE assessor = ? AND question = ? AND undone_at IS NULL",
                (assessor, question),
            ).fetchone()
        return _given(row)

    def undo(self, assessor: int, answer: int) -> int | None:
        """Take one answer of the assessor back and return its question; nothing if it did not count."""
        with self._transaction() as connection:
            row = connection.execute(
                "UPDATE answers SET undone_at = ? WHERE id = ? AND assessor = ? "
                "AND undone_at IS NULL RETURNING question",
                (_now(), answer, assessor),
            ).fetchone()
        return None if row is None else int(row[0])

    def revisit(self, assessor: int) -> None:
        """Take back every skip of the assessor, so that those questions are asked again."""
        with self._transaction() as connection:
            connection.execute(
                "UPDATE answers SET undone_at = ? WHERE assessor = ? AND answer = ? "
                "AND undone_at IS NULL",
                (_now(), assessor, Answer.SKIP.value),
            )

    def close(self) -> None:
        """Close the file; what was recorded is in it."""
        with self._lock:
            self._connection.close()


def chosen_seed(path: str | Path, seed: int | None) -> int:
    """The seed of the database at ``path``; where there is none yet, ``seed`` or a random one."""
    file = Path(path)
    if file.is_file() and file.stat().st_size:
        with _reading(file, timeout=5.0) as connection:
            if not _is_empty(connection):
                _check_kind(connection, file)
                kept = int(connection.execute("SELECT seed FROM study").fetchone()[0])
                _refuse_other_seed(file, kept, seed)
                return kept
    return secrets.randbits(32) if seed is None else seed


def read_judged(path: str | Path, *, timeout: float = 5.0) -> Judged:
    """All that a database holds; the file is only read, and may be in use by a server."""
    file = Path(path)
    if not file.is_file():
        raise DataError(f"{path}: there is no such file; unskew judge serve writes it")
    with _reading(file, timeout) as connection:
        if _is_empty(connection):
            raise StoreError(f"{path}: the database is empty; unskew judge serve begins one")
        _check_kind(connection, file)
        return _judged(connection, file)


@contextmanager
def _reading(file: Path, timeout: float) -> Iterator[sqlite3.Connection]:
    """The database as it is at one moment, only to be read."""
    with _told(file):
        uri = f"{file.absolute().as_uri()}?mode=ro"
        connection = sqlite3.connect(uri, uri=True, timeout=timeout, isolation_level=None)
        try:
            connection.execute("BEGIN")
            yield connection
        finally:
            connection.close()


def _judged(connection: sqlite3.Connection, path: Path) -> Judged:
    name_a, name_b, top, seed = connection.execute(
        "SELECT name_a, name_b, top, seed FROM study"
    ).fetchone()
    if name_a is None:
        raise StoreError(f"{path}: no study was begun in it yet; unskew judge serve begins one")
    queries = connection.execute("SELECT query, identical FROM questions ORDER BY question")
    known = queries.fetchall()
    rows = connection.execute(
        "SELECT query, name, answer, a_was_left, reason, answered_at FROM answers "
        "JOIN questions USING (question) JOIN assessors USING (assessor) "
        "WHERE undone_at IS NULL ORDER BY answers.id"
    )
    return Judged(
        name_a=name_a,
        name_b=name_b,
        top=top,
        seed=seed,
        asked=tuple(query for query, identical in known if not identical),
        identical=tuple(query for query, identical in known if identical),
        judgements=tuple(
            Judgement(query, name, Answer(answer), bool(a_was_left), reason, answered_at)
            for query, name, answer, a_was_left, reason, answered_at in rows
        ),
    )


def _refuse_other_seed(path: Path, kept: int, seed: int | None) -> None:
    if seed is not None and seed != kept:
        raise UsageError(
            f"{path} was begun with seed {kept}, got {seed}: the sides of its questions are drawn by "
            "it. Remedy: leave the seed out, or begin another database"
        )


def _given(row: tuple[Any, ...]) -> Given:
    number, question, answer, reason = row
    return Given(number, question, Answer(answer), reason)


def _is_empty(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone() is None


def _check_kind(connection: sqlite3.Connection, path: Path) -> None:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application != APPLICATION:
        raise StoreError(
            f"{path} is a database of something else, not of unskew judge. Remedy: another --db"
        )
    if version != VERSION:
        newer = version > VERSION
        remedy = "upgrade with pip install -U unskew" if newer else "begin another database"
        raise StoreError(
            f"{path} was written by {'a newer' if newer else 'an older'} Unskew (format {version}; "
            f"this one reads {VERSION}): {remedy}"
        )


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Tell an error of SQLite in terms of the file."""
    try:
        yield
    except sqlite3.Error as error:
        text = str(error)
        if "locked" in text or "busy" in text:
            message = (
                f"{path} is locked by another process. Remedy: stop what writes to it (another "
                "unskew judge serve, a database browser), then try again"
            )
        elif "not a database" in text:
            message = f"{path} is not a SQLite database. Remedy: another --db"
        else:
            message = f"{path}: the database cannot be used ({text})"
        raise StoreError(message) from error
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, UnskewError):
            raise
        raise StoreError(
            f"{path}: the database is damaged ({error}). Remedy: restore it, or begin another"
        ) from error


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
