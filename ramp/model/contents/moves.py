"""A sold slot that its resource has moved to other places of its machine before it began: told, and acknowledged."""

from __future__ import annotations

from dataclasses import dataclass

from ramp.model.communicative_acts import Interaction, Performative, said
from ramp.model.instant import Instant
from ramp.model.seal import Role


@said(Performative.INFORM, interaction=Interaction.REQUEST, by=frozenset({Role.RESOURCE}))
@dataclass(frozen=True, slots=True)
class SlotMoved:
    """INFORM: a slot has other places than its agreement names; its times, cores, price and reservation stay.

    Said again until it is acknowledged, for as long as the slot lasts.

    Attributes:
        agreement_id: under which the slot was sold.
        reservation_id: its reservation on the machine.
        placement: where it is now, in the machine's words, as in an offer.
        moved_at: when, by the machine's own record; of two words of one slot the one with the later is right.
    """

    agreement_id: str
    reservation_id: str
    placement: str
    moved_at: Instant


@said(Performative.CONFIRM, interaction=Interaction.REQUEST, by=frozenset({Role.USER}))
@dataclass(frozen=True, slots=True)
class SlotMoveHeard:
    """CONFIRM: the buyer has that word, or a later one, on record.

    Attributes:
        agreement_id: under which the slot was sold.
        moved_at: that of the word.
    """

    agreement_id: str
    moved_at: Instant
