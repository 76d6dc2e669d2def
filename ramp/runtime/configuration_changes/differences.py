"""Differences between a running market and its new configuration, as steps for a preview and for execution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from ramp.model.money import credits_text
from ramp.protocol.resource.seller import PriceRange
from ramp.runtime.configuration.file import tables_of
from ramp.runtime.configuration.values import ResourceConfig, SwarmConfig, UserConfig
from ramp.runtime.configuration_changes.overlay import PARTIES


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
