"""Advance reservations as they are written on the command line."""

from __future__ import annotations

from math import prod
from typing import Final

from ramp.errors import ConfigurationError, MachineError
from simulation.kernel import MICROSECONDS_PER_SECOND
from simulation.machines.interface import Connection, JobRequest, Machine, has_places
from simulation.queueing.whole_log import ReservationRequest

RESERVATION_FORM: Final = "BEGIN:END:SIZE or BEGIN:END:AxBxC[:torus], times in seconds of the log"


def reservation_of(text: str, machine: Machine) -> ReservationRequest:
    """Return a reservation that the machine could hold if it were empty.

    Args:
        text: as `RESERVATION_FORM` says.
        machine: the machine, empty.

    Raises:
        ConfigurationError: the text says no reservation, or one that the machine can never hold.
    """
    parts = text.split(":")
    try:
        begin, end = int(parts[0]), int(parts[1])
        shape = tuple(int(extent) for extent in parts[2].split("x"))
        connection = Connection(parts[3]) if len(parts) > 3 else machine.traits.connection
    except (ValueError, IndexError) as error:
        raise ConfigurationError(f"got {text!r}, expected {RESERVATION_FORM}", key="reservation") from error
    if not 0 <= begin < end or min(shape) < 1 or len(parts) > 4:
        raise ConfigurationError(f"got {text!r}, expected {RESERVATION_FORM}", key="reservation")
    if not has_places(machine) and (len(shape) > 1 or len(parts) > 3):
        raise ConfigurationError(
            f"got {text!r}, expected BEGIN:END:SIZE: a flat machine has no shapes and no connections", key="reservation"
        )
    request = JobRequest(-1, prod(shape), shape if len(shape) > 1 else None, connection=connection)
    try:
        possible = machine.fits_ever(request)
    except MachineError as error:
        raise ConfigurationError(f"{text!r}: {error}", key="reservation") from error
    if not possible:
        extents = "x".join(map(str, machine.extents))
        raise ConfigurationError(
            f"{text!r}: {machine.name} ({extents}, {machine.capacity} units in service) cannot hold this "
            "reservation even when empty",
            key="reservation",
        )
    length = (end - begin) * MICROSECONDS_PER_SECOND
    return ReservationRequest(request, begin * MICROSECONDS_PER_SECOND, length)
