"""No unit is paid twice, and at the end a unit is paid exactly where its slot is firmly reserved."""

from __future__ import annotations

from collections import Counter

from ramp.ledger.transfer import TransferKind
from ramp.protocol.tables import ParticipantState
from simulation.checkers.observation import Checker, MarketView


class PaidAndReserved(Checker):
    """Compares ledger, participants and machines."""

    name = "paid_and_reserved"

    def at_end(self, view: MarketView) -> None:
        """Every sold unit has one payment and one firm reservation; nothing else has either."""
        paid = self._standing_payments(view)
        for name, party in view.resources.items():
            machine = view.machines[name]
            firm = {entry.key for entry in machine.reservations(view.now) if entry.firm}
            for offer_id, participant in party.participants.items():
                agreement_id = participant.agreed.agreement_id if participant.agreement is not None else ""
                is_sold = participant.state is ParticipantState.SOLD
                is_paid = paid.pop(agreement_id, 0) == 1
                if is_sold and not is_paid:
                    raise self._violated(f"{agreement_id} is reserved at {name} but not paid")
                if is_paid and not is_sold:
                    raise self._violated(f"{agreement_id} is paid but {name} has it as {participant.state.value}")
                if is_sold is not (offer_id in firm) and participant.offer.end > view.now:
                    raise self._violated(
                        f"{offer_id} is {participant.state.value} at {name}, but its machine "
                        f"{'has' if offer_id in firm else 'lacks'} a firm reservation"
                    )
                firm.discard(offer_id)
            if firm:
                raise self._violated(f"{name}'s machine has reservations that nobody bought: {sorted(firm)}")
        if paid:
            raise self._violated(f"payments without any unit: {sorted(paid)}")

    def _standing_payments(self, view: MarketView) -> Counter[str]:
        paid: Counter[str] = Counter()
        for balance in view.ledger.balances():
            for line in view.ledger.statement(balance.account.account_id).lines:
                if line.kind == TransferKind.PAYMENT and line.amount < 0:
                    paid[line.agreement_id] += 1
                elif line.kind == TransferKind.REFUND and line.amount > 0:
                    paid[line.agreement_id] -= 1
        doubled = sorted(agreement_id for agreement_id, count in paid.items() if count > 1)
        if doubled:
            raise self._violated(f"paid more than once: {doubled}")
        return +paid
