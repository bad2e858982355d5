"""Pictures for the terminal: bars and curves out of block characters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_EIGHTHS = " ▏▎▍▌▋▊▉"
# The width of an interval such as [0.00, 1.00] and the space after it.
_SPAN = 13


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
    spans: Mapping[str, Sequence[tuple[float, float]]] | None = None,
    width: int = 24,
    rows: int = 20,
) -> str:
    """Curves over positions 1, 2, … side by side: a number and a bar for each entry.

    Columns with ``spans`` have an interval after each number. NaN is shown as a dash. Only the first
    ``rows`` entries are drawn; a last line says how many follow.
    """
    spans = spans or {}
    length = max(len(values) for values in columns.values())
    top = {
        name: max((v for v in values if v == v), default=0.0) for name, values in columns.items()
    }
    wide = {name: width + 8 + (_SPAN if name in spans else 0) for name in columns}
    index = "position"
    lines = [f"{index}  " + "  ".join(f"{name:<{wide[name]}}" for name in columns)]
    for k in range(min(length, rows)):
        cells = [
            f"{_number(values, k)} {_span(spans.get(name), k)}"
            f"{bar(values[k] if k < len(values) else 0.0, top[name], width):<{width}}"
            for name, values in columns.items()
        ]
        lines.append(f"{k + 1:>{len(index)}}  " + "  ".join(cells))
    if length > rows:
        lines.append(f"… and {length - rows} more")
    return "\n".join(line.rstrip() for line in lines)


def _number(values: Sequence[float], k: int) -> str:
    known = k < len(values) and values[k] == values[k]
    return f"{values[k]:>7.3f}" if known else f"{'–':>7}"


def _span(span: Sequence[tuple[float, float]] | None, k: int) -> str:
    if span is None:
        return ""
    return f"{f'[{span[k][0]:.2f}, {span[k][1]:.2f}]':<{_SPAN}}" if k < len(span) else " " * _SPAN
