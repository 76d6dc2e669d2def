"""Reads and checks the tables of a configuration: each finding names the key, its value and what is expected."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ramp.model.money import credits_of
from ramp.options import nearest_name


class Reader:
    """Reads tables with checks; collects findings instead of stopping at the first."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.findings: list[str] = []

    def wrong(self, key: str, value: object, right: str) -> None:
        """Note a wrong value and what is expected."""
        self.findings.append(f"{key}: got {value!r}, expected {right}")

    def unknown(self, where: str, table: Mapping[str, Any], known: set[str]) -> None:
        """Note unknown keys of a table, each with the nearest known one."""
        for key in table:
            if key not in known:
                self.findings.append(f"{where}{key}: unknown key{nearest_name(key, sorted(known))}")

    def table(self, parent: Mapping[str, Any], key: str) -> Mapping[str, Any]:
        """Return a table; an empty one if it is missing or wrong."""
        value = parent.get(key, {})
        if isinstance(value, Mapping):
            return value
        self.wrong(key, value, f"a table [{key}]")
        return {}

    def tables(self, parent: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
        """Return a list of tables; an empty one if it is missing or wrong."""
        value = parent.get(key, [])
        if isinstance(value, list) and all(isinstance(entry, Mapping) for entry in value):
            return value
        self.wrong(key, value, f"a list of tables [[{key}]]")
        return []

    def text(self, where: str, table: Mapping[str, Any], key: str, default: str | None = None) -> str:
        """Return a text; empty only if the default is."""
        value = table.get(key, default)
        if isinstance(value, str) and (value or default == ""):
            return value
        self.wrong(f"{where}{key}", value, "a string in quotes")
        return default or "?"

    def whole(self, where: str, table: Mapping[str, Any], key: str, default: int | None, least: int = 1) -> int:
        """Return a whole number, at least `least`."""
        value = table.get(key, default)
        if isinstance(value, int) and not isinstance(value, bool) and value >= least:
            return value
        self.wrong(f"{where}{key}", value, f"a whole number from {least}")
        return least

    def truth(self, where: str, table: Mapping[str, Any], key: str, default: bool) -> bool:
        value = table.get(key, default)
        if isinstance(value, bool):
            return value
        self.wrong(f"{where}{key}", value, "true or false")
        return default

    def money(self, where: str, table: Mapping[str, Any], key: str, default: int) -> int:
        """Return an amount of credits in minor units."""
        value = table.get(key)
        if value is None:
            return default
        if isinstance(value, int | str) and not isinstance(value, bool):
            try:
                return credits_of(value, zero=True)
            except ValueError:
                pass
        self.wrong(f"{where}{key}", value, 'an amount of credits, for example 1000 or "99.50"')
        return default
