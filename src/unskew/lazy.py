"""The public names of a package, which load on first use: importing the package stays quick."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, homes: Iterable[str]
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """The names, ``__getattr__`` and ``__dir__`` of a package, from homes such as ``"module:name"``.

    A home without a name is a public module.
    """
    home = {text.rpartition(":")[2].rpartition(".")[2]: text for text in homes}

    def load(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, _, attribute = home[name].partition(":")
        value: Any = import_module(module)
        value = getattr(value, attribute) if attribute else value
        setattr(sys.modules[package], name, value)
        return value

    return list(home), load, lambda: sorted(sys.modules[package].__all__)
