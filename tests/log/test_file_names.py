"""Names of files and folders: what exists is read, all of it, and nothing else."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import unskew
from unskew import DataError, UsageError
from unskew.log.sources import KINDS
from unskew.log.sources.files import files_of_one_kind


def log(first_session: int, doc: int = 10) -> pa.Table:
    """A log of two sessions."""
    s = first_session
    return pa.table(
        {
            "session": [s, s, s + 1, s + 1], "query": ["a"] * 4, "doc": [doc, 11, doc, 11],
            "position": [1, 2, 1, 2], "click": [1, 0, 0, 1],
        }
    )  # fmt: skip


def write(table: pa.Table, file: Path) -> Path:
    """The table in a file, as its ending says."""
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.name.lower().endswith(".parquet"):
        pq.write_table(table, file)
    else:
        sink = pa.BufferOutputStream()
        pyarrow.csv.write_csv(table, sink)
        content = sink.getvalue().to_pybytes()
        file.write_bytes(gzip.compress(content) if file.suffix.lower() == ".gz" else content)
    return file


PATTERNS = {"log[1]": "log1", "log*": "log-all", "log?": "log2", "[!a]": "b", "log[[]x": "log[x"}


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".csv.gz", ".CSV.GZ"])
@pytest.mark.parametrize("name", PATTERNS)
def test_a_name_that_exists_is_that_file(name: str, ending: str, tmp_path: Path) -> None:
    """A file whose name looks like a pattern is read, and not those that the pattern matches."""
    file = write(log(1), tmp_path / (name + ending))
    write(log(1, doc=99), tmp_path / (PATTERNS[name] + ending))
    for source in (file, [file]):
        assert unskew.read_log(source).documents.doc.tolist() == [10, 11]


@pytest.mark.parametrize("name", PATTERNS)
def test_a_folder_whose_name_looks_like_a_pattern(name: str, tmp_path: Path) -> None:
    """The same holds for folders."""
    for k in range(2):
        write(log(1 + 2 * k), tmp_path / name / f"part-{k}.parquet")
        write(log(1 + 2 * k, doc=99), tmp_path / PATTERNS[name] / f"part-{k}.parquet")
    assert unskew.read_log(tmp_path / name).documents.doc.tolist() == [10, 11]


def test_a_pattern_is_one_if_nothing_has_its_name(tmp_path: Path) -> None:
    """Without a file of that name a pattern means what it matches, odd names among them."""
    write(log(1), tmp_path / "log1.parquet")
    write(log(3), tmp_path / "log[.parquet")
    assert unskew.read_log(tmp_path / "log*.parquet").n_sessions == 4
    assert unskew.read_log(tmp_path / "log[12].parquet").n_sessions == 2


def test_a_pattern_with_a_backslash_is_refused(tmp_path: Path) -> None:
    """The one kind of name that cannot be read says so."""
    file = write(log(1), tmp_path / "a\\[1].parquet")
    with pytest.raises(DataError, match=r"a name with a backslash .*rename the file"):
        unskew.read_log(file)


def test_endings_in_capitals(tmp_path: Path) -> None:
    """B.PARQUET is data as a.parquet is."""
    write(log(1), tmp_path / "a.parquet")
    write(log(3), tmp_path / "B.PARQUET")
    assert unskew.read_log(tmp_path).n_sessions == 4


def test_linked_folders_and_files_are_read(tmp_path: Path) -> None:
    """Links lead to data like any other; a circle of links ends."""
    write(log(1), tmp_path / "data" / "a.parquet")
    write(log(3), tmp_path / "elsewhere" / "deep" / "b.parquet")
    write(log(5), tmp_path / "single.parquet")
    (tmp_path / "data" / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "data" / "c.parquet").symlink_to(tmp_path / "single.parquet")
    (tmp_path / "data" / "circle").symlink_to(tmp_path / "data")
    assert unskew.read_log(tmp_path / "data").n_sessions == 6


@pytest.mark.parametrize("pattern", ["data", "data/*.parquet"])
def test_a_link_to_a_file_that_is_read_anyway(pattern: str, tmp_path: Path) -> None:
    """`latest` beside the file it means is left out with a note, and nothing is counted twice."""
    file = write(log(1), tmp_path / "data" / "z.parquet")
    (tmp_path / "data" / "latest.parquet").symlink_to(file)
    with pytest.warns(UserWarning, match=r"1 link\(s\) .*latest\.parquet"):
        assert unskew.read_log(tmp_path / pattern).n_sessions == 2


def test_a_link_to_nothing_is_an_error(tmp_path: Path) -> None:
    """A part that is gone is not passed over."""
    write(log(1), tmp_path / "a.parquet")
    (tmp_path / "b.parquet").symlink_to(tmp_path / "gone.parquet")
    with pytest.raises(DataError, match=r"b\.parquet: .*a link to one that is not there"):
        unskew.read_log(tmp_path)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="everything is readable here")
def test_a_folder_that_cannot_be_read(tmp_path: Path) -> None:
    """A subfolder without permission is an error that names it."""
    write(log(1), tmp_path / "a.parquet")
    write(log(3), tmp_path / "locked" / "b.parquet")
    (tmp_path / "locked").chmod(0)
    try:
        with pytest.raises(DataError, match=r"locked: the folder cannot be read"):
            unskew.read_log(tmp_path)
    finally:
        (tmp_path / "locked").chmod(0o700)


def test_an_error_while_walking_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the system refuses to list ends the reading, whoever runs it."""
    write(log(1), tmp_path / "a.parquet")
    write(log(3), tmp_path / "locked" / "b.parquet")
    scan = os.scandir

    def refusing(path):  # type: ignore[no-untyped-def]
        if str(path).endswith("locked"):
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refusing)
    with pytest.raises(DataError, match=r"locked: the folder cannot be read \(Permission denied\)"):
        unskew.read_log(tmp_path)


