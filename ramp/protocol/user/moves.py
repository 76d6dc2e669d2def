"""Slots that their resources moved: the latest message about each, recorded before it is acknowledged.

A message counts if the agreement's resource sealed it, whatever its age. Repeated and older ones change nothing,
because the resource orders moves by their time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from ramp.errors import RemoteProtocolError
from ramp.model.acl import Message, Performative
from ramp.model.agreement import Agreement
from ramp.model.contents import SlotMoved, SlotMoveHeard
from ramp.model.instant import Instant
from ramp.model.seal import Role
from ramp.protocol.belief import said_by
from ramp.protocol.effects import Effect, Persist, Report, reply
from ramp.protocol.progress import UnitMoved
from ramp.protocol.records import MoveHeard

MOVES_MAX: Final = 100
"""Maximum recorded moves of a slot, so that no seller can fill its buyer's journal."""


class Moves:
    """The moved slots of one user.

    Attributes:
        last: latest message about each moved slot, by agreement id.
    """

    def __init__(self, agreements: Mapping[str, Agreement]) -> None:
        self.last: dict[str, SlotMoved] = {}
        self._recorded: Counter[str] = Counter()
        self._agreements = agreements

    def recover(self, records: Sequence[object]) -> None:
        for record in records:
            if isinstance(record, MoveHeard):
                self._note(record.word)

    def forget(self, references: Sequence[str]) -> None:
        """Forget the moves of archived requests."""
        for agreement_id in list(self.last):
            agreement = self._agreements.get(agreement_id)
            if agreement is None or agreement.request_id in references:
                del self.last[agreement_id], self._recorded[agreement_id]

    def told(self, message: Message, word: SlotMoved, now: Instant) -> list[Effect]:
        """Record and acknowledge a message about a move.

        Raises:
            RemoteProtocolError: if the agreement is unknown, the seal is not its resource's, or there are too many
                moves.
        """
        agreement = self._agreements.get(word.agreement_id)
        if agreement is None:
            raise RemoteProtocolError(f"{word.agreement_id} is not an agreement of this user")
        seal = said_by(message, agreement.resource, Role.RESOURCE)
        answer = reply(message, Performative.CONFIRM, SlotMoveHeard(word.agreement_id, word.moved_at))
        before = self.last.get(word.agreement_id)
        if before is not None and word.moved_at <= before.moved_at:
            return [answer]
        if self._recorded[word.agreement_id] >= MOVES_MAX:
            raise RemoteProtocolError(f"{word.agreement_id} has moved {MOVES_MAX} times, which is the limit")
        self._note(word)
        about = agreement.request_id
        progress = UnitMoved(about, word.agreement_id, agreement.resource, word.placement, word.moved_at)
        return [Persist(MoveHeard(about, word, seal, now)), Report(progress), answer]

    def _note(self, word: SlotMoved) -> None:
        self.last[word.agreement_id] = word
        self._recorded[word.agreement_id] += 1
