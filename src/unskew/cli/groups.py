"""Groups of options that several commands share, each declared once."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints

import typer

from unskew.errors import UsageError


def panel(title: str) -> Callable[..., Any]:
    """What declares the options of one panel of a help page: by their text, and whatever else."""

    def option(text: str, *names: str, **more: Any) -> Any:
        return typer.Option(*names, help=text, rich_help_panel=title, **more)

    return option


def spell_out(command: Callable[..., None]) -> Callable[..., None]:
    """The command as Typer needs it: each group among its parameters is spelled out in options.

    A group is a dataclass whose fields are annotated as the parameters of a command are. Typer sees
    one parameter for each field; the command is given one object.
    """
    declared = signature(command, eval_str=True).parameters
    groups: dict[str, Any] = {
        p.name: p.annotation for p in declared.values() if is_dataclass(p.annotation)
    }
    options: list[Parameter] = []
    for parameter in declared.values():
        group = groups.get(parameter.name)
        options += _fields(group) if group else [parameter.replace(kind=Parameter.KEYWORD_ONLY)]

    @wraps(command)
    def run(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        command(**given)

    run.__signature__ = Signature(options)  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in options}
    return run


def refuse_idle(reason: str, given: Mapping[str, bool]) -> None:
    """Refuse the first option that was given and cannot act; ``reason`` says why not."""
    for option, was_given in given.items():
        if was_given:
            raise UsageError(f"{option} has no effect here: {reason}")


def given_of(group: Any, names: Container[str] | None = None) -> dict[str, bool]:
    """Which options of a group, by default all of them, differ from their defaults."""
    return {
        f"--{field.name.replace('_', '-')}": getattr(group, field.name) != field.default
        for field in fields(group)
        if names is None or field.name in names
    }


def _fields(group: Any) -> list[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        Parameter(f.name, Parameter.KEYWORD_ONLY, default=f.default, annotation=hints[f.name])
        for f in fields(group)
    ]
