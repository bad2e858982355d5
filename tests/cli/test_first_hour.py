"""What a newcomer must not meet: lines of our source in a command's output, phrases that say nothing."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs" / "how-to"


def command(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A command of a process of its own, as in a shell."""
    call = [sys.executable, "-m", "unskew", *arguments]
    return subprocess.run(call, cwd=cwd, capture_output=True, text=True, check=False)


def never_repeats() -> pa.Table:
    """A log in which no page was shown twice."""
    n = 12
    return pa.table(
        {
            "session": [k // 2 for k in range(2 * n)],
            "query": [f"q{k // 2}" for k in range(2 * n)],
            "doc": [f"d{k}" for k in range(2 * n)],
            "position": [1, 2] * n,
            "click": [1, 0] * (n // 2) + [0, 1] * (n // 2),
        }
    )


def test_a_warning_of_a_command_has_no_source_path(tmp_path: Path) -> None:
    """A warning is a note on the screen, without the file and the line in which it arose."""
    (tmp_path / "log" / "_temporary").mkdir(parents=True)
    pq.write_table(never_repeats(), tmp_path / "log" / "day.parquet")
    pq.write_table(never_repeats(), tmp_path / "log" / "_temporary" / "day.parquet")
    done = command("inspect", "log", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = done.stdout + done.stderr
    assert "note: log: 1 hidden or temporary file(s) or folder(s) are not read" in said
    assert ".py" not in said
    assert "Warning" not in said


def test_what_is_not_smaller_is_not_called_smaller(tmp_path: Path) -> None:
    """Where compression gains nothing, inspect says so, and not that the log is 0.5 times smaller."""
    pq.write_table(never_repeats(), tmp_path / "log.parquet")
    said = command("inspect", "log.parquet", cwd=tmp_path).stdout
    assert "patterns: little repeats, so that the log is not smaller for it" in said
    assert not re.search(r"times (smaller|fewer|less)", said)


def test_a_missing_column_is_answered_with_the_option(tmp_path: Path) -> None:
    """A log with names of its own is answered with the option of the command that names the column."""
    pq.write_table(never_repeats().rename_columns(list("sqdpc")), tmp_path / "log.parquet")
    done = command("inspect", "log.parquet", cwd=tmp_path)
    assert done.returncode == 1
    assert "there is no column 'session'" in done.stderr.replace("\n", " ")
    assert "--session" in done.stderr


@pytest.mark.parametrize(
    ("page", "upload", "use"),
    [
        ("export-elasticsearch", ["_ml/trained_models/", "_createmodel"], "learning_to_rank"),
        ("export-opensearch", ["_ltr/_featureset/", "_createmodel"], "sltr"),
        ("export-solr", ["schema/feature-store", "schema/model-store"], "{!ltr model="),
        ("export-vespa", ["vespa deploy"], "vespa query"),
    ],
)
def test_a_page_for_every_engine_shows_upload_and_query(
    page: str, upload: list[str], use: str
) -> None:
    """The page of an engine has the export, the upload of what was written, and a query that uses it."""
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    assert f"$ unskew export model --to {page.removeprefix('export-')}" in text
    blocks = "\n".join(
        re.findall(r"^```(?:console|text)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    )
    assert not [one for one in upload if one not in blocks]
    assert use in blocks
