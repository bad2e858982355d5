"""Where the command line writes: results to standard output, everything else to standard error.

Neither console interprets markup or emoji codes: the name of a file or a column is printed as it is.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

output = Console(markup=False, emoji=False, highlight=False)
errors = Console(stderr=True, markup=False, emoji=False, highlight=False)


def show(*parts: str | tuple[str, str], to: Console = output) -> None:
    """Print one text, without breaking its lines; a part with a style is ``(text, style)``."""
    to.print(Text.assemble(*parts), soft_wrap=True)


def say(message: str) -> None:
    """Print what is going on, dimmed, to standard error."""
    show((message, "dim"), to=errors)


def print_json(content: Any) -> None:
    """Print a result for programs."""
    typer.echo(json.dumps(content, indent=2, default=str))


def names_shown(names: Sequence[str], most: int = 60) -> str:
    """Names with commas; of very many, the first, and how many more there are."""
    more = f" and {len(names) - most:,} more (--json lists them)" if len(names) > most else ""
    return ", ".join(names[:most]) + more
