"""Write the notebook of each example: ``python examples/notebook.py``.

An example is a script of cells, which begin with ``# %%``. The script is what people edit; the
notebook is made from it and holds no output, so that no data of a log gets into the repository.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
_CELL = re.compile(r"^# %%( \[markdown\])?\n", re.MULTILINE)


def cells(script: str) -> list[dict[str, Any]]:
    """The cells of a script, in the form of a notebook."""
    _, *parts = _CELL.split(script)
    kinds, texts = parts[::2], parts[1::2]
    return [
        _markdown(number, text) if kind else _code(number, text)
        for number, (kind, text) in enumerate(zip(kinds, texts, strict=True))
    ]


def _markdown(number: int, text: str) -> dict[str, Any]:
    plain = re.sub(r"^# ?", "", text.strip(), flags=re.MULTILINE)
    return {
        "cell_type": "markdown",
        "id": f"cell-{number}",
        "metadata": {},
        "source": _lines(plain),
    }


def _code(number: int, text: str) -> dict[str, Any]:
    return {
        "cell_type": "code", "execution_count": None, "id": f"cell-{number}", "metadata": {},
        "outputs": [], "source": _lines(text.strip()),
    }  # fmt: skip


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def notebook(script: str) -> str:
    """The text of the notebook of a script."""
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    content = {
        "cells": cells(script), "metadata": {"kernelspec": kernel}, "nbformat": 4,
        "nbformat_minor": 5,
    }  # fmt: skip
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def examples() -> list[Path]:
    """The scripts that have cells."""
    scripts = sorted(FOLDER.glob("*.py"))
    return [file for file in scripts if file.read_text(encoding="utf-8").startswith("# %%")]


if __name__ == "__main__":
    for script in examples():
        text = notebook(script.read_text(encoding="utf-8"))
        script.with_suffix(".ipynb").write_text(text, encoding="utf-8")
