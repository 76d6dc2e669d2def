"""No unit is paid twice, and at the end a unit is paid exactly where its slot is firmly reserved."""

from __future__ import annotations

from collections import Counter

from ramp.model.contents import TransferKind
from ramp.protocol.resource.participant import Participant
from ramp.protocol.transition_tables import ParticipantState
from simulation.market.market_view import (
    Checker,
    MarketView,
    addition_of,
    posted_transfers,
    sold_long_ago,
    standing_payments,
)


class PaidAndReserved(Checker):
    """Compares ledger, participants and machines of the honest resources."""

    name = "paid_and_reserved"

    def at_end(self, view: MarketView) -> None:
        """Every sold unit has one payment and one firm reservation; nothing else has either."""
        self.at_stop(view)
        paid = {
            agreement_id
            for agreement_id, transfer in standing_payments(view).items()
            if transfer.credit_account not in view.liars
        }
        for name, party in view.honest_resources.items():
            machine = view.machines[name]
            now = view.time_of(name)
            firm = {entry.key for entry in machine.reservations(now) if entry.firm}
            for offer_id, participant in party.participants.items():
                is_sold = participant.state is ParticipantState.SOLD
                if participant.agreement is not None:
                    self._compare(name, participant, participant.agreed.agreement_id in paid)
                    if is_sold:
                        paid.discard(participant.agreed.agreement_id)
                if is_sold is not (offer_id in firm) and participant.size[1] > now:
                    raise self._violated(
                        f"{offer_id} is {participant.state.value} at {name}, but its machine "
                        f"{'has' if offer_id in firm else 'lacks'} a firm reservation"
                    )
                firm.discard(offer_id)
            paid -= sold_long_ago(view, name).keys()
            if firm:
                raise self._violated(f"{name}'s machine has reservations that nobody bought: {sorted(firm)}")
        if paid:
            raise self._violated(f"payments without any unit: {sorted(paid)}")

    def at_stop(self, view: MarketView) -> None:
        """Nothing is paid twice; what is sold is paid, and what has been let go is not."""
        self._check_once(view)
        paid = standing_payments(view)
        for name, party in view.honest_resources.items():
            for participant in party.participants.values():
                state = participant.state
                if participant.agreement is None or state not in (ParticipantState.SOLD, ParticipantState.RELEASED):
                    continue
                agreement_id = participant.agreed.agreement_id
                unheard = view.ledger.transfer(agreement_id, TransferKind.REFUND) is not None
                if not (state is ParticipantState.SOLD and unheard):  # the resource asks again when the slot begins
                    self._compare(name, participant, agreement_id in paid)

    def _compare(self, name: str, participant: Participant, is_paid: bool) -> None:
        agreement_id, is_sold = participant.agreed.agreement_id, participant.state is ParticipantState.SOLD
        if is_sold and not is_paid:
            raise self._violated(f"{agreement_id} is reserved at {name} but not paid")
        if is_paid and not is_sold:
            raise self._violated(f"{agreement_id} is paid but {name} holds it as {participant.state.value}")

    def _check_once(self, view: MarketView) -> None:
        paid: Counter[str] = Counter()
        for transfer in posted_transfers(view):
            if transfer.kind == TransferKind.PAYMENT and not addition_of(view, transfer):
                order = view.ledger.order_of(transfer.agreement_id)
                line = None if order is None else order.line(transfer.agreement_id)
                paid[transfer.agreement_id if line is None else line.offer_id] += 1
        doubled = sorted(offer_id for offer_id, count in paid.items() if count > 1)
        if doubled:
            raise self._violated(f"paid more than once: {doubled}")
