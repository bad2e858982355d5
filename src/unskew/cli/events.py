"""What the command line says about events: the grade of each type, and what grades are worth."""

from __future__ import annotations

from collections.abc import Sequence

from unskew.errors import UsageError

_IGNORED = "ignore"


def grades_of(given: Sequence[str] | None) -> dict[str, int | None] | None:
    """The grades of ``NAME=GRADE``; a type that is ignored has None."""
    if not given:
        return None
    grades: dict[str, int | None] = {}
    for text in given:
        name, equals, grade = text.rpartition("=")
        if not equals or not name or not (grade == _IGNORED or grade.isdecimal()):
            raise UsageError(
                f"--grade needs NAME=GRADE with a whole number, or NAME={_IGNORED}, got {text!r}"
            )
        if name in grades:
            raise UsageError(f"--grade names {name!r} twice")
        grades[name] = None if grade == _IGNORED else int(grade)
    return grades


def gains_of(given: str | None) -> list[float] | None:
    """The gains of ``1,5,20``."""
    if given is None:
        return None
    try:
        return [float(part) for part in given.split(",")]
    except ValueError:
        raise UsageError(
            f"--gains needs numbers with commas, one for each grade from 1 on, got {given!r}"
        ) from None
