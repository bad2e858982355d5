"""Pictures for the terminal: bars and curves out of block characters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = ["bar", "curves"]

_EIGHTHS = " ▏▎▍▌▋▊▉"


def bar(value: float, maximum: float, width: int = 30) -> str:
    """A horizontal bar whose length is ``value / maximum`` of ``width`` characters."""
    if not maximum > 0 or not value > 0:
        return ""
    eighths = round(min(value / maximum, 1.0) * width * 8)
    full, rest = divmod(eighths, 8)
    return "█" * full + (_EIGHTHS[rest] if rest else "")


def curves(
    columns: Mapping[str, Sequence[float]],
    *,
    index: str = "position",
    width: int = 24,
    rows: int = 20,
) -> str:
    """Curves over positions 1, 2, … side by side: a number and a bar for each entry.

    Only the first ``rows`` entries are drawn; a last line says how many follow.
    """
    length = max(len(values) for values in columns.values())
    top = {name: max(values, default=0.0) for name, values in columns.items()}
    lines = [f"{index}  " + "  ".join(f"{name:<{width + 8}}" for name in columns)]
    for k in range(min(length, rows)):
        cells = [
            f"{values[k]:>7.3f} {bar(values[k], top[name], width):<{width}}"
            for name, values in columns.items()
        ]
        lines.append(f"{k + 1:>{len(index)}}  " + "  ".join(cells))
    if length > rows:
        lines.append(f"… and {length - rows} more")
    return "\n".join(line.rstrip() for line in lines)
