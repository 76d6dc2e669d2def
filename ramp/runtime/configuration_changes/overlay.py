"""Changes of a running market, kept apart from its configuration file, which RAMP never writes.

`changes.json` of the state folder holds them with the text of the file when the market last loaded it. So RAMP can tell
later edits of the file from changes by commands, as `kubectl apply` does: an edit of the file overrides a change of the
same value; all other changes stay.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from ramp.errors import ConfigurationError, StateDamaged, WrongVersion, check_version
from ramp.plugins.found_terms import completed, found_terms
from ramp.runtime.configuration.file import read_tables, tables_of
from ramp.runtime.configuration.values import SwarmConfig
from ramp.runtime.sqlite_file import FROM_BACKUP
from ramp.runtime.state_folder import StateFolder, write_private

VERSION: Final = 1

PARTIES: Final = ("users", "resources", "machines")
"""Tables that may change while the market runs; changes of others wait for its next start."""

Table = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Overlay:
    """A market's configuration file with later changes.

    Attributes:
        frame: text of the file at the market's start: all tables but the parties.
        parties: text of the file when it was last loaded: users, resources and machines.
        users: tables of added users by name.
        resources: tables of added resources by name.
        machines: tables of their machines by name.
        removed: names of removed users and resources of the file.
        settings: changed values of resources by name.
        draining: names of resources without new sales.
        found: static terms that machines have stated and the file does not, by machine name.
    """

    frame: str
    parties: str
    users: Mapping[str, Table] = field(default_factory=dict)
    resources: Mapping[str, Table] = field(default_factory=dict)
    machines: Mapping[str, Table] = field(default_factory=dict)
    removed: tuple[str, ...] = ()
    settings: Mapping[str, Table] = field(default_factory=dict)
    draining: tuple[str, ...] = ()
    found: Mapping[str, Table] = field(default_factory=dict)

    @property
    def standing(self) -> tuple[str, ...]:
        """Return the changes by commands that replace values of the file, as sentences."""
        return (
            *(f"user {name} was added" for name in self.users),
            *(f"resource {name} was added" for name in self.resources),
            *(f"{name} was removed" for name in self.removed),
            *(f"{name}: {key} = {value}" for name, table in self.settings.items() for key, value in table.items()),
            *(f"{name} drains" for name in self.draining),
        )

    def tables(self, path: Path) -> dict[str, Any]:
        """Return all tables with the changes; `path` is for errors."""
        data = tables_of(self.frame, path)
        parties = tables_of(self.parties, path)
        for key in PARTIES:
            data.pop(key, None)
        data["machines"] = completed({**parties.get("machines", {}), **self.machines}, self.found)
        for key, added in (("users", self.users), ("resources", self.resources)):
            kept = [each for each in parties.get(key, []) if _name(each) not in self.removed]
            data[key] = [*kept, *added.values()]
        data["resources"] = [{**each, **self.settings.get(_name(each), {})} for each in data["resources"]]
        return data

    def config(self, path: Path) -> SwarmConfig:
        """Return the configuration with the changes; `path` is for errors and relative paths.

        Raises:
            ConfigurationError: lists every problem.
        """
        config = read_tables(self.tables(path), path)
        resources = tuple(replace(each, draining=each.name in self.draining) for each in config.resources)
        return replace(config, resources=resources)

    def taken(self, text: str, path: Path) -> Overlay:
        """Return the overlay for another text of the file, with the changes that still apply.

        Raises:
            ConfigurationError: the text is not TOML.
        """
        before, now = tables_of(self.parties, path), tables_of(text, path)
        old = {_name(each): each for key in ("users", "resources") for each in before.get(key, [])}
        new = {_name(each): each for key in ("users", "resources") for each in now.get(key, [])}
        resources = {_name(each) for each in now.get("resources", [])} | self.resources.keys() - new.keys()
        settings = {
            name: {key: value for key, value in table.items() if _value(old, name, key) == _value(new, name, key)}
            for name, table in self.settings.items()
            if name in resources
        }
        return replace(
            self,
            parties=text,
            users={name: table for name, table in self.users.items() if name not in new},
            resources={name: table for name, table in self.resources.items() if name not in new},
            machines={name: table for name, table in self.machines.items() if name not in now.get("machines", {})},
            removed=tuple(name for name in self.removed if name in new and new[name] == old.get(name)),
            settings={name: table for name, table in settings.items() if table},
            draining=tuple(name for name in self.draining if name in resources),
            found=found_terms(now.get("machines")),
        )

    def without(self, name: str, path: Path) -> Overlay:
        """Return the market without a user or resource."""
        in_file = {_name(each) for key in ("users", "resources") for each in tables_of(self.parties, path).get(key, [])}
        return replace(
            self,
            users=_but(self.users, name),
            resources=_but(self.resources, name),
            settings=_but(self.settings, name),
            draining=tuple(each for each in self.draining if each != name),
            removed=tuple(dict.fromkeys((*self.removed, name))) if name in in_file else self.removed,
        )

    def back(self, name: str) -> Overlay:
        """Return the market with a removed user or resource of the file."""
        return replace(self, removed=tuple(each for each in self.removed if each != name))

    def drained(self, name: str, draining: bool) -> Overlay:
        """Return the market with new sales of a resource stopped or resumed."""
        others = tuple(each for each in self.draining if each != name)
        return replace(self, draining=(*others, name) if draining else others)

    def with_settings(self, name: str, values: Table) -> Overlay:
        """Return the market with other values of a resource."""
        return replace(self, settings={**self.settings, name: {**self.settings.get(name, {}), **values}})


def new_overlay(text: str, path: Path) -> Overlay:
    """Return the overlay of an unchanged market whose file has this text.

    Raises:
        ConfigurationError: the text is not TOML, or a machine does not state a value that the file leaves out.
    """
    return Overlay(text, text, found=found_terms(tables_of(text, path).get("machines")))


def load_overlay(state: StateFolder) -> Overlay | None:
    """Load the changes of a market from its state folder; None if it has never run.

    Raises:
        WrongVersion: the file has another version.
        StateDamaged: the file cannot be read.
    """
    path = state.changes
    try:
        plain = json.loads(path.read_text("utf-8"))
        check_version(path, "file of changes", plain.pop("version"), VERSION)
        found = Overlay(**plain)
        found.tables(path)
    except FileNotFoundError:
        return None
    except WrongVersion:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ConfigurationError) as error:
        remedy = f"{FROM_BACKUP}, or move it away: the market then uses its configuration file alone"
        raise StateDamaged(path, f"the changes cannot be read: {error}", remedy) from error
    return replace(found, removed=tuple(found.removed), draining=tuple(found.draining))


def save_overlay(state: StateFolder, overlay: Overlay) -> None:
    """Save an overlay, completely or not at all."""
    write_private(state.changes, json.dumps({"version": VERSION, **asdict(overlay)}, indent=1))


def text_of(path: Path) -> str:
    """Return the text of a configuration file; `ConfigurationError` if it cannot be read."""
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"cannot be read: {error}", path=path) from error


def starting(path: Path, state: StateFolder) -> Overlay:
    """Return the overlay at a market's start: its current file, and the earlier changes that still apply.

    Raises:
        ConfigurationError: the file or a change is invalid.
    """
    text = text_of(path)
    found = load_overlay(state)
    return new_overlay(text, path) if found is None else replace(found.taken(text, path), frame=text)


def load_market(path: Path, state: StateFolder) -> SwarmConfig:
    """Return the configuration with which a market would start now; `ConfigurationError` lists every problem."""
    return starting(path, state).config(path)


def running_config(path: Path, state: StateFolder) -> SwarmConfig:
    """Return the configuration of the running market, whatever its file says now."""
    found = load_overlay(state)
    return (new_overlay(text_of(path), path) if found is None else found).config(path)


def part_of_market(text: str, source: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a resource's table and its machines from a piece of TOML.

    Args:
        text: one `[[resources]]`, and `[machines.*]` if it brings its own.
        source: name of the text for errors.

    Raises:
        ConfigurationError: the text contains anything else.
    """
    try:
        data = tomllib.loads(text)
        json.dumps(data)
    except (tomllib.TOMLDecodeError, TypeError) as error:
        raise ConfigurationError(f"invalid TOML: {error}", path=source) from error
    listed, machines = data.pop("resources", []), data.pop("machines", {})
    if data or not isinstance(listed, list) or len(listed) != 1 or not isinstance(machines, dict):
        more = f", and not {', '.join(data)}" if data else ""
        raise ConfigurationError(
            f"expected one [[resources]], with its [machines.NAME] if the market lacks it{more}", path=source
        )
    if not isinstance(listed[0], dict):
        raise ConfigurationError("expected a table [[resources]]", path=source)
    return listed[0], machines


def _name(table: Any) -> str:
    name = table.get("name", "") if isinstance(table, Mapping) else ""
    return name if isinstance(name, str) else ""


def _value(tables: Mapping[str, Table], name: str, key: str) -> Any:
    return tables.get(name, {}).get(key)


def _but(tables: Mapping[str, Table], name: str) -> Mapping[str, Table]:
    return {each: table for each, table in tables.items() if each != name}
