"""Pictures for the terminal: bars and curves out of block characters."""

from __future__ import annotations

__all__ = ["bar"]

_EIGHTHS = " ▏▎▍▌▋▊▉"


def bar(value: float, maximum: float, width: int = 30) -> str:
    """A horizontal bar whose length is ``value / maximum`` of ``width`` characters."""
    if not maximum > 0 or not value > 0:
        return ""
    eighths = round(min(value / maximum, 1.0) * width * 8)
    full, rest = divmod(eighths, 8)
    return "█" * full + (_EIGHTHS[rest] if rest else "")
