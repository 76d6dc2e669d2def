"""What a resource has let go its machine has free again, however late the machine's answers come."""

from __future__ import annotations

from ramp.model.slot import Reservation
from ramp.protocol.events import Answer, SlotConfirmed, SlotHeld
from ramp.protocol.records import Record, SlotReleased
from ramp.protocol.transition_tables import ParticipantState
from simulation.market.market_view import Checker, MarketView


class GivenBack(Checker):
    """Remembers what a machine had when its resource let it go, and what it said to have set aside late."""

    name = "given_back"

    def __init__(self) -> None:
        self._to_free: set[tuple[str, str]] = set()

    def on_written(self, name: str, record: Record, view: MarketView) -> None:
        """A slot is let go."""
        if isinstance(record, SlotReleased) and name not in view.liars and self._has(name, record.offer_id, view):
            self._to_free.add((name, record.offer_id))

    def on_answered(self, name: str, answer: Answer, view: MarketView) -> None:
        """A machine has set a slot aside, perhaps for an offer that was let go meanwhile."""
        if isinstance(answer, SlotHeld | SlotConfirmed) and isinstance(answer.answer, Reservation):
            self._to_free.add((name, answer.key))

    def on_step(self, view: MarketView) -> None:
        """Once nothing is asked of the machine any more, and nothing will be, it has the slot no more."""
        for name, key in sorted(self._to_free):
            party = view.honest_resources.get(name)
            participant = party.participants.get(key) if party is not None else None
            if party is None or participant is None:
                continue
            if participant.state is ParticipantState.SOLD:
                self._to_free.discard((name, key))
            elif participant.state is ParticipantState.RELEASED:
                if key in party.releases or view.is_asking(name, key):
                    continue
                if self._has(name, key, view):
                    raise self._violated(f"{name} has let {key} go, but its machine still holds it")
                self._to_free.discard((name, key))

    def _has(self, name: str, key: str, view: MarketView) -> bool:
        return view.machines[name].reservation(key, view.time_of(name)) is not None
