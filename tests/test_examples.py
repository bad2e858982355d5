"""The examples run from top to bottom on the data they are about, as scripts and as notebooks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
sys.path.insert(0, str(EXAMPLES))

import notebook  # noqa: E402

# Runs the cells of a notebook one after the other, and shows each by its last expression.
RUN_CELLS = """
import ast, json, sys
names = {}
for cell in json.load(open(sys.argv.pop(1), encoding="utf-8"))["cells"]:
    if cell["cell_type"] == "code":
        body = ast.parse("".join(cell["source"]))
        last = body.body.pop() if isinstance(body.body[-1], ast.Expr) else None
        exec(compile(body, "cell", "exec"), names)
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last else None
        shown = getattr(value, "_repr_html_", str)()
        assert len(shown) < 2_000_000
"""


@pytest.mark.parametrize("script", notebook.examples(), ids=lambda script: script.stem)
def test_a_notebook_is_made_from_its_script(script: Path) -> None:
    """The notebook has the cells of the script, and no output that could hold data."""
    found = script.with_suffix(".ipynb").read_text(encoding="utf-8")
    message = "make the notebooks anew with python examples/notebook.py"
    assert found == notebook.notebook(script.read_text(encoding="utf-8")), message
    code = [cell for cell in json.loads(found)["cells"] if cell["cell_type"] == "code"]
    assert code
    assert not [cell for cell in code if cell["outputs"] or cell["execution_count"]]


@pytest.mark.parametrize(
    "command",
    [[str(EXAMPLES / "expedia.py")], ["-c", RUN_CELLS, str(EXAMPLES / "expedia.ipynb")]],
    ids=["script", "notebook"],
)
def test_the_expedia_example_ends_with_a_decision(
    real_data: Path, tmp_path: Path, command: list[str]
) -> None:
    """It reads the log, measures the bias, trains, and writes a report with an answer."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *command],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "UNSKEW_DATA": str(real_data)},
    )
    assert done.returncode == 0, done.stderr
    assert "position 2: measured 0.77" in done.stdout
    assert "what is live" in done.stdout.splitlines()[-1]
    assert (tmp_path / "expedia.html").stat().st_size < 2_000_000


def test_without_the_data_the_example_says_what_to_give(tmp_path: Path) -> None:
    """Where the data is absent, the message names the file and the way to give it."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "expedia.py")],
        capture_output=True, text=True, check=False, cwd=tmp_path,
        env={**os.environ, "UNSKEW_DATA": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 1
    assert "searches.csv.gz is not there: give the path" in done.stderr
