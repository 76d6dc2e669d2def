"""Every conversation ends once the faults have ended: no request, sale, refund or question stays open."""

from __future__ import annotations

from ramp.protocol.transition_tables import ParticipantState
from simulation.market.market_view import Checker, MarketView

FINAL = (ParticipantState.SOLD, ParticipantState.RELEASED)


class ConversationsEnd(Checker):
    """Looks for open ends."""

    name = "conversations_end"

    def at_end(self, view: MarketView) -> None:
        """Name the first thing that is still going on."""
        for name, user in view.honest_users.items():
            for request_id, purchase in user.purchases.items():
                if purchase.outcome is None:
                    raise self._violated(f"{request_id} of {name} is still {purchase.stage}")
            if user.changes.open:
                raise self._violated(f"{name} still changes {user.changes.open}")
        for name, party in view.honest_resources.items():
            for offer_id, participant in party.participants.items():
                if participant.state not in FINAL:
                    raise self._violated(f"{offer_id} at {name} is still {participant.state.value}")