@pytest.mark.parametrize("folder", [".ipynb_checkpoints", "_temporary", ".tmp-x", "deep/_old"])
def test_hidden_and_temporary_folders_are_no_data(folder: str, tmp_path: Path) -> None:
    """What tools leave behind is not read, and a note says so."""
    write(log(1), tmp_path / "deep" / "a.parquet")
    write(log(3), tmp_path / folder / "a.parquet")
    with pytest.warns(UserWarning, match=rf"1 hidden or temporary .*{folder}"):
        assert unskew.read_log(tmp_path).n_sessions == 2


def test_hidden_files_are_no_data(tmp_path: Path) -> None:
    """Nor are hidden files; a folder that the user names is read even if its name is hidden."""
    write(log(1), tmp_path / ".cache" / "a.parquet")
    write(log(3), tmp_path / ".cache" / "_day=3" / "a.parquet")
    write(log(5), tmp_path / ".cache" / ".b.parquet")
    (tmp_path / ".cache" / "_SUCCESS").touch()
    with pytest.warns(UserWarning, match=r"1 hidden or temporary .*\.b\.parquet"):
        assert unskew.read_log(tmp_path / ".cache").n_sessions == 4


def test_files_of_a_folder_and_below(tmp_path: Path) -> None:
    """Two stars match folders at any depth; what has another ending in a folder is passed over."""
    for name in ("a.csv", "one/b.csv", "one/two/c.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x\n1\n")
    (tmp_path / "one" / "notes.md").write_text("nothing")
    for path in (str(tmp_path), f"{tmp_path}/**/*.csv"):
        kind, files, name = files_of_one_kind([path], KINDS)
        assert [Path(file).name for file in files] == ["a.csv", "b.csv", "c.csv"]
        assert (kind.name, name) == ("csv", f"{path} (3 files)")
    assert files_of_one_kind([f"{tmp_path}/one/*.csv"], KINDS)[2] == f"{tmp_path}/one/b.csv"


def test_names_that_mark_what_is_hidden(tmp_path: Path) -> None:
    """A dot or an underscore in front; a part of the data such as _day=1 is none."""
    for name in ("_day=1/a.csv", "_temporary/b.csv", ".git/c.csv", "_d.csv", ".e.csv", "f_.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x\n1\n")
    with pytest.warns(UserWarning, match="4 hidden or temporary"):
        _, files, _ = files_of_one_kind([str(tmp_path)], KINDS)
    assert sorted(Path(file).name for file in files) == ["a.csv", "f_.csv"]


def test_paths_to_nothing(tmp_path: Path) -> None:
    """A missing file, a missing folder and a pattern without a match are told apart."""
    with pytest.raises(DataError, match=r"x\.csv: there is no such file; check"):
        files_of_one_kind([str(tmp_path / "x.csv")], KINDS)
    with pytest.raises(
        DataError, match=r"there is no such file \(there is no folder '.*nowhere' eit"
    ):
        files_of_one_kind([str(tmp_path / "nowhere" / "x.csv")], KINDS)
    with pytest.raises(DataError, match=r"\*\.csv: no file matches"):
        files_of_one_kind([str(tmp_path / "*.csv")], KINDS)


def test_one_file_by_two_paths(tmp_path: Path) -> None:
    """A file that two paths lead to is refused, and both names of it are told."""
    file = write(log(1), tmp_path / "a.csv")
    with pytest.raises(
        UsageError, match=r"a\.csv is the same file as .*a\.csv: name each file once"
    ):
        files_of_one_kind([str(file), str(tmp_path)], KINDS)
    write(log(1), tmp_path / "b.csv")
    assert len(files_of_one_kind([str(file), str(tmp_path / "b.csv")], KINDS)[1]) == 2
