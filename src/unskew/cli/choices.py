"""Commands as Typer takes them, and what their help texts list: names looked up when help is shown.

A help text writes ``{rankers}`` for the names of all rankers, and ``{click_models:theta}`` for those
of the click models that have the parameter theta.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand

from unskew.cli.groups import spell_out

REGISTRIES = {
    "boosters": "unskew.registry:BOOSTERS",
    "click_models": "unskew.registry:CLICK_MODELS",
    "figures": "unskew.paper.experiments:FIGURES",
    "methods": "unskew.registry:METHODS",
    "policies": "unskew.cli.simulate:POLICIES",
    "profiles": "unskew.paper.profiles:PROFILES",
    "rankers": "unskew.registry:RANKERS",
}


class Command(TyperCommand):
    """A command whose help texts may name registries."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse as usual; of several logs say how they are given."""
        ctx.allow_extra_args = any(one.metavar in {"LOG", "[LOG]"} for one in self.params)
        rest = super().parse_args(ctx, args)
        if rest and not ctx.resilient_parsing:
            ctx.fail(
                f"LOG is one path, and there is more: {' '.join(rest)}. Give several files as a pattern "
                "in quotes, such as '*.csv', or as the folder that holds them."
            )
        return rest

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Fill in the names, then write the help as usual."""
        for parameter in self.params:
            text = getattr(parameter, "help", None)
            if text:
                parameter.help = re.sub(r"\{(\w+)(?::(\w+))?\}", _names, text)  # type: ignore[attr-defined]
        super().format_help(ctx, formatter)


def commands_of(about: str) -> typer.Typer:
    """The commands behind a word, such as those of `unskew ab`."""
    return typer.Typer(help=about, no_args_is_help=True, rich_markup_mode="rich")


def command(of: typer.Typer, name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add a function as a command; each group among its parameters is spelled out in options."""

    def added(function: Callable[..., None]) -> Callable[..., None]:
        of.command(name, cls=Command)(spell_out(function))
        return function

    return added


def _names(found: re.Match[str]) -> str:
    module, _, name = REGISTRIES[found[1]].partition(":")
    registry: Any = getattr(import_module(module), name)
    if found[2]:
        return ", ".join(entry for entry in registry if found[2] in registry[entry].parameters())
    if found[1] == "profiles":
        return ", ".join(f"{entry} ({registry[entry].about})" for entry in registry)
    return ", ".join(registry)
