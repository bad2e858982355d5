"""Temporary names belong to one living process each."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from unskew.claims import remove_abandoned, temporary_file, temporary_folder

fcntl = pytest.importorskip("fcntl", reason="locks on files are those of POSIX systems")


def test_a_folder_that_another_process_is_about_to_remove_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever finds a new folder before its lock takes it for abandoned; the maker takes another."""
    remover: dict[Path, int] = {}
    mkdir = Path.mkdir

    def mkdir_and_be_found(path: Path, mode: int = 0o777) -> None:
        mkdir(path, mode)
        if not remover:
            remover[path] = os.open(path, os.O_RDONLY)
            fcntl.flock(remover[path], fcntl.LOCK_EX | fcntl.LOCK_NB)

    monkeypatch.setattr(Path, "mkdir", mkdir_and_be_found)
    with temporary_folder(tmp_path) as folder:
        (found,) = remover
        assert folder.is_dir()
        assert folder != found
        os.close(remover[found])


def test_what_is_in_use_stays(tmp_path: Path) -> None:
    """A name without a lock is removed, one with a lock is not."""
    abandoned = tmp_path / ".unskew-0123456789abcdef"
    abandoned.mkdir()
    with temporary_folder(tmp_path) as folder, temporary_file(tmp_path) as file:
        assert not abandoned.exists()
        remove_abandoned(tmp_path)
        assert folder.is_dir()
        assert file.is_file()
    assert list(tmp_path.iterdir()) == []
