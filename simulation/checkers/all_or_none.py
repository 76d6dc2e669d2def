"""At the end every request stands with all its units or with none, and its user knows which (paper section 5.1.1)."""

from __future__ import annotations

from collections import Counter

from ramp.protocol.outcome import RequestStatus
from ramp.protocol.tables import ParticipantState
from simulation.checkers.observation import Checker, MarketView


class AllOrNone(Checker):
    """Counts the sold units of every request."""

    name = "all_or_none"

    def at_end(self, view: MarketView) -> None:
        """Compare what resources have sold with what users think they have bought."""
        sold: Counter[str] = Counter()
        given_back: Counter[str] = Counter()
        for party in view.resources.values():
            for participant in party.participants.values():
                if participant.state is ParticipantState.SOLD:
                    sold[participant.offer.request_id] += 1
                elif participant.state is ParticipantState.RELEASED and participant.agreement is not None:
                    given_back[participant.offer.request_id] += 1
        for user in view.users.values():
            for request_id, purchase in user.purchases.items():
                if purchase.outcome is None:
                    continue
                committed = purchase.outcome.status is RequestStatus.COMMITTED
                cancelled = given_back[request_id] if committed else 0
                expected = len(purchase.request.units) - cancelled if committed else 0
                if sold[request_id] != expected:
                    raise self._violated(
                        f"{request_id} ended {purchase.outcome.status.value} with {len(purchase.request.units)} units, "
                        f"but {sold[request_id]} are sold (expected {expected})"
                    )
