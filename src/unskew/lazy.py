"""The public names of a package, which load on first use: importing the package stays quick."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, homes: Iterable[str] = ()
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """The names, ``__getattr__`` and ``__dir__`` of a package.

    The names are those that its source imports for type checkers, each on a line of its own that
    says ``from MODULE import NAME as NAME``, and those of ``homes`` such as ``"module:name"``.
    """
    home = dict(_imports(package))
    home |= {name: module for module, _, name in (text.partition(":") for text in homes)}

    def load(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if home[name] == package:  # a public module
            value: Any = import_module(f"{package}.{name}")
        else:
            value = getattr(import_module(home[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return list(home), load, lambda: sorted(sys.modules[package].__all__)


def _imports(package: str) -> Iterator[tuple[str, str]]:
    """The names that a package hands on for type checkers, with the modules they live in."""
    source: str = sys.modules[package].__loader__.get_source(package)  # type: ignore[union-attr]
    for line in source.splitlines():
        match line.split():
            case ["from", module, "import", name, "as", public] if name == public:
                yield name, module
