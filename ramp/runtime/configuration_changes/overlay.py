"""Changes of a running market, kept apart from its configuration file, which RAMP never writes.

`changes.json` of the state folder holds them with the text of the file when the market last loaded it. So RAMP can tell
later edits of the file from changes by commands, as `kubectl apply` does: an edit of the file overrides a change of the
same value; all other changes stay. What differs from the running market are steps, for a preview and for execution.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from ramp.errors import ConfigurationError, StateDamaged, WrongVersion, check_version
from ramp.model.money import credits_text
from ramp.plugins.found_terms import completed, found_terms
from ramp.protocol.resource.seller import PriceRange
from ramp.runtime.configuration.file import read_tables, tables_of, text_of
from ramp.runtime.configuration.values import ResourceConfig, SwarmConfig, UserConfig
from ramp.runtime.sqlite_file import FROM_BACKUP
from ramp.runtime.state_folder import StateFolder, write_private

VERSION: Final = 1

PARTIES: Final = ("users", "resources", "machines")
"""Tables that may change while the market runs; changes of others wait for its next start."""

Table = Mapping[str, Any]
Tables = Mapping[str, Table]


@dataclass(frozen=True, slots=True)
class Overlay:
    """A market's configuration file with later changes.

    Attributes:
        frame: text of the file at the market's start: all tables but the parties.
        parties: text of the file when it was last loaded: users, resources and machines.
        users: the present tables of users by name.
        resources: the present tables of resources by name.
        machines: the present tables of machines by name.
        draining: names of resources without new sales.
        found: static terms that machines have stated and the file does not, by machine name.
    """

    frame: str
    parties: str
    users: Tables
    resources: Tables
    machines: Tables
    draining: tuple[str, ...] = ()
    found: Tables = field(default_factory=dict)

    @property
    def standing(self) -> tuple[str, ...]:
        """Return the changes by commands that replace values of the file, as sentences."""
        file = _parties(tables_of(self.parties, Path()))
        kinds = [(noun, file[key], getattr(self, key)) for noun, key in (("user", "users"), ("resource", "resources"))]
        return (
            *(f"{noun} {name} was added" for noun, was, now in kinds for name in now if name not in was),
            *(f"{name} was removed" for _, was, now in kinds for name in was if name not in now),
            *(
                f"{name}: {key} = {value}"
                for _, was, now in kinds
                for name, table in now.items()
                for key, value in table.items()
                if name in was and value != was[name].get(key)
            ),
            *(f"{name} drains" for name in self.draining),
        )

    def tables(self, path: Path) -> dict[str, Any]:
        """Return all tables with the changes; `path` is for errors."""
        return {
            **tables_of(self.frame, path),
            "users": [*self.users.values()],
            "resources": [*self.resources.values()],
            "machines": completed(self.machines, self.found),
        }

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
            ConfigurationError: lists every problem of the text.
        """
        fresh, before = new_overlay(text, path), _parties(tables_of(self.parties, path))
        then = {key: _merged(before[key], getattr(self, key), getattr(fresh, key)) for key in PARTIES}
        draining = tuple(name for name in self.draining if name in then["resources"])
        users, resources, machines = (then[key] for key in PARTIES)
        return Overlay(self.frame, text, users, resources, machines, draining, fresh.found)

    def with_user(self, name: str, table: Table) -> Overlay:
        """Return the market with one more user."""
        return replace(self, users={**self.users, name: table})

    def with_resource(self, name: str, table: Table, machines: Tables) -> Overlay:
        """Return the market with one more resource and its machines."""
        added = replace(self, machines={**self.machines, **machines})
        return replace(added, resources={**self.resources, name: table})

    def without(self, name: str) -> Overlay:
        """Return the market without a user or resource."""
        users, resources = ({**tables} for tables in (self.users, self.resources))
        users.pop(name, None)
        resources.pop(name, None)
        return replace(self.drained(name, False), users=users, resources=resources)

    def drained(self, name: str, draining: bool) -> Overlay:
        """Return the market with new sales of a resource stopped or resumed."""
        others = tuple(each for each in self.draining if each != name)
        return replace(self, draining=(*others, name) if draining else others)

    def with_settings(self, name: str, values: Table) -> Overlay:
        """Return the market with other values of a resource."""
        return replace(self, resources={**self.resources, name: {**self.resources[name], **values}})


def _parties(data: Mapping[str, Any]) -> dict[str, Tables]:
    """Return the tables of users, resources and machines of a valid file by their names."""
    listed = {key: {each["name"]: each for each in data.get(key, [])} for key in ("users", "resources")}
    return {**listed, "machines": data.get("machines", {})}


def _merged(before: Tables, now: Tables, file: Tables) -> Tables:
    """Return tables as they are now, with all edits of the file since it was as `before`."""
    found: dict[str, Table] = {}
    for name, table in file.items():
        if name in before and name in now:
            edited = {key for key in table.keys() | before[name].keys() if table.get(key) != before[name].get(key)}
            kept = {key: value for key, value in now[name].items() if key not in edited}
            found[name] = {**kept, **{key: table[key] for key in edited & table.keys()}}
        elif name not in before or table != before[name]:
            found[name] = table
    return found | {name: table for name, table in now.items() if name not in before and name not in file}


