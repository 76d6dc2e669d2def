"""How much of a machine one buyer may have set aside without having paid."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Quotas:
    """What a resource grants one buyer at a time; what is paid for does not count.

    Attributes:
        holds_max: slots held or confirmed. A request has at most some dozens of units, and all may go to one resource.
        cores_share_max: part of the machine's cores that all of them together may have, 0 to 1. A single slot may be
            larger, for a job may need the whole machine.
    """

    holds_max: int = 64
    cores_share_max: float = 0.5


class Unpaid:
    """What each buyer has set aside at one resource and has not paid for.

    Args:
        quotas: what is granted.
        cores: of the machine.
    """

    def __init__(self, quotas: Quotas, cores: int) -> None:
        self._quotas = quotas
        self._cores_max = int(quotas.cores_share_max * cores)
        self._slots: defaultdict[str, dict[str, int]] = defaultdict(dict)

    def problem(self, user: str, cores: int) -> str:
        """Why one more slot would be too much, or the empty string."""
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
        """A slot is set aside; a second time changes nothing."""
        self._slots[user][offer_id] = cores

    def remove(self, user: str, offer_id: str) -> None:
        """It is paid or free again."""
        slots = self._slots.get(user)
        if slots is not None:
            slots.pop(offer_id, None)
            if not slots:
                del self._slots[user]
