"""Several files as one table: columns are matched by name, and types widened without loss."""

from __future__ import annotations

import re
from collections.abc import Sequence

from unskew.errors import DataError

# What a column that holds nothing but nulls is taken for.
NOTHING = "NULL"
# Up to here every whole number is a DOUBLE.
EXACT_IN_DOUBLE = 2**53

_RANGES = {"BOOLEAN": (0, 1)} | {
    f"{sign}{name}": (0, 2**bits - 1) if sign else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    for sign in ("", "U")
    for name, bits in (("TINYINT", 8), ("SMALLINT", 16), ("INTEGER", 32), ("BIGINT", 64))
}
FLOATS = ("FLOAT", "DOUBLE")
_TIMES = ("TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP", "TIMESTAMP_NS")


def check_same_columns(
    first: str, columns: Sequence[str], other: str, others: Sequence[str]
) -> None:
    """Refuse a file that does not have the columns of the first one, in whatever order."""
    lacks = [name for name in columns if name not in set(others)]
    more = [name for name in others if name not in set(columns)]
    if lacks or more:
        parts = [f"lacks {_listed(lacks)}"] if lacks else []
        parts += [f"has {_listed(more)}"] if more else []
        raise DataError(
            f"{other}: its columns are not those of {first}: it {' and '.join(parts)}. Remedy: give "
            "all files the same column names (CSV: a header line in each), or read them apart."
        )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 8:,} more" if len(names) > 8 else ""
    return ", ".join(repr(name) for name in names[:8]) + more


def wider(a: str, b: str) -> str | None:
    """The narrowest DuckDB type that holds the values of both exactly; None if there is none.

    An integer of 64 bits beside a float gives DOUBLE: the caller sees that its values are no larger
    than `EXACT_IN_DOUBLE`.
    """
    if a == b or b == NOTHING:
        return a
    if a == NOTHING:
        return b
    if a in _RANGES and b in _RANGES:
        low, high = (f(x, y) for f, x, y in zip((min, max), _RANGES[a], _RANGES[b], strict=True))
        fitting = (t for t, (least, most) in _RANGES.items() if least <= low and high <= most)
        return min(fitting, key=lambda t: _RANGES[t][1] - _RANGES[t][0], default=None)
    if {a, b} <= {*FLOATS, *_RANGES}:
        # A FLOAT holds whole numbers up to 2**24, and so the integers of 8 and 16 bits.
        single = {a, b} <= {"FLOAT", "BOOLEAN", "TINYINT", "SMALLINT", "UTINYINT", "USMALLINT"}
        return "FLOAT" if single else "DOUBLE"
    if a in _TIMES and b in _TIMES:
        return max(a, b, key=_TIMES.index)
    return _wider_decimal(a, b)


def _wider_decimal(a: str, b: str) -> str | None:
    """The decimal type that holds two decimals, or a decimal and an integer."""
    digits = [found for kind in (a, b) if (found := _digits(kind))]
    if len(digits) < 2:
        return None
    before = max(width - scale for width, scale in digits)
    scale = max(scale for _, scale in digits)
    return f"DECIMAL({before + scale},{scale})" if before + scale <= 38 else None


def _digits(kind: str) -> tuple[int, int] | None:
    """The digits of a decimal or an integer, in all and behind the point."""
    if kind in _RANGES:
        return len(str(_RANGES[kind][1])), 0
    found = re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", kind)
    return (int(found[1]), int(found[2])) if found else None
