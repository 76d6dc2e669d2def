"""An honest user who has paid has the slot or the money back, even from a dishonest seller.

At an honest resource the slot is sold to it. A liar's slot is what the liar makes of it; but on the liar's own signed
word that it has failed, and on a cancellation asked in time, the money is back. A word that the user has lost, for it
went down before that was on record, does not count: who is honest says it again when it is asked, a liar need not.
"""

from __future__ import annotations

from ramp.model.acl import Message
from ramp.model.agreement import Agreement, ContractChange, Signed, end_of
from ramp.model.contents import Commitment
from ramp.model.instant import MINUTE, Duration
from ramp.protocol.records import FailureTold, Record
from ramp.protocol.transition_tables import ParticipantState
from simulation.market.actors import BANK
from simulation.market.market_view import Checker, MarketView, sold_long_ago, standing_payments

IN_TIME: Duration = 30 * MINUTE
"""A cancellation asked so long before the slot begins, by the bank's clock, has reached the bank before it does."""


class SlotOrMoney(Checker):
    """Remembers what each user has committed to, been told to have failed, and asked to give back in time."""

    name = "slot_or_money"

    def __init__(self) -> None:
        self._agreements: dict[str, Agreement] = {}
        self._heard: list[tuple[str, str]] = []
        self._failed: set[str] = set()
        self._given_back: set[str] = set()

    def on_sent(self, message: Message, view: MarketView) -> None:
        """A commitment, or a cancellation."""
        content = message.content
        if isinstance(content, Commitment) and message.sender not in view.liars:
            body = content.agreement.body
            assert isinstance(body, Agreement)
            self._agreements[body.agreement_id] = body
        elif isinstance(content, Signed) and isinstance(content.body, ContractChange) and content.body.is_terminal:
            agreement = self._agreements.get(content.body.agreement_id)
            if agreement is None or agreement.user != message.sender:
                return
            if agreement.offer.start - view.time_of(BANK) > IN_TIME:
                self._given_back.add(agreement.agreement_id)

    def on_delivered(self, message: Message, view: MarketView) -> None:
        """The seller says itself that it has failed."""
        content = message.content
        body = content.body if isinstance(content, Signed) else None
        if isinstance(body, ContractChange) and body.is_failure and message.receiver in view.honest_users:
            assert isinstance(content, Signed)
            agreement = self._agreements.get(body.agreement_id)
            if agreement is None or body != end_of(agreement, body.reason, body.issued_at, body.code):
                return  # what a seller says of its agreement with another's offer is no word that holds
            if (agreement.user, (agreement.resource,)) == (message.receiver, content.signers):
                self._heard.append((message.receiver, body.agreement_id))

    def on_written(self, name: str, record: Record, view: MarketView) -> None:
        """A failure that the user has recorded counts, even if the user crashes then."""
        if isinstance(record, FailureTold):
            self._failed.add(record.failure.body.agreement_id)

    def on_step(self, view: MarketView) -> None:
        """A user that is still up has heard its messages."""
        self._failed.update(agreement_id for user, agreement_id in self._heard if user in view.honest_users)
        self._heard.clear()

    def at_end(self, view: MarketView) -> None:
        """Look at every payment of an honest user that stands."""
        for agreement_id, payment in standing_payments(view).items():
            user, resource = payment.debit_account, payment.credit_account
            if user in view.liars:
                continue
            if agreement_id not in self._agreements:
                raise self._violated(f"{user} has paid for {agreement_id}, to which it never committed")
            if agreement_id in self._failed:
                raise self._violated(f"{user} has paid for {agreement_id}, which {resource} itself says has failed")
            if agreement_id in self._given_back:
                raise self._violated(f"{user} gave {agreement_id} back in time, and the money is not back")
            if resource not in view.liars and not self._is_sold(agreement_id, resource, view):
                raise self._violated(f"{user} has paid for {agreement_id}, and {resource} has not sold it")

    def _is_sold(self, agreement_id: str, resource: str, view: MarketView) -> bool:
        offer_id = self._agreements[agreement_id].offer.offer_id
        participant = view.honest_resources[resource].participants.get(offer_id)
        if participant is None:
            return agreement_id in sold_long_ago(view, resource)
        return participant.state is ParticipantState.SOLD