def new_overlay(text: str, path: Path) -> Overlay:
    """Return the overlay of an unchanged market whose file has this text.

    Raises:
        ConfigurationError: lists every problem of the text.
    """
    data = tables_of(text, path)
    found = found_terms(data.get("machines"))
    read_tables({**data, "machines": completed(data["machines"], found)} if found else data, path, text)
    users, resources, machines = _parties(data).values()
    return Overlay(text, text, users, resources, machines, found=found)


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
    return replace(found, draining=tuple(found.draining))


def save_overlay(state: StateFolder, overlay: Overlay) -> None:
    """Save an overlay, completely or not at all."""
    write_private(state.changes, json.dumps({"version": VERSION, **asdict(overlay)}, indent=1))


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
    """Return a resource's table and its machines from TOML: one `[[resources]]`, and `[machines.*]` of its own.

    Raises:
        ConfigurationError: the text contains anything else.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
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


class StepKind(StrEnum):
    """Kinds of steps in order of execution, so that a name is free before another party takes it."""

    REMOVE = "remove"
    ADD = "add"
    UPDATE = "update"
    REBUILD = "rebuild"
    LATER = "later"


@dataclass(frozen=True, slots=True)
class Step:
    """One step.

    Attributes:
        kind: REMOVE or ADD a party; UPDATE the prices of a resource; REBUILD an agent from its new configuration; LATER
            waits for the market's next start.
        name: local name of the agent, or of the part of the configuration.
        text: the step as a sentence.
    """

    kind: StepKind
    name: str
    text: str


def steps_between(now: SwarmConfig, then: SwarmConfig) -> tuple[Step, ...]:
    """Return the steps from one set of parties to another, in the order of execution."""
    found: list[Step] = []
    users = {user.name: user for user in now.users}, {user.name: user for user in then.users}
    resources = {each.name: each for each in now.resources}, {each.name: each for each in then.resources}
    for noun, (old, new) in (("user", users), ("resource", resources)):
        found += [Step(StepKind.REMOVE, name, f"{noun} {name} is removed") for name in old.keys() - new.keys()]
        found += [Step(StepKind.ADD, name, f"{noun} {name} is added") for name in new.keys() - old.keys()]
    for name in users[0].keys() & users[1].keys():
        found += _user_steps(users[0][name], users[1][name])
    for name in resources[0].keys() & resources[1].keys():
        found += _resource_steps(resources[0][name], resources[1][name])
    order = list(StepKind)
    return tuple(sorted(found, key=lambda step: (order.index(step.kind), step.name)))


def waiting_steps(frame: str, text: str, path: Path) -> tuple[Step, ...]:
    """Return the differences between a file's other tables and those that the market started with (`frame`)."""
    old, new = tables_of(frame, path), tables_of(text, path)
    names = sorted(key for key in old.keys() | new.keys() if key not in PARTIES and old.get(key) != new.get(key))
    told = {name: f"[{name}]{_keys(old, new, name)}: at the next `ramp up`" for name in names}
    return tuple(Step(StepKind.LATER, name, text) for name, text in told.items())


def _keys(old: Mapping[str, Any], new: Mapping[str, Any], name: str) -> str:
    one, other = old.get(name, {}), new.get(name, {})
    if not isinstance(one, dict) or not isinstance(other, dict):
        return ""
    return " " + ", ".join(sorted(key for key in one.keys() | other.keys() if one.get(key) != other.get(key)))


def _user_steps(old: UserConfig, new: UserConfig) -> list[Step]:
    found = []
    for key, hint in (
        ("deposit", "credited once, at the opening; `ramp bank deposit` credits more"),
        ("overdraft", ""),
    ):
        before, after = getattr(old, key), getattr(new, key)
        if before != after:
            why = hint or "an account keeps the limit that it was opened with"
            change = f"{credits_text(before)} -> {credits_text(after)} credits"
            found.append(Step(StepKind.LATER, old.name, f"user {old.name}: {key} {change} has no effect: {why}"))
    return found


def _resource_steps(old: ResourceConfig, new: ResourceConfig) -> list[Step]:
    changed = [
        f"{key} {before} -> {after}"
        for key, before, after in (
            *(
                (each.name, getattr(old.prices, each.name), getattr(new.prices, each.name))
                for each in fields(PriceRange)
            ),
            ("draining", old.draining, new.draining),
        )
        if before != after
    ]
    found = []
    if replace(old, prices=new.prices, draining=new.draining) != new:
        keys = [
            key
            for key in ("plugin", "options", "terms", "pricing", "isolation", "launching", "acting")
            if getattr(old, key) != getattr(new, key)
        ]
        text = f"resource {old.name}: {', '.join((*changed, *keys))} changed; its agent is restarted"
        found.append(Step(StepKind.REBUILD, old.name, text))
    elif changed:
        found.append(Step(StepKind.UPDATE, old.name, f"resource {old.name}: {', '.join(changed)}"))
    return found
