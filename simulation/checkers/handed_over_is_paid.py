"""An honest resource that hands a slot over was paid, and the money stays unless the resource itself gave it back."""

from __future__ import annotations

from ramp.model.acl import Message
from ramp.model.agreement import Agreement, ContractChange, Signed
from ramp.protocol.records import AgreementPaid, AgreementReceived, ChangeReceived, Record
from ramp.protocol.transition_tables import ParticipantState
from simulation.market.market_view import Checker, MarketView, posted_transfers


class HandedOverIsPaid(Checker):
    """Looks at every refund, and at every slot that has begun."""

    name = "handed_over_is_paid"

    def __init__(self) -> None:
        self._agreements: dict[str, Agreement] = {}
        self._own_will: set[tuple[str, str]] = set()
        self._accepted: dict[tuple[str, str], Agreement] = {}
        self._paid: set[tuple[str, str]] = set()

    def on_written(self, name: str, record: Record, view: MarketView) -> None:
        """A resource has accepted an agreement; once it is paid, it takes a cancellation before its slot only."""
        if name in view.liars:
            return
        if isinstance(record, AgreementReceived) and isinstance(record.agreement.body, Agreement):
            self._agreements[record.agreement.body.agreement_id] = record.agreement.body
            self._accepted[name, record.offer_id] = record.agreement.body
        elif isinstance(record, AgreementPaid):
            self._paid.add((name, record.offer_id))
        elif isinstance(record, ChangeReceived) and (name, record.offer_id) in self._paid:
            change = record.signed.change
            start = self._accepted[name, record.offer_id].offer.start
            if change.is_terminal and not change.is_failure and view.time_of(name) >= start:
                raise self._violated(f"{name} agrees to a refund of {record.offer_id} after its slot has begun")

    def on_sent(self, message: Message, view: MarketView) -> None:
        """A resource gives the money back by its own will: it countersigns a cancellation, or says that it failed."""
        content = message.content
        if (
            isinstance(content, Signed)
            and isinstance(content.body, ContractChange)
            and content.body.is_terminal
            and (message.sender in content.signers and message.sender == content.body.resource)
        ):
            self._own_will.add((message.sender, content.body.agreement_id))

    def at_end(self, view: MarketView) -> None:
        """Whatever has begun and is sold is paid."""
        self.at_stop(view)
        for name, party in view.honest_resources.items():
            now = view.time_of(name)
            for participant in party.participants.values():
                if participant.state is ParticipantState.SOLD and participant.offer.start <= now:
                    paid = view.ledger.transfer(participant.agreed.agreement_id)
                    if paid is None or paid.posted_at is None or paid.credit_account != name:
                        raise self._violated(f"{name} has handed {participant.offer.offer_id} over unpaid")

    def at_stop(self, view: MarketView) -> None:
        """After a slot has begun by the bank's clock nothing is refunded against the resource's will."""
        for transfer in posted_transfers(view):
            agreement = self._agreements.get(transfer.agreement_id)
            if not transfer.is_end or agreement is None or agreement.resource in view.liars:
                continue
            if (
                transfer.posted_at >= agreement.offer.start
                and (agreement.resource, agreement.agreement_id) not in self._own_will
            ):
                raise self._violated(
                    f"{agreement.agreement_id} was refunded after its slot began, not by {agreement.resource}'s will"
                )
