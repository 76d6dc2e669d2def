"""At the end every request stands with all its units or with none, and its user knows which (paper section 5.1.1)."""

from __future__ import annotations

from ramp.protocol.outcome import RequestStatus
from ramp.protocol.tables import ParticipantState
from simulation.checkers.observation import Checker, MarketView


class AllOrNone(Checker):
    """Compares what every user thinks to have bought with what the resources have sold."""

    name = "all_or_none"

    def at_end(self, view: MarketView) -> None:
        """Every unit of a committed request is sold, or was given back with its money; nothing else is sold."""
        sold: dict[str, str] = {}
        refunded: set[str] = set()
        for party in view.resources.values():
            for participant in party.participants.values():
                if participant.state is ParticipantState.SOLD:
                    sold[participant.agreed.agreement_id] = participant.offer.request_id
                elif participant.released is not None and participant.released.refund:
                    refunded.add(participant.agreed.agreement_id)
        for user in view.users.values():
            for request_id, purchase in user.purchases.items():
                if purchase.outcome is None:
                    continue
                bought = [unit.agreement_id for unit in purchase.outcome.units if unit.agreement_id]
                committed = purchase.outcome.status is RequestStatus.COMMITTED
                wanted = len(purchase.request.units) if committed else 0
                lost = [each for each in bought if each not in sold and each not in refunded]
                if len(bought) != wanted or lost:
                    raise self._violated(
                        f"{request_id} ended {purchase.outcome.status.value} with {len(bought)} of "
                        f"{len(purchase.request.units)} units, of which {lost or 'none'} are not sold"
                    )
                for agreement_id in bought:
                    sold.pop(agreement_id, None)
        if view.users and sold:
            raise self._violated(f"sold, but not known to their buyers: {sorted(sold)}")
