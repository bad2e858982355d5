"""How Sphinx builds the documentation: Markdown pages, opened from the disk or from a server."""

from __future__ import annotations

import sys
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

project = "Unskew"
release = version = installed("unskew")
copyright = "the Unskew maintainers"  # noqa: A001 (Sphinx reads this name)

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
nitpicky = True

# Headings are link targets, as on the pages of a forge, where the same files are read.
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline", "dollarmath"]

html_theme = "furo"
html_title = "Unskew"
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#00796b", "color-brand-content": "#00796b"},
    "dark_css_variables": {"color-brand-primary": "#4db6ac", "color-brand-content": "#4db6ac"},
}


def setup(app: Any) -> None:
    """Write the generated pages of the reference before Sphinx looks for pages."""
    from reference_pages import write_pages

    write_pages()
