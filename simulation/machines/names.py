"""Names of units: a lower-case prefix and one base-36 digit a dimension, as Slurm names midplanes (bgl012, bglC00)."""

from __future__ import annotations

from collections.abc import Sequence

from ramp.errors import MachineError

DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Digits of a coordinate; Slurm numbers up to 36 units a dimension this way."""


def digits_of(coordinates: Sequence[int]) -> str:
    """Return the digits of a unit's coordinates.

    Raises:
        MachineError: a coordinate has no digit.
    """
    if any(not 0 <= coordinate < len(DIGITS) for coordinate in coordinates):
        raise MachineError(f"coordinates must be 0 to {len(DIGITS) - 1} to form a name, got {list(coordinates)}")
    return "".join([DIGITS[coordinate] for coordinate in coordinates])


def unit_name(prefix: str, coordinates: Sequence[int]) -> str:
    """Return the name of the unit at the coordinates, for example bgl012."""
    return prefix + digits_of(coordinates)
