"""Saved folders behind URIs, on a real S3 server: whole or not at all, and checked like local ones."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import unskew
from s3_server import S3Server
from unskew import remote_writing
from unskew.errors import DataError, StoreError
from unskew.log.into_parts import compact_into_parts
from unskew.log.merging import take_queries
from unskew.log.parts import parts_writer, write_part
from unskew.log.read import LogOptions
from unskew.places import MANIFEST, RemotePath
from unskew.store import manifest_text


def _clicks(n: int = 60) -> pa.Table:
    numbers = np.arange(4 * n)
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "session": numbers // 4,
            "query": [f"q{k // 4 % 9}" for k in numbers],
            "doc": numbers % 4,
            "position": numbers % 4 + 1,
            "click": (rng.random(4 * n) < 0.4).astype(np.int64),
            "context": [("phone", "desk")[k // 4 % 2] for k in numbers],
            "x": numbers // 4 % 9 * 10 + numbers % 4 + 0.5,
            "colour": [("blue", "red", None)[k % 3] for k in numbers // 4 % 9 + numbers % 4],
        }
    )


OPTIONS: dict[str, Any] = {"context": "context", "categorical": ["colour"]}


@pytest.fixture(scope="module")
def data() -> unskew.Impressions:
    """A log with contexts and a category."""
    return unskew.read_log(_clicks(), **OPTIONS)


def _same_parts(one: Any, other: Any) -> None:
    one, other = unskew.Parts.open(one), unskew.Parts.open(other)
    assert [entry.counts for entry in one.entries] == [entry.counts for entry in other.entries]
    assert one.categories == other.categories
    assert one.contexts == other.contexts
    for k in range(len(one)):
        assert one[k].equals(other[k])
        assert one.without_features(k).equals(other.without_features(k))


def test_the_parts_of_a_folder(s3: S3Server, tmp_path: Path, data: unskew.Impressions) -> None:
    """A log compacted into a URI gives the parts that it gives in a folder, and the whole again."""
    parts = unskew.compact(_clicks(), s3.uri("parts"), parts=3, **OPTIONS)
    unskew.compact(_clicks(), tmp_path / "parts", parts=3, **OPTIONS)
    _same_parts(s3.uri("parts"), tmp_path / "parts")
    assert unskew.load(s3.uri("parts")).equals(data)
    assert "3 parts, 60 sessions" in repr(parts)
    names = s3.names("parts")
    assert len(names) == 1 + 3 * 5
    for name in names:
        assert b"secret" not in s3.read(f"parts/{name}")


def test_parts_from_pieces(
    s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: unskew.Impressions
) -> None:
    """A log that does not fit spills among the temporary files, and leaves none of them."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr("unskew.log.into_parts.limit_bytes", lambda _: 1)
    options = LogOptions(
        columns=unskew.log.schema.Columns(context="context"), categorical=["colour"]
    )
    compact_into_parts(_clicks(), options, s3.uri("pieces"), 2)
    assert unskew.load(s3.uri("pieces")).equals(data)
    assert not list((tmp_path / "temporary").iterdir())


def test_a_plain_uri_and_a_copied_folder(
    s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: unskew.Impressions
) -> None:
    """Credentials come from the environment, and a folder of parts that was copied there is read."""
    s3.in_environment(monkeypatch)
    data.save(tmp_path / "parts", parts=2)
    for file in (tmp_path / "parts").rglob("*.*"):
        s3.write(f"copied/{file.relative_to(tmp_path / 'parts')}", file.read_bytes())
    _same_parts("s3://logs/copied", tmp_path / "parts")


def test_saved_whole(s3: S3Server, data: unskew.Impressions) -> None:
    """Impressions in one piece, and a model, are saved behind a URI, replaced and loaded."""
    for part in (take_queries(data, np.arange(4)), data):
        part.save(s3.uri("whole"))
        assert unskew.load(s3.uri("whole")).equals(part)
        assert len(s3.names("whole")) == 5
    assert unskew.Parts.open(s3.uri("whole"))[0].equals(data)
    ranker = unskew.UnbiasedLambdaMART(n_estimators=2, verbose=0, min_sum_hessian_in_leaf=0.01)
    ranker.fit(s3.uri("whole")).save(s3.uri("model"))
    again: Any = unskew.load(s3.uri("model"))
    assert np.array_equal(again.predict(data), ranker.predict(data))
    with pytest.raises(StoreError, match=r"…@logs/model\?.* holds 'lambdamart', not 'impressions'"):
        data.save(s3.uri("model"))


