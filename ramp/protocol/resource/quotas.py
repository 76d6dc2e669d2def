"""Limits of the slots that one buyer may hold without having paid, and of all slots together."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import accumulate
from typing import Annotated

from ramp.model.instant import Instant
from ramp.options import Bounds


@dataclass(frozen=True, slots=True)
class Quotas:
    """Limits of one buyer's unpaid slots at one resource.

    Attributes:
        holds_max: number of slots. A request has at most some dozens of units, which may all go to one resource.
        cores_share_max: share of the machine's cores for all of them, 0 to 1. A single slot may be larger, as a job may
            need the whole machine.
    """

    holds_max: Annotated[int, Bounds(1)] = 64
    cores_share_max: Annotated[float, Bounds(0, 1)] = 0.5


class Unpaid:
    """The unpaid slots of each buyer at one resource, whose machine has `cores` cores."""

    def __init__(self, quotas: Quotas, cores: int) -> None:
        self._quotas = quotas
        self._cores_max = int(quotas.cores_share_max * cores)
        self._slots: defaultdict[str, dict[str, int]] = defaultdict(dict)

    def problem(self, user: str, cores: int) -> str:
        """Return why one more slot would exceed the limits, or the empty string."""
        slots = self._slots.get(user)
        if not slots:
            return ""
        if len(slots) >= self._quotas.holds_max:
            return f"{user} has {len(slots)} unpaid slots here, expected at most {self._quotas.holds_max} at a time"
        taken = sum(slots.values())
        if taken + cores > self._cores_max:
            return (
                f"unpaid slots of one buyer may have at most {self._cores_max} cores; {user} has {taken} and asks for "
                f"{cores} more"
            )
        return ""

    def add(self, user: str, offer_id: str, cores: int) -> None:
        self._slots[user][offer_id] = cores

    def remove(self, user: str, offer_id: str) -> None:
        slots = self._slots.get(user)
        if slots is not None:
            slots.pop(offer_id, None)
            if not slots:
                del self._slots[user]


class Booked:
    """Held and sold slots of one resource, whose machine has `cores` cores; a guest's word cannot exceed them."""

    def __init__(self, cores: int) -> None:
        self._cores = cores
        self._slots: dict[str, tuple[Instant, Instant, int]] = {}

    def put(self, key: str, start: Instant, end: Instant, cores: int) -> None:
        self._slots[key] = start, end, cores

    def remove(self, key: str) -> None:
        self._slots.pop(key, None)

    def problem(self, start: Instant, end: Instant, cores: int, without: str = "") -> str:
        """Return why a slot does not fit beside the others but that of the key `without`, or the empty string."""
        changes: list[tuple[Instant, int]] = []
        for key, (begin, until, booked) in self._slots.items():
            if key != without and begin < end and until > start:
                changes += (begin, booked), (until, -booked)
        changes.sort()  # at one instant what ends comes first
        taken = max(accumulate(change for _, change in changes), default=0)
        if taken + cores <= self._cores:
            return ""
        return f"{taken} of {self._cores} cores are held or sold in that time, so {cores} more do not fit"
