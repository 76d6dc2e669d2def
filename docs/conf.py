"""Sphinx's settings; the generated pages are written when this is read."""

from __future__ import annotations

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_tools"))

from generated_pages import write_pages  # noqa: E402 (the folder above comes first)

project = "RAMP"
author = "The RAMP authors"
copyright = "2026, the RAMP authors"  # noqa: A001 (Sphinx's name)
release = version = installed_version("ramp-market")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_tools"]
default_role = "code"
myst_enable_extensions = ["deflist", "attrs_inline"]
myst_heading_anchors = 3
suppress_warnings = ["myst.strikethrough"]

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True}
napoleon_use_ivar = True
python_use_unqualified_type_names = True

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["tables.css"]
html_title = f"RAMP {release}"
html_copy_source = False

man_pages = [
    (f"generated/{page}", name, summary, [author], 1) for page, name, summary in write_pages(HERE / "generated")
]


def keep_whole(_app: object, what: str, _name: str, _thing: object, _options: object, lines: list[str]) -> None:
    """Let an attribute's sentence be a sentence: what stands before a colon is no type."""
    if what in {"attribute", "property"} and lines:
        lines[0] = f": {lines[0]}"


def setup(app: Sphinx) -> None:
    """Connect the above before napoleon looks at the docstrings; show diagrams as text."""
    app.add_lexer("mermaid", TextLexer)
    app.connect("autodoc-process-docstring", keep_whole, priority=400)