def test_new_parts_replace_the_old_ones(s3: S3Server, data: unskew.Impressions) -> None:
    """Compacting again leaves exactly the new parts; what is not ours is never written over."""
    data.save(s3.uri("again"), parts=4)
    few = take_queries(data, np.arange(3))
    few.save(s3.uri("again"), parts=2)
    assert unskew.load(s3.uri("again")).equals(few)
    assert len(s3.names("again")) == 1 + 2 * 5
    s3.write("foreign/part-00000-x.parquet", b"of somebody else")
    with pytest.raises(
        StoreError, match=r"foreign\?.* was not saved by Unskew: nothing was written"
    ):
        unskew.compact(_clicks(), s3.uri("foreign"), **OPTIONS)
    assert s3.names("foreign") == ["part-00000-x.parquet"]


def test_attempts_of_a_task(s3: S3Server, data: unskew.Impressions) -> None:
    """A task that was repeated wrote its part twice: one counts, the other is removed."""
    with parts_writer(s3.uri("attempts")) as writer:
        write_part(data, writer.folder(0, "-7"))
        writer.take(write_part(data, writer.folder(0, "-8")))
    assert unskew.load(s3.uri("attempts")).equals(data)
    assert len(s3.names("attempts")) == 6


def test_an_interruption_leaves_nothing(s3: S3Server, data: unskew.Impressions) -> None:
    """A block that fails leaves the old parts, or nothing at all."""
    data.save(s3.uri("kept"), parts=2)
    before = s3.names("kept")

    def fail(name: str) -> None:
        with parts_writer(s3.uri(name)) as writer:
            writer.add(data)
            raise KeyboardInterrupt

    for name in ("kept", "never"):
        with pytest.raises(KeyboardInterrupt):
            fail(name)
    assert s3.names("kept") == before
    assert s3.names("never") == []
    assert unskew.load(s3.uri("kept")).equals(data)
    with pytest.raises(StoreError, match=r"…@logs/never\?.* has no unskew\.json"):
        unskew.load(s3.uri("never"))


def _killed(s3: S3Server, name: str, data: unskew.Impressions) -> str:
    """Leave what a writer leaves whose process is ended before the manifest; returns its token."""
    writing = parts_writer(s3.uri(name))
    writer = writing.__enter__()
    writer.add(data)
    left = {one: s3.read(f"{name}/{one}") for one in s3.names(name)}
    assert not writing.__exit__(RuntimeError, RuntimeError(), None)
    for one, content in left.items():
        s3.write(f"{name}/{one}", content)
    return writer.folder(0).name.rpartition("-")[2]


