"""Where the command line writes: results to standard output, everything else to standard error."""

from __future__ import annotations

from rich.console import Console

__all__ = ["errors", "output"]

output = Console()
errors = Console(stderr=True)
