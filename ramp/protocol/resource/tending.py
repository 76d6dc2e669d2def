"""Sold slots on a machine that has to be told whose they are, and that may lose them (`plugins.TendedPlugin`).

Such a machine is told every so often which slots are sold and to which local accounts, at once when one has been
sold, and says which of them cannot be had any more. The same is said again and again, so that no failure in between
needs a memory.
"""

from __future__ import annotations

from typing import Final

from ramp.model.instant import SECOND, Duration, Instant
from ramp.protocol.effects import Effect, TendSlots
from ramp.protocol.resource.launching import LaunchTerms
from ramp.protocol.resource.participant import Participant
from ramp.protocol.tables import ParticipantState

TEND_EVERY: Final[Duration] = 15 * SECOND
"""A node that fails is noticed within it, and what could not be handed over is tried again."""


class Tending:
    """The sold slots of one resource.

    Args:
        terms: with the local accounts of buyers; None where there are none.
    """

    def __init__(self, terms: LaunchTerms | None) -> None:
        self.deadline: Instant | None = None
        self._terms = terms
        self._tended = False
        self._sold: dict[str, Participant] = {}

    def opened(self, *, tended: bool) -> None:
        """The machine has been opened, again perhaps, and has to be tended or not."""
        self._tended = tended
        self._hurry()

    def kept(self, participant: Participant) -> None:
        """A participant has moved, perhaps into a sale or out of it."""
        key = participant.offer.offer_id
        if participant.state is not ParticipantState.SOLD:
            self._sold.pop(key, None)
        elif key not in self._sold:
            self._sold[key] = participant
            self._hurry()

    def tick(self, now: Instant) -> list[Effect]:
        """Tell the machine again."""
        if self.deadline is None or now < self.deadline:
            return []
        self._sold = {key: each for key, each in self._sold.items() if now < each.offer.end}
        self.deadline = now + TEND_EVERY if self._sold else None
        slots = tuple((key, self._account(each.user)) for key, each in self._sold.items())
        return [TendSlots(slots)] if slots else []

    def forget(self, key: str) -> None:
        """A sale is forgotten."""
        self._sold.pop(key, None)

    def clock_set(self) -> None:
        """The clock has been set: tell the machine at once, which does no harm."""
        self._hurry()

    def _account(self, user: str) -> str:
        return "" if self._terms is None else self._terms.account(user)

    def _hurry(self) -> None:
        self.deadline = 0 if self._tended and self._sold else None
