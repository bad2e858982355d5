"""The judgements on disk: nothing lost, nothing doubled, and clear errors for foreign files."""

from __future__ import annotations

import sqlite3
import threading

import pytest

from unskew.errors import DataError, StoreError, UsageError
from unskew.online.judging.answers import Answer
from unskew.online.judging.database import VERSION, Database, chosen_seed, read_judged
from unskew.online.judging.queries import Query
from unskew.online.judging.rankings import Ranking
from unskew.online.judging.study import make_study


def test_answers_are_there_for_another_process(desk_and_database):
    """What `record` has returned from is in the file, read by a connection of its own."""
    desk, database = desk_and_database()
    number = next(iter(desk.questions))
    database.record(
        database.assessor("Ann"), number, Answer.LEFT, a_was_left=False, reason="why 🥾\nmore"
    )
    (found,) = read_judged(database.path).judgements
    assert (found.query, found.assessor, found.outcome.value) == ("q00", "Ann", "loss")
    assert found.reason == "why 🥾\nmore"


def test_every_commit_is_synced(desk_and_database):
    """The journal is a write-ahead log that is synced at every commit."""
    _, database = desk_and_database()
    assert database._rows("PRAGMA journal_mode") == [("wal",)]
    assert database._rows("PRAGMA synchronous") == [(2,)]  # FULL


def test_one_answer_counts(desk_and_database):
    """A second answer to the same question changes nothing and returns the first."""
    desk, database = desk_and_database()
    ann, number = database.assessor("Ann"), next(iter(desk.questions))
    first = database.record(ann, number, Answer.LEFT, a_was_left=True)
    assert database.record(ann, number, Answer.RIGHT, a_was_left=True) == first
    assert [given.answer for given in database.given(ann)] == [Answer.LEFT]


def test_undo(desk_and_database):
    """An answer taken back does not count, stays on record, and can be given anew."""
    desk, database = desk_and_database()
    ann, bob, number = (
        database.assessor("Ann"),
        database.assessor("Bob"),
        next(iter(desk.questions)),
    )
    first = database.record(ann, number, Answer.LEFT, a_was_left=True, reason="r")
    assert database.undo(bob, first.id) is None
    assert database.undo(ann, first.id) == number
    assert database.undo(ann, first.id) is None
    assert database.given(ann) == []
    assert [given.reason for given in database.given(ann, undone=True)] == ["r"]
    database.record(ann, number, Answer.SAME, a_was_left=True)
    assert [j.answer for j in read_judged(database.path).judgements] == [Answer.SAME]


def test_revisit(desk_and_database):
    """Skipped questions come back, the others stay answered, and nobody else is touched."""
    desk, database = desk_and_database()
    ann, bob, (x, y, *_) = database.assessor("Ann"), database.assessor("Bob"), desk.questions
    for who, number, answer in ((ann, x, "skip"), (ann, y, "same"), (bob, x, "skip")):
        database.record(who, number, Answer(answer), a_was_left=True)
    database.revisit(ann)
    assert [g.question for g in database.given(ann)] == [y]
    assert [g.question for g in database.given(bob)] == [x]


def test_threads(desk_and_database):
    """Threads that answer the same questions at once leave one answer each."""
    desk, database = desk_and_database(n=20)
    ann = database.assessor("Ann")

    def work(answer):
        for number in desk.questions:
            database.record(ann, number, answer, a_was_left=True)

    threads = [threading.Thread(target=work, args=(answer,)) for answer in Answer]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(g.question for g in database.given(ann)) == sorted(desk.questions)


def study(lists_b, *queries):
    """A study of the given queries whose B list is ``lists_b``."""
    a = Ranking("new", dict.fromkeys(queries, ("1", "2")))
    return make_study(a, Ranking("old", dict.fromkeys(queries, lists_b)))


