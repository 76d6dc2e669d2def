"""What gets to a browser as markup, as properties or as a script: texts of this program, and escaped ones.

Labels, tables and charts escape what they show. Everything else is found here in the program's text, so that a new page
cannot forget it.
"""

import ast
from html import escape
from pathlib import Path

import pytest

import ramp.web

FOLDER = Path(ramp.web.__file__).parent
SINKS = frozenset({"html", "props", "style", "add_slot", "run_javascript", "add_css"})
NUMBERS_AND_OWN = frozenset(
    {"cell", "height_rem", "label", "line", "most", "number", "path", "pixels", "unit", "width"}
)
"""Names of numbers, and of words of this program, that stand in such texts."""


def unescaped(node: ast.expr) -> list[str]:
    """The values in a text that are neither constant, nor escaped, nor known."""
    match node:
        case ast.Constant():
            return []
        case ast.JoinedStr(values=values):
            return [found for value in values for found in unescaped(value)]
        case ast.FormattedValue(value=value):
            return unescaped(value)
        case ast.Call(func=ast.Name(id="escape")):
            return []
        case ast.Name(id=name) if name.isupper() or name in NUMBERS_AND_OWN:
            return []
        case ast.BinOp(left=left, right=right):
            return unescaped(left) + unescaped(right)
        case ast.IfExp(body=body, orelse=other):
            return unescaped(body) + unescaped(other)
    return [ast.unparse(node)]


def sinks(text: str) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in SINKS:
                found += [f"line {node.lineno}: {name}({each})" for value in node.args for each in unescaped(value)]
    return found


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.py")), ids=lambda path: str(path.relative_to(FOLDER)))
def test_no_text_of_others_becomes_markup(path):
    assert sinks(path.read_text("utf-8")) == []


def test_a_new_sink_is_found():
    assert sinks("ui.html(f'<b>{offer.placement}</b>')") == ["line 1: html(offer.placement)"]
    assert sinks("ui.label().props(f'aria-label=\"{name}\"')") == ["line 1: props(name)"]
    assert sinks("ui.html(f'<b>{escape(offer.placement)}</b>')") == []
    assert escape("<img src=x onerror='alert(1)'>") == "&lt;img src=x onerror=&#x27;alert(1)&#x27;&gt;"
