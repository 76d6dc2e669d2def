"""Measures of the code base that have a ceiling in `ceilings.toml`.

`python tests/architecture/measures.py` lowers every ceiling to what was reached. It raises none: edit the file for that
in a commit of its own, whose message names the user who needs it.
"""

import ast
import re
import threading
import tomllib
from collections.abc import Iterator
from dataclasses import is_dataclass
from functools import cache
from inspect import isabstract
from pathlib import Path
from typing import Final

import click

import ramp
import simulation
from ramp import errors
from ramp.cli.main import cli
from ramp.model import contents
from ramp.plugins import interface
from ramp.protocol.transition_tables import TABLES

ROOT: Final = Path(__file__).parents[2]
CEILINGS: Final = Path(__file__).with_name("ceilings.toml")
PACKAGES: Final = {name: ROOT / name for name in ("ramp", "simulation", "tests")}
DOCUMENTS: Final = ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md")

STATEMENTS_MAX: Final = 250
"""Statements of a class."""
METHODS_MAX: Final = 15
"""Public methods of a class."""

BANNED: Final = re.compile(
    r"\b(right would be|would be right|will not do|(is|are|be|was|were) told|goes? on|comes to|so many|has it"
    r"|(is|are) none|[Ss]omebody|[Ww]hoever|[Gg]ive a sign|as people do)\b"
)
"""Phrasings that puzzle readers; plain English has a better one for each."""

Measures = dict[str, dict[str, int]]


def lines_of_packages() -> dict[str, int]:
    """Return the lines of Python in each package of the product, and in each of the three trees."""
    found = {}
    for name, tree in PACKAGES.items():
        lines = {path: path.read_text("utf-8").count("\n") for path in tree.rglob("*.py")}
        found[name] = sum(lines.values())
        if name != "tests":
            for package in sorted(path for path in tree.iterdir() if (path / "__init__.py").exists()):
                found[f"{name}/{package.name}"] = sum(lines[path] for path in lines if package in path.parents)
    return found


def lines_of_documents() -> dict[str, int]:
    """Return the lines of the documents at the top."""
    return {name: (ROOT / name).read_text("utf-8").count("\n") for name in DOCUMENTS}


def banned_phrasings() -> dict[str, int]:
    """Return how often each package of the product, and the documentation, uses a phrasing that puzzles readers."""
    found = {
        f"{name}/{package.name}": sum(len(BANNED.findall(path.read_text("utf-8"))) for path in package.rglob("*.py"))
        for name, tree in PACKAGES.items()
        if name != "tests"
        for package in sorted(path for path in tree.iterdir() if (path / "__init__.py").exists())
    }
    written = (path for path in (ROOT / "docs").rglob("*.md") if "generated" not in path.parts)  # by hand, that is
    documents = [*(ROOT / name for name in DOCUMENTS), *written]
    found["documentation"] = sum(len(BANNED.findall(path.read_text("utf-8"))) for path in documents)
    return {name: count for name, count in found.items() if count}


def counts() -> dict[str, int]:
    """Return the numbers of things that a reader has to know by name."""
    return {
        "message contents": sum(is_dataclass(each) for each in vars(contents).values()),
        "transition rows": sum(len(rows) for rows in TABLES.values()),
        "commands": sum(1 for _ in commands(cli)),
        "exception classes": sum(
            isinstance(each, type) and issubclass(each, Exception) and each.__module__ == errors.__name__
            for each in vars(errors).values()
        ),
        "plug-in protocols": sum(
            isinstance(each, type)
            and each.__module__ == interface.__name__
            and (getattr(each, "_is_protocol", False) or isabstract(each))
            for each in vars(interface).values()
        ),
    }


def commands(group: click.Group) -> Iterator[click.Command]:
    """Walk through the commands of a command line, groups included."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield command
        if isinstance(command, click.Group):
            yield from commands(command)


@cache
def large_classes() -> tuple[dict[str, int], dict[str, int]]:
    """Return the statements and the public methods of the classes of the product that have more than the limit."""
    statements, methods = {}, {}
    for package in (ramp, simulation):
        for path in sorted(Path(str(package.__file__)).parent.rglob("*.py")):
            for each in ast.walk(ast.parse(path.read_text("utf-8"))):
                if not isinstance(each, ast.ClassDef):
                    continue
                name = f"{path.relative_to(ROOT)}: {each.name}"
                if (count := sum(isinstance(node, ast.stmt) for node in ast.walk(each)) - 1) > STATEMENTS_MAX:
                    statements[name] = count
                if (count := sum(_is_public_method(node) for node in each.body)) > METHODS_MAX:
                    methods[name] = count
    return statements, methods


def _is_public_method(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_")


def traced_quote() -> dict[str, int]:
    """Return the files of the market that a quote from twenty simulated machines enters, and its calls.

    The second quote of a market, so that nothing is loaded or opened for the first time. Generators are left out,
    because each of their steps would count as a call.
    """
    of_the_product = tuple(f"{Path(str(package.__file__)).parent}/" for package in (ramp, simulation))
    generator = 0x20 | 0x80 | 0x200  # inspect.CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR
    files: set[str] = set()
    calls = 0

    def trace(frame: object, event: str, _: object) -> None:
        nonlocal calls
        code = frame.f_code  # type: ignore[attr-defined]
        if event == "call" and code.co_filename.startswith(of_the_product) and not code.co_flags & generator:
            files.add(code.co_filename)
            calls += 1

    wanted = ramp.request(cores=64, wall_time="1h", start="+10min", price=70)
    with ramp.launch("table2", transport="simulated") as market:
        market.quote(wanted)
        threading.setprofile(trace)  # a call runs in a thread of its own
        try:
            market.quote(wanted)
        finally:
            threading.setprofile(None)
    return {"files": len(files), "calls": calls}


def measures() -> Measures:
    """Return every measure that has a ceiling."""
    statements, methods = large_classes()
    return {
        "lines": lines_of_packages(),
        "lines of documents": lines_of_documents(),
        "banned phrasings": banned_phrasings(),
        "counts": counts(),
        f"statements of classes above {STATEMENTS_MAX}": statements,
        f"public methods of classes above {METHODS_MAX}": methods,
    }


def ceilings() -> Measures:
    """Return the ceilings on file."""
    return tomllib.loads(CEILINGS.read_text("utf-8"))


def lowered(now: Measures, before: Measures) -> Measures:
    """Return the ceilings lowered to what was reached; what is gone needs none, what is new gets what it has."""
    return {
        part: {name: min(count, before.get(part, {}).get(name, count)) for name, count in sorted(found.items())}
        for part, found in now.items()
    }


def written(found: Measures) -> str:
    """Return ceilings as TOML."""
    parts = (
        "\n".join([f'["{part}"]', *(f'"{name}" = {count}' for name, count in rows.items())])
        for part, rows in found.items()
    )
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    known = ceilings() if CEILINGS.exists() else {}
    CEILINGS.write_text(written(lowered({**measures(), "traced quote": traced_quote()}, known)), "utf-8")
