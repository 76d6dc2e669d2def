"""Every request stands with all its units or with none, and its user knows which (paper section 5.1.1)."""

from __future__ import annotations

from ramp.model.acl import Message
from ramp.model.contents import PaymentMade, TransferKind
from ramp.protocol.outcome import RequestStatus
from ramp.protocol.transition_tables import ParticipantState
from ramp.protocol.user.purchase import Purchase
from simulation.market.actors import BANK
from simulation.market.market_view import (
    Checker,
    MarketView,
    agreed_long_ago,
    posted_transfers,
    sold_long_ago,
    standing_payments,
)


class AllOrNone(Checker):
    """Compares what every honest user thinks to have bought with what was sold and paid."""

    name = "all_or_none"

    def on_sent(self, message: Message, view: MarketView) -> None:
        """When the bank says that something is paid, all of its order is."""
        if message.sender == BANK and isinstance(message.content, PaymentMade):
            paid = view.ledger.transfer(message.content.agreement_id)
            order = view.ledger.order(paid.order_id) if paid is not None else None
            for line in order.lines if order is not None else ():
                other = view.ledger.transfer(line.agreement_id)
                if other is None or other.posted_at is None:
                    raise self._violated(f"{message.content.agreement_id} is paid, {line.agreement_id} is not")

    def at_end(self, view: MarketView) -> None:
        """Every unit of a committed request is sold, or was given back with its money; nothing else is sold."""
        self.at_stop(view)
        sold = {
            participant.agreed.agreement_id: participant.user
            for party in view.honest_resources.values()
            for participant in party.participants.values()
            if participant.state is ParticipantState.SOLD
        }
        for name in view.honest_resources:
            sold |= {agreement_id: each.user for agreement_id, each in sold_long_ago(view, name).items()}
        for agreement_id, transfer in standing_payments(view).items():
            if transfer.credit_account in view.liars:  # its slots are its word: the money counts
                sold[agreement_id] = transfer.debit_account
        for user in view.honest_users.values():
            for request_id, purchase in user.purchases.items():
                for agreement_id in self._bought(request_id, purchase, sold, view):
                    sold.pop(agreement_id, None)
        for name in view.honest_users:
            for agreement_id in agreed_long_ago(view, name):
                sold.pop(agreement_id, None)
        unknown = sorted(each for each, user in sold.items() if user in view.honest_users)
        if unknown:
            raise self._violated(f"sold, but not known to their buyers: {unknown}")

    def at_stop(self, view: MarketView) -> None:
        """No order is posted in part, ever."""
        paid: dict[str, set[str]] = {}
        for transfer in posted_transfers(view):
            if transfer.kind == TransferKind.PAYMENT:
                paid.setdefault(transfer.order_id, set()).add(transfer.agreement_id)
        for order_id, agreement_ids in paid.items():
            order = view.ledger.order(order_id)
            ordered = {line.agreement_id for line in order.lines} if order is not None else set()
            if agreement_ids != ordered:
                raise self._violated(f"of {order_id} {sorted(agreement_ids)} is paid, ordered was {sorted(ordered)}")

    def _bought(self, request_id: str, purchase: Purchase, sold: dict[str, str], view: MarketView) -> list[str]:
        """The agreements of a request, all of its units or none, each sold or given back."""
        outcome = purchase.outcome
        if outcome is None:
            return []
        bought = [unit.agreement_id for unit in outcome.units if unit.agreement_id]
        wanted = len(purchase.request.units) if bought or outcome.status is RequestStatus.COMMITTED else 0
        back = {each for each in bought if view.ledger.transfer(each, TransferKind.REFUND) is not None}
        lost = [each for each in bought if each not in sold and each not in back]
        if len(bought) != wanted or lost:
            raise self._violated(
                f"{request_id} ended {outcome.status.value} with {len(bought)} of "
                f"{len(purchase.request.units)} units, of which {lost or 'none'} are not sold"
            )
        return bought