def test_a_study_goes_on_and_grows(tmp_path):
    """The same study keeps its question numbers after a restart, and queries can be added."""
    path = tmp_path / "db.sqlite"
    database = Database(path, seed=3)
    first = database.begin(study(("2", "1"), "x", "y"))
    secret = database.secret
    database.close()
    database = Database(path)
    assert (database.seed, database.secret) == (3, secret)
    more = database.begin(study(("2", "1"), "x", "y", "z"))
    assert {k: q.query for k, q in more.items() if k in first} == {
        k: q.query for k, q in first.items()
    }
    with pytest.raises(
        DataError, match="other lists for query 'x': rankings or --top have changed"
    ):
        database.begin(study(("3", "1"), "x"))
    database.close()
    with pytest.raises(UsageError, match="was begun with seed 3, got 4"):
        Database(path, seed=4)
    assert chosen_seed(path, None) == 3


def test_ids_of_every_kind(tmp_path):
    """Queries and documents come back as they were, whatever their characters."""
    ids = ("0012", "12345678901234567890", "🥾", "a'b\"c", "x\ty", "  ", "Ω" * 500, "NULL")
    database = Database(tmp_path / "db.sqlite")
    asked = database.begin(study(("🥾", "1"), *ids))
    assert [q.query for q in asked.values()] == [Query(key) for key in ids]
    database.close()
    assert read_judged(tmp_path / "db.sqlite").asked == ids


@pytest.mark.parametrize("version", [VERSION + 1, VERSION - 1])
def test_another_version(desk_and_database, version):
    """A database of a newer or older format is refused by name, not misread."""
    _, database = desk_and_database()
    database.close()
    connection = sqlite3.connect(database.path)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    message = "newer Unskew" if version > VERSION else "older Unskew"
    for use in (Database, read_judged, lambda path: chosen_seed(path, None)):
        with pytest.raises(StoreError, match=message):
            use(database.path)


def test_foreign_files(tmp_path):
    """A file that is no database, one of another program, an empty one and none are told apart."""
    (tmp_path / "text.sqlite").write_text("query,doc\n" * 1000, encoding="utf-8")
    connection = sqlite3.connect(tmp_path / "other.sqlite")
    connection.execute("CREATE TABLE t (x)")
    connection.close()
    (tmp_path / "empty.sqlite").touch()
    for use in (Database, read_judged):
        with pytest.raises(StoreError, match="is not a SQLite database"):
            use(tmp_path / "text.sqlite")
        with pytest.raises(StoreError, match="a database of something else"):
            use(tmp_path / "other.sqlite")
    with pytest.raises(StoreError, match="the database is empty"):
        read_judged(tmp_path / "empty.sqlite")
    with pytest.raises(DataError, match="there is no such file"):
        read_judged(tmp_path / "absent.sqlite")
    with pytest.raises(DataError, match="there is no folder"):
        Database(tmp_path / "no" / "db.sqlite")
    Database(tmp_path / "empty.sqlite").close()
    with pytest.raises(StoreError, match="no study was begun"):
        read_judged(tmp_path / "empty.sqlite")


def test_locked_by_another(desk_and_database):
    """While another process writes, an answer is refused, not lost in silence; then it works."""
    desk, database = desk_and_database(timeout=0.1)
    ann, number = database.assessor("Ann"), next(iter(desk.questions))
    other = sqlite3.connect(database.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match=r"is locked by another process\. Remedy"):
        database.record(ann, number, Answer.LEFT, a_was_left=True)
    assert read_judged(database.path).judgements == ()
    other.execute("ROLLBACK")
    other.close()
    database.record(ann, number, Answer.LEFT, a_was_left=True)
    assert len(read_judged(database.path).judgements) == 1


def test_locked_while_opening(tmp_path):
    """A database that another process holds exclusively cannot be opened, and the error says so."""
    path = tmp_path / "db.sqlite"
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    other.execute("CREATE TABLE t (x)")
    with pytest.raises(StoreError, match="is locked by another process"):
        Database(path, timeout=0.1)
    with pytest.raises(StoreError, match="is locked by another process"):
        read_judged(path, timeout=0.1)
    other.execute("ROLLBACK")
    other.close()
