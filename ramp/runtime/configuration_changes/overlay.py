"""Changes of a running market, kept over its configuration's file, which the program never writes.

They lie in `changes.json` of the state folder, with the text of the file as the market took it last. So what stands in
the file and what was changed by a verb are told apart for good, as `kubectl apply` tells them apart: where the file has
been edited since it was taken, the file has the last word on what was edited; everything else that was changed stands.
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
"""Of the file's format."""

PARTIES: Final = ("users", "resources", "machines")
"""Tables of a configuration that may change while the market runs; the others wait for its next start."""

Table = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Overlay:
    """A market's file as it was taken, and what was changed since.

    Attributes:
        frame: text of the file when the market started: all but the parties.
        parties: text of the file when it was taken last: users, resources and machines.
        users: tables of users that were added, by name.
        resources: tables of resources that were added, by name.
        machines: tables of machines that came with them, by name.
        removed: names of users and resources of the file that were removed.
        settings: what was set of a resource, by its name.
        draining: names of resources that sell nothing new.
        found: static terms that the file does not state and machines told when it was taken, by the machine's name.
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
        """What was changed by verbs and counts in place of what the file says, a sentence each."""
        return (
            *(f"user {name} was added" for name in self.users),
            *(f"resource {name} was added" for name in self.resources),
            *(f"{name} was removed" for name in self.removed),
            *(f"{name}: {key} = {value}" for name, table in self.settings.items() for key, value in table.items()),
            *(f"{name} drains" for name in self.draining),
        )

    def tables(self, path: Path) -> dict[str, Any]:
        """The tables of the configuration with everything changed.

        Args:
            path: of the configuration's file, for errors.
        """
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
        """The configuration with everything changed.

        Args:
            path: of the configuration's file, for errors and for what it names relative to itself.

        Raises:
            ConfigurationError: with every finding.
        """
        config = read_tables(self.tables(path), path)
        resources = tuple(replace(each, draining=each.name in self.draining) for each in config.resources)
        return replace(config, resources=resources)

    def taken(self, text: str, path: Path) -> Overlay:
        """The file as it is now, with those of the changes that stand.

        Args:
            text: of the file.
            path: its path, for errors.

        Raises:
            ConfigurationError: if the text is no TOML.
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
        """The same market without a user or resource."""
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
        """The same market with a user or resource of the file that was removed."""
        return replace(self, removed=tuple(each for each in self.removed if each != name))

    def drained(self, name: str, draining: bool) -> Overlay:
        """The same market with a resource that sells nothing new, or sells again."""
        others = tuple(each for each in self.draining if each != name)
        return replace(self, draining=(*others, name) if draining else others)

    def with_settings(self, name: str, values: Table) -> Overlay:
        """The same market with other values of a resource."""
        return replace(self, settings={**self.settings, name: {**self.settings.get(name, {}), **values}})


def new_overlay(text: str, path: Path) -> Overlay:
    """A market whose file has that text, unchanged.

    Raises:
        ConfigurationError: if the text is no TOML, or a machine does not tell what the file leaves out.
    """
    return Overlay(text, text, found=found_terms(tables_of(text, path).get("machines")))


def load_overlay(state: StateFolder) -> Overlay | None:
    """What was changed in a state folder's market; None where it has never run.

    Raises:
        WrongVersion: if it is of another version.
        StateDamaged: if it cannot be read.
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
    """Keep what was changed, whole or not at all."""
    write_private(state.changes, json.dumps({"version": VERSION, **asdict(overlay)}, indent=1))


def text_of(path: Path) -> str:
    """The text of a configuration's file.

    Raises:
        ConfigurationError: if it cannot be read.
    """
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"cannot be read: {error}", path=path) from error


def starting(path: Path, state: StateFolder) -> Overlay:
    """What a market begins with: its file as it is now, and those changes of earlier lives that stand.

    Raises:
        ConfigurationError: if file or changes are not right.
    """
    text = text_of(path)
    found = load_overlay(state)
    return new_overlay(text, path) if found is None else replace(found.taken(text, path), frame=text)


def load_market(path: Path, state: StateFolder) -> SwarmConfig:
    """The configuration of the market that would start from a file and a state folder.

    Raises:
        ConfigurationError: with every finding.
    """
    return starting(path, state).config(path)


def running_config(path: Path, state: StateFolder) -> SwarmConfig:
    """The configuration of the market that runs, however its file has been edited meanwhile.

    Raises:
        ConfigurationError: with every finding.
    """
    found = load_overlay(state)
    return (new_overlay(text_of(path), path) if found is None else found).config(path)


def part_of_market(text: str, source: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A resource's table and the machines that come with it, from a piece of TOML.

    Args:
        text: with one `[[resources]]`, and `[machines.*]` where it brings its own.
        source: what to call it in errors.

    Raises:
        ConfigurationError: if it is something else.
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
