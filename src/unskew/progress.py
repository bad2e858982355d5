"""Progress of long work: a bar on standard error that can be silenced."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Advance = Callable[..., None]


@contextmanager
def progress_bar(title: str, total: int | None, *, show: bool) -> Iterator[Advance]:
    """A progress bar; the block gets ``advance(steps, note="")`` to move it.

    Nothing is drawn when ``show`` is false or standard error is not a terminal.
    """
    if not show:
        yield lambda steps, note="": None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    console = Console(stderr=True)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(title, total=total, note="")

        def advance(steps: int, note: str = "") -> None:
            bar.update(task, advance=steps, note=note)

        yield advance
