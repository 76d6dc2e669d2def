"""No hold outlives its deadline (paper section 5.1.1, step 10), whatever else fails."""

from __future__ import annotations

from ramp.protocol.transition_tables import ParticipantState
from simulation.market.market_view import Checker, MarketView


class HoldDeadline(Checker):
    """Looks at every resource that is up after every event."""

    name = "hold_deadline"

    def on_step(self, view: MarketView) -> None:
        """A resource that is up lets a hold go at its deadline, not later."""
        for name, party in view.honest_resources.items():
            now = view.time_of(name)
            if party.deadline is not None and party.deadline < now:
                continue  # it is due this very instant or was down; its tick comes first
            for offer_id, participant in party.participants.items():
                if participant.state is ParticipantState.HELD and participant.until < now:
                    raise self._violated(
                        f"{name} still holds {offer_id} {now - participant.until} us after its deadline"
                    )

    def at_end(self, view: MarketView) -> None:
        """At rest nothing is held any more."""
        for name, party in view.honest_resources.items():
            held = [entry.key for entry in view.machines[name].reservations(view.time_of(name)) if not entry.firm]
            if held:
                raise self._violated(f"{name}'s machine still holds {held}")
            held = [key for key, each in party.participants.items() if each.state is ParticipantState.HELD]
            if held:
                raise self._violated(f"{name} still holds {held}")
