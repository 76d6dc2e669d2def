"""The reference of the configuration, drawn from the classes of its tables: keys, values, defaults and meanings.

A key that is added to a class is on the page, or the page cannot be made for want of a sentence in its docstring.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from typing import Any, Final, get_args, get_origin, get_type_hints

from ramp.options import described_options
from ramp.runtime.configuration.file import MarketFile
from sentences import cell, sentence

TOP: Final = ""
"""In place of a table's name: keys outside all tables."""

REQUIRED: Final = "required"
"""In place of a default where there is none."""

_INTRODUCTION: Final = """\
A TOML file describes a market. `ramp config --check FILE` reports all errors in it, and `ramp config FILE` prints
it with all defaults. Start from one of the shipped files `quickstart`, `table2` and `torus`. This page is generated
from the program. The value of a key that ends with `_s` is in seconds.
""".splitlines()


@dataclass(frozen=True, slots=True)
class Key:
    """A key of the file: its table, what kind of value it has, its default, and what it means."""

    table: str
    name: str
    kind: str
    default: str
    sentence: str


def _class_of(kind: Any) -> Any:
    """The class of a table by the type of its field; None of a field that is no table of known keys."""
    if isinstance(kind, type) and is_dataclass(kind):
        return kind
    inner = get_args(kind)[1:] if get_origin(kind) is Mapping else get_args(kind)
    return next((found for each in inner if (found := _class_of(each)) is not None), None)


def _tables() -> dict[str, tuple[str, Any]]:
    """The sentence and the class of each table of the file, by name; the class is None for a table of any keys."""
    hints = get_type_hints(MarketFile, include_extras=True)
    about = {each["name"]: each["about"] for each in described_options(MarketFile)}
    return {name: (about[name], _class_of(hints[name])) for name in about if name != "version"}


def _key(table: str, told: Mapping[str, str]) -> Key:
    if not told["about"]:
        raise ValueError(f"{table}.{told['name']}: no docstring says what this key means")
    kind, default = told["type"].removeprefix("a ").removeprefix("an "), told["default"]
    if default == "()":
        default = ""
    elif default in ("True", "False"):
        default = default.lower()
    elif default and default != REQUIRED and not default[0].isdigit():
        default = f'"{default}"'
    shown = f"`{default}`" if default and default != REQUIRED else default
    return Key(table, told["name"], kind, shown, sentence(told["about"]))


def declared_keys() -> list[Key]:
    """Every key of the file.

    Raises:
        ValueError: for a key without a sentence.
    """
    found = [_key(TOP, each) for each in described_options(MarketFile) if each["name"] == "version"]
    for table, (about, kind) in _tables().items():
        if kind is None:
            found.append(Key(table, "NAME", "text", "", sentence(about)))
        found += [_key(table, each) for each in described_options(kind)]
    return found


def page() -> str:
    """The page as Markdown."""
    lines = ["# Configuration reference", "", *_INTRODUCTION, ""]
    found = declared_keys()
    abouts = {TOP: "Keys before the first table."} | {table: about for table, (about, _) in _tables().items()}
    for table, about in abouts.items():
        lines += [f"(configuration-{table or 'file'})=", f"## {table or 'the file'}", "", sentence(about), ""]
        lines += ["| key | value | default | meaning |", "|---|---|---|---|"]
        lines += [
            f"| `{key.name}` | {cell(key.kind)} | {cell(key.default)} | {cell(key.sentence)} |"
            for key in found
            if key.table == table
        ]
        lines.append("")
    return "\n".join(lines)
