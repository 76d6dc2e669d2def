"""How large the product is: statements of each package (`ast.stmt`), and how much of its text is docstrings."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import ramp
import simulation

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def run() -> list[tuple[str, float, str]]:
    """Statements by package, and shares of docstrings; docstrings are not counted among the statements."""
    rows: list[tuple[str, float, str]] = []
    for package in (ramp, simulation):
        root = Path(str(package.__file__)).parent
        statements: Counter[str] = Counter()
        told = lines = 0
        for path in sorted(root.rglob("*.py")):
            text = path.read_text()
            docstrings = [each for each in ast.walk(ast.parse(text)) if isinstance(each, DOCUMENTED)]
            strings = [each.body[0] for each in docstrings if ast.get_docstring(each) is not None]
            told += sum((each.end_lineno or each.lineno) - each.lineno + 1 for each in strings)
            lines += sum(1 for line in text.splitlines() if line.strip())
            count = sum(isinstance(each, ast.stmt) for each in ast.walk(ast.parse(text))) - len(strings)
            statements[path.relative_to(root).parts[0].removesuffix(".py")] += count
        rows.append((package.__name__, statements.total(), "statements"))
        rows += [(f"{package.__name__}.{name}", count, "statements") for name, count in sorted(statements.items())]
        rows.append((f"{package.__name__}: docstrings", 100 * told / lines, "% of non-blank lines"))
    return rows
