"""Where the command line writes: results to standard output, everything else to standard error.

Neither console interprets markup or emoji codes: the name of a file or a column is printed as it is. Of
a URI neither shows the credentials.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from unskew.places import without_secrets_in

if TYPE_CHECKING:
    from unskew.evaluation.significance import Interval

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]

output = Console(markup=False, emoji=False, highlight=False)
errors = Console(stderr=True, markup=False, emoji=False, highlight=False)


def show(*parts: str | tuple[str, str], to: Console = output) -> None:
    """Print one text, without breaking its lines; a part with a style is ``(text, style)``."""
    hidden = [
        without_secrets_in(part)
        if isinstance(part, str)
        else (without_secrets_in(part[0]), part[1])
        for part in parts
    ]
    to.print(Text.assemble(*hidden), soft_wrap=True)


def say(message: str) -> None:
    """Print what is going on, dimmed, to standard error."""
    show((message, "dim"), to=errors)


def print_json(content: Any) -> None:
    """Print a result for programs: JSON, in which a number that is not finite is null."""
    typer.echo(without_secrets_in(json_text(content)))


def json_text(content: Any) -> str:
    """A result as JSON text, every number in it finite."""
    return json.dumps(_finite(content), indent=2, default=str, allow_nan=False)


def present(found: Any, shown: Callable[[Any], None], *, as_json: bool) -> None:
    """Print a result for programs, or for people by ``shown``."""
    if as_json:
        print_json(found.to_dict())
    else:
        shown(found)


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


def plain_table(
    title: str | None = None,
    *,
    texts: Iterable[str] = (),
    numbers: Iterable[str] = (),
    last: Iterable[str] = (),
) -> Table:
    """A table without lines: columns of text, then of numbers to the right, then of text again."""
    table = Table(title=title, title_justify="left", box=None)
    for names, justify in ((texts, "left"), (numbers, "right"), (last, "left")):
        for name in names:
            table.add_column(name, justify=justify, overflow="fold")  # type: ignore[arg-type]
    return table


def figures(rows: Iterable[tuple[str, str]]) -> Table:
    """Numbers, and beside each what it counts."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(justify="right", style="bold")
    grid.add_column(overflow="fold")
    for number, what in rows:
        grid.add_row(number, what)
    return grid


def ends(interval: Interval | None, form: str) -> str:
    """The ends of an interval; a dash where there is none."""
    return "–" if interval is None else f"[{interval.low:{form}}, {interval.high:{form}}]"
