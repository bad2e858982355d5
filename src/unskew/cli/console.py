"""Where the command line writes: results to standard output, everything else to standard error.

Neither console interprets markup or emoji codes: the name of a file or a column is printed as it is.
"""

from __future__ import annotations

import json
import math
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
    """Print a result for programs: JSON, in which a number that is not finite is null."""
    typer.echo(json_text(content))


def json_text(content: Any) -> str:
    """A result as JSON text, every number in it finite."""
    return json.dumps(_finite(content), indent=2, default=str, allow_nan=False)


def _finite(content: Any) -> Any:
    """The content with null in the place of NaN and infinity, which JSON does not have."""
    if isinstance(content, dict):
        return {key: _finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    if isinstance(content, float) and not math.isfinite(content):
        return None
    return content


def names_shown(names: Sequence[str], most: int = 60) -> str:
    """Names with commas; of very many, the first, and how many more there are."""
    more = f" and {len(names) - most:,} more (--json lists them)" if len(names) > most else ""
    return ", ".join(names[:most]) + more
