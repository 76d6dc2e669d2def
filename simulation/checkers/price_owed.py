"""What is paid is what is owed: the price offered, or by the second-price rule that of the next offer."""

from __future__ import annotations

from ramp.model import money
from ramp.model.acl import Message
from ramp.model.agreement import Agreement
from ramp.model.contents import CallForProposals, Proposal
from ramp.model.instant import Instant
from ramp.model.offer import Offer
from ramp.protocol.records import AgreementReceived, FundsAsked, Record
from simulation.checkers.observation import Checker, MarketView


class PriceOwed(Checker):
    """Remembers what was called for and offered, and by whom, and finds the price again from that alone."""

    name = "price_owed"

    def __init__(self) -> None:
        self._caps: dict[tuple[str, str, int], int] = {}
        self._rules: dict[tuple[str, str, int], str] = {}
        self._offered: dict[str, tuple[Offer, str, Instant]] = {}

    def on_sent(self, message: Message, view: MarketView) -> None:
        """The price that is called for first is the user's most; an offer is who makes it, to whom, and when."""
        content = message.content
        if isinstance(content, CallForProposals):
            for unit in content.request.units:
                called = message.sender, content.request_id, unit.number
                self._caps[called] = max(self._caps.get(called, 0), unit.cpu_hour_cost)
                self._rules[called] = content.rule
        elif isinstance(content, Proposal):
            for offer in content.offers:
                if offer.resource == message.sender:
                    signed_at = message.seal.signed_at if message.seal is not None else view.now
                    self._offered.setdefault(offer.offer_id, (offer, message.receiver, signed_at))

    def on_written(self, name: str, record: Record, view: MarketView) -> None:
        """An honest seller has accepted a price, or an honest buyer is about to pay it."""
        if isinstance(record, AgreementReceived) and name in view.honest_resources:
            assert isinstance(record.agreement.body, Agreement)
            self._check(record.agreement.body, view)
        elif isinstance(record, FundsAsked) and name in view.honest_users:
            for agreement in record.agreements:
                self._check(agreement, view)

    def _check(self, agreement: Agreement, view: MarketView) -> None:
        offer, unit = agreement.offer, agreement.request.number
        called = agreement.user, agreement.request_id, unit
        rule = self._rules.get(called, "")
        if not rule or agreement.best_offer:
            if agreement.cost != offer.cost:
                raise self._violated(f"{agreement.agreement_id} pays {agreement.cost} for an offer of {offer.cost}")
            return
        most = money.cost(self._caps[called], offer.cores, offer.end - offer.start)
        if not offer.cost <= agreement.cost <= most:
            raise self._violated(f"{agreement.agreement_id} pays {agreement.cost}, not {offer.cost} to {most}")
        if agreement.cost == most:
            return  # nobody else, or nobody cheaper
        others = [
            other.cost
            for other, user, signed_at in self._offered.values()
            if (user, other.request_id, other.unit) == called
            and other.resource != offer.resource
            and agreement.issued_at < signed_at + other.valid_for
        ]
        if agreement.cost not in others:
            raise self._violated(f"{agreement.agreement_id} pays {agreement.cost}, which nobody else has offered")