def test_a_killed_writer(
    s3: S3Server, data: unskew.Impressions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a killed process left is no log, does not stop the next one, and is removed in time."""
    token = _killed(s3, "killed", data)
    for read in (unskew.Parts.open, unskew.load, unskew.read_log):
        with pytest.raises(
            StoreError, match=r"…@logs/killed\?.* is not complete: .*, or write it again"
        ):
            read(s3.uri("killed"))
    data.save(s3.uri("killed"), parts=1)
    assert unskew.load(s3.uri("killed")).equals(data)
    assert any(token in name for name in s3.names("killed"))  # it may be writing still
    monkeypatch.setattr(remote_writing, "ABANDONED", timedelta(days=-1))
    data.save(s3.uri("killed"), parts=2)
    assert unskew.load(s3.uri("killed")).equals(data)
    assert len(s3.names("killed")) == 1 + 2 * 5


def test_what_counts_is_not_taken_for_abandoned(
    s3: S3Server, data: unskew.Impressions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer that was killed after the manifest leaves its marker, but its parts count."""
    data.save(s3.uri("marked"), parts=1)
    token = unskew.Parts.open(s3.uri("marked")).entries[0].name.rpartition("-")[2]
    s3.write(f"marked/.unskew-{token}", b"")
    monkeypatch.setattr(remote_writing, "ABANDONED", timedelta(days=-1))
    with pytest.raises(RuntimeError), parts_writer(s3.uri("marked")):
        raise RuntimeError
    assert unskew.load(s3.uri("marked")).equals(data)
    assert f".unskew-{token}" not in s3.names("marked")


def test_two_writers(s3: S3Server, data: unskew.Impressions) -> None:
    """Of two that write at a time, the last one counts, and neither takes the other's parts."""
    few = take_queries(data, np.arange(3))
    with parts_writer(s3.uri("two")) as slow:
        slow.add(data)
        few.save(s3.uri("two"), parts=1)
        assert unskew.load(s3.uri("two")).equals(few)
    assert unskew.load(s3.uri("two")).equals(data)
    assert len(s3.names("two")) == 6


def _changed(s3: S3Server, path: str, **entries: Any) -> None:
    """Write entries of a manifest anew and sign it."""
    manifest = json.loads(s3.read(f"{path}/{MANIFEST}"))
    s3.write(f"{path}/{MANIFEST}", manifest_text({**manifest, **entries}).encode())


def test_damage_is_noticed(s3: S3Server, data: unskew.Impressions) -> None:
    """Missing parts, changed and cut files, and newer versions have the messages of a folder."""

    def refused(match: str) -> None:
        with pytest.raises(StoreError, match=match) as raised:
            unskew.load(s3.uri("damaged"))
        assert "secret" not in str(raised.value)
        data.save(s3.uri("damaged"), parts=2)

    data.save(s3.uri("damaged"), parts=2)
    folder = f"damaged/{unskew.Parts.open(s3.uri('damaged')).entries[1].name}"
    s3.files.delete_dir(f"logs/{folder}")
    refused(rf"{folder}\?.* is missing: .* is incomplete, restore it or compact the log again")
    for content, match in (
        (lambda raw: raw[::-1], "was changed"),
        (lambda raw: raw[:9], "truncated"),
    ):
        name = next(name for name in s3.names("damaged") if "pages" in name)
        s3.write(f"damaged/{name}", content(s3.read(f"damaged/{name}")))
        refused(rf"/pages-[0-9a-f]{{8}}\.parquet\?.* {match}")
    s3.files.delete_file(f"logs/damaged/{next(n for n in s3.names('damaged') if 'features' in n)}")
    refused(r"/features-[0-9a-f]{8}\.parquet\?.* is missing: the folder is incomplete")
    _changed(s3, "damaged", version=99)
    refused("was saved by a newer Unskew")
    _changed(s3, "damaged", parts=[{"name": "../x"}])
    refused("does not describe parts")


def test_a_query_in_two_parts(s3: S3Server, data: unskew.Impressions) -> None:
    """Parts that share a query cannot be added up without a word."""
    with parts_writer(s3.uri("shared")) as writer:
        writer.add(take_queries(data, np.array([0, 1, 2])))
        writer.add(take_queries(data, np.array([2, 3])))
    with pytest.raises(StoreError, match="query 'q2' stands in two parts, part-00000"):
        unskew.load(s3.uri("shared"))


def test_no_bucket_and_no_permission(
    s3: S3Server, data: unskew.Impressions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bucket that is not there, and credentials that the server refuses, are told with the setting."""
    elsewhere = s3.uri("x").replace("@logs/", "@nowhere/")
    with pytest.raises(StoreError, match=r"…@nowhere/x\?.* is not there: give the folder"):
        unskew.load(elsewhere)
    monkeypatch.setattr("unskew.log.into_parts.read_rows", lambda *_: pytest.fail("was read"))
    with pytest.raises(
        DataError, match=r"written \(.*that there is such a bucket.*AWS_ACCESS_KEY_ID"
    ):
        unskew.compact(_clicks(), elsewhere, **OPTIONS)
    with s3.checking_credentials():
        for use in (unskew.load, lambda uri: data.save(uri, parts=1)):
            with pytest.raises(StoreError, match=r"cannot be opened .*AWS_ACCESS_KEY_ID") as raised:
                use(s3.uri("parts", "AKIA:very-private"))
            assert "private" not in str(raised.value)


def test_the_marks_of_others_stay(s3: S3Server) -> None:
    """Whoever asks what is abandoned finds only names of ours."""
    s3.write("odd/.unskew-next", b"")
    with remote_writing.claimed_token(RemotePath(s3.uri("odd"))) as token:
        assert f".unskew-{token}" in s3.names("odd")
    assert s3.names("odd") == [".unskew-next"]
