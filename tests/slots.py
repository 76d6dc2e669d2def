"""Slots that tests quote, hold and buy from a machine; another answer fails the test."""

from ramp.model.instant import MINUTE, Duration, Instant
from ramp.model.offer import Refusal
from ramp.model.request import RequestUnit
from ramp.model.slot import Reservation, Slot
from ramp.plugins.interface import ResourcePlugin


def quoted(machine: ResourcePlugin, unit: RequestUnit, now: Instant) -> Slot:
    slot = machine.quote(unit, now)
    assert isinstance(slot, Slot), slot
    return slot


def refused(machine: ResourcePlugin, unit: RequestUnit, now: Instant) -> Refusal:
    refusal = machine.quote(unit, now)
    assert isinstance(refusal, Refusal), refusal
    return refusal


def held(
    machine: ResourcePlugin, key: str, unit: RequestUnit, now: Instant, lasting: Duration = 10 * MINUTE
) -> Reservation:
    found = machine.hold(key, unit, quoted(machine, unit, now), now + lasting, now)
    assert isinstance(found, Reservation), found
    return found


def sold(machine: ResourcePlugin, key: str, unit: RequestUnit, now: Instant) -> Reservation:
    held(machine, key, unit, now)
    firm = machine.confirm(key, now)
    assert isinstance(firm, Reservation), firm
    return firm
