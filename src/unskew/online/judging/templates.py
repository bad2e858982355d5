"""The pages as HTML: templates in which every value is escaped, and the files they load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

_HERE = Path(__file__).parent
# The files that a browser may load, with their types; there are no others.
ASSETS = {
    name: ((_HERE / "static" / name).read_bytes(), kind)
    for name, kind in (
        ("judge.css", "text/css; charset=utf-8"),
        ("judge.js", "text/javascript; charset=utf-8"),
        ("icon.svg", "image/svg+xml"),
    )
}
_environment = Environment(
    loader=FileSystemLoader(_HERE / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def render(template: str, **values: Any) -> str:
    """A page. Values are text; only what was made by `guidelines.rendered` is HTML."""
    return _environment.get_template(template).render(values)
