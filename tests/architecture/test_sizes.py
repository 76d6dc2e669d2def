"""The limits of size that CONTRIBUTING.md states for functions and packages; those of classes are in `measures.py`."""

import ast
import re
import sys
from collections import Counter
from pathlib import Path

import ramp
import simulation

sys.path.insert(0, str(Path(__file__).parent))

import measures

FUNCTION_MAX = 75
"""Lines of a function without its docstring."""

PACKAGE_MAX = 16
"""Modules of a package."""

ONE_FILE_EACH = {"simulation/checkers"}
"""Packages of one sort of thing, a file each, grow by whatever is declared."""

DEFINITION = re.compile(r"^( *)(class|def|async def) ", re.MULTILINE)
ROOT = Path(ramp.__file__).parents[1]
MODULES = [path for package in (ramp, simulation) for path in sorted(Path(str(package.__file__)).parent.rglob("*.py"))]


def lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = function.body[0]
    told = 0
    if ast.get_docstring(function) is not None and first.end_lineno is not None:
        told = first.end_lineno - first.lineno + 1
    assert function.end_lineno is not None
    return function.end_lineno - function.lineno + 1 - told


def may_have_a_long_function(text: str) -> bool:
    """Whether it is far from a function to the next one that is not within it; to parse all modules takes seconds."""
    found = [(text.count("\n", 0, each.start()), len(each[1]), each[2]) for each in DEFINITION.finditer(text)]
    for index, (line, indent, kind) in enumerate(found):
        after = (other for other, its_indent, _ in found[index + 1 :] if its_indent <= indent)
        if kind != "class" and next(after, text.count("\n")) - line > FUNCTION_MAX:
            return True
    return False


def test_functions() -> None:
    long = [
        f"{path.relative_to(ROOT)}: {each.name}"
        for path in MODULES
        if may_have_a_long_function(text := path.read_text())
        for each in ast.walk(ast.parse(text))
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and lines_of(each) > FUNCTION_MAX
    ]
    assert long == []


def test_packages() -> None:
    counted = Counter(path.parent for path in MODULES if path.name != "__init__.py")
    large = {str(package.relative_to(ROOT)): count for package, count in counted.items() if count > PACKAGE_MAX}
    assert large.keys() <= ONE_FILE_EACH, large


def test_contributing_states_these_limits() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    limits = {"lines of a function": FUNCTION_MAX, "modules of a package": PACKAGE_MAX}
    limits |= {"statements of a class": measures.STATEMENTS_MAX, "public methods of a class": measures.METHODS_MAX}
    assert [name for name, limit in limits.items() if f"| {name} | {limit} |" not in text] == []
