"""What help texts list: the names in a registry, looked up when the help is shown.

A help text writes ``{rankers}`` for the names of all rankers, and ``{click_models:theta}`` for those
of the click models that have the parameter theta.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

from typer.core import TyperCommand

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

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Fill in the names, then write the help as usual."""
        for parameter in self.params:
            text = getattr(parameter, "help", None)
            if text:
                parameter.help = re.sub(r"\{(\w+)(?::(\w+))?\}", _names, text)  # type: ignore[attr-defined]
        super().format_help(ctx, formatter)


def _names(found: re.Match[str]) -> str:
    module, _, name = REGISTRIES[found[1]].partition(":")
    registry: Any = getattr(import_module(module), name)
    if found[2]:
        return ", ".join(entry for entry in registry if found[2] in registry[entry].parameters())
    if found[1] == "profiles":
        return ", ".join(f"{entry} ({registry[entry].about})" for entry in registry)
    return ", ".join(registry)
