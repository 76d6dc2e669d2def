"""A machine as its resource describes it: the plug-in's snapshot, read into types."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any

import cattrs
from cattrs.strategies import configure_union_passthrough

from ramp.control.codec import findings_of
from ramp.control.events import MarketRefusalCode
from ramp.errors import MarketRefused
from ramp.text import printable


@dataclass(frozen=True, slots=True)
class MachineJob:
    """A job that runs or waits; start and end of one that waits, and the end of one that runs, are projections."""

    job: int | str
    cores: int
    start: datetime
    end: datetime
    submitted: datetime
    user: int | str | None = None


@dataclass(frozen=True, slots=True)
class MachineReservation:
    """A slot that the market has on a machine: held until a deadline, or firm."""

    reservation_id: str
    cores: int
    start: datetime
    end: datetime
    firm: bool
    held_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class ProjectedLoad:
    """Share of a machine that will be taken, 0 to 1, from a moment until the next one's."""

    time: datetime
    load: float


@dataclass(frozen=True, slots=True)
class MachineState:
    """How a machine is.

    Attributes:
        resource: the resource that sells it.
        source: source of its queue: `log`, `synthetic` or `live`.
        time: time of this state.
        cores: of the machine.
        cores_busy: of them taken.
        load: share of the cores that is taken, 0 to 1.
        running_total: jobs that run.
        queued_total: jobs that wait.
        running: the jobs that run, as many as fit a message.
        queued: the jobs that wait, as many as fit a message.
        reservations: the market's reservations.
        projected_load: over the horizon that was asked for.
        operating_system: JSDL 1.0 name, None where it is not stated.
        architecture: JSDL 1.0 name, None where it is not stated.
        start_price: start price of the resource in credits per core-hour; it sets the step by which offers fall.
        snapshot: the whole JSON object, with further keys of the plug-in.
    """

    resource: str
    source: str
    time: datetime
    cores: int
    cores_busy: int
    load: float
    running_total: int
    queued_total: int
    running: tuple[MachineJob, ...] = field(repr=False)
    queued: tuple[MachineJob, ...] = field(repr=False)
    reservations: tuple[MachineReservation, ...] = field(repr=False)
    projected_load: tuple[ProjectedLoad, ...] = field(repr=False)
    operating_system: str | None = None
    architecture: str | None = None
    start_price: int | None = None
    snapshot: Mapping[str, object] = field(default_factory=dict, repr=False)

    @property
    def cores_free(self) -> int:
        return self.cores - self.cores_busy


def parse_snapshot(text: str, resource: str) -> MachineState:
    """Read a JSON snapshot (`ResourcePlugin.snapshot`); raises `MarketRefused` if it is an error or invalid."""
    try:
        plain = _printable(json.loads(text))
        if "error" in plain:
            problem = str(plain["error"])
        else:
            return _converter().structure({**plain, "snapshot": plain}, MachineState)
    except (ValueError, KeyError, TypeError, AttributeError, cattrs.BaseValidationError) as error:
        problem = f"its answer is not a valid machine state ({findings_of(error)})"
    raise MarketRefused(MarketRefusalCode.MACHINE_FAILED, f"the machine of {resource} did not answer: {problem}")


def _printable(value: Any) -> Any:
    """Make every text of a JSON value one printable line: it is in the words of another party's machine."""
    match value:
        case str():
            return printable(value)
        case list():
            return [_printable(each) for each in value]
        case dict():
            return {printable(key): _printable(each) for key, each in value.items()}
    return value


@cache
def _converter() -> cattrs.Converter:
    converter = cattrs.Converter()
    converter.register_structure_hook(datetime, lambda value, _: _moment(value))
    # what the plug-in says besides stays as it is
    converter.register_structure_hook_func(lambda kind: kind is object, lambda value, _: value)
    for union in (int | str, int | str | None):
        configure_union_passthrough(union, converter)
    return converter


def _moment(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError(f"{text} has no offset from UTC, expected a time such as 2026-11-21T08:00:00Z")
    return found
