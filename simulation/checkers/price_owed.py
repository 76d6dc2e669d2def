"""What is paid is what is owed: the price offered, or by the second-price rule that of the next offer.

It is at most the cost of the cores and the time asked at the buyer's limit, unless the buyer approved a best offer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from ramp.model import money
from ramp.model.acl import Message
from ramp.model.agreement import Agreement
from ramp.model.contents import Acceptance, CallForProposals, Proposal
from ramp.model.offer import Offer
from ramp.model.price_paid import SECOND_PRICE, stands_at
from ramp.model.request import RequestUnit
from ramp.model.seal import Seal
from ramp.model.shortcoming import shortcoming
from ramp.protocol.records import AgreementReceived, FundsAsked, Record
from simulation.market.market_view import Checker, MarketView

_Called = tuple[str, str, int]
"""Who wants which unit: user, request, number."""


class PriceOwed(Checker):
    """Remembers what was called for and offered, and by whom, and finds the price again from that alone."""

    name = "price_owed"

    def __init__(self) -> None:
        self._wanted: dict[_Called, RequestUnit] = {}
        self._rules: defaultdict[_Called, set[str]] = defaultdict(set)  # of a liar there may be several
        self._called_by_liars: defaultdict[_Called, list[RequestUnit]] = defaultdict(list)
        self._offered: defaultdict[_Called, list[tuple[Offer, Seal | None]]] = defaultdict(list)
        self._remaining: defaultdict[_Called, dict[tuple[str, str], tuple[Offer, Seal]]] = defaultdict(dict)
        self._decided: set[_Called] = set()
        self._accepted: set[tuple[str, str]] = set()
        self._answered: dict[tuple[str, str, str, int], Proposal] = {}
        self._ordered_from: defaultdict[tuple[str, str], set[str]] = defaultdict(set)

    def on_sent(self, message: Message, view: MarketView) -> None:
        """The price that is called for first is the user's most; an offer is who makes it, to whom, and when."""
        content = message.content
        if isinstance(content, CallForProposals):
            for unit in content.request.units:
                called = message.sender, content.request_id, unit.number
                if called not in self._wanted or self._wanted[called].cpu_hour_cost < unit.cpu_hour_cost:
                    self._wanted[called] = unit
                self._rules[called].add(content.rule)
                if message.sender in view.liars:  # who may call each seller for something else under one name
                    self._called_by_liars[called].append(unit)
            if content.best_offer:  # what is met by now is no longer bid for
                self._close(self._remaining, message.sender, content.request_id)
        elif isinstance(content, Proposal):
            for offer in content.offers:
                if offer.resource == message.sender:
                    self._offered[message.receiver, offer.request_id, offer.unit].append((offer, message.seal))
        elif isinstance(content, Acceptance):  # the bidding of the request is over
            self._accepted.add((message.receiver, content.offer_id))
            self._close(self._wanted, message.sender, content.request_id)

    def on_delivered(self, message: Message, view: MarketView) -> None:
        """A buyer hears an offer; what comes in time and meets the request remains until it is accepted."""
        content, seal, is_honest = message.content, message.seal, message.sender not in view.liars
        if not isinstance(content, Proposal) or seal is None:
            return
        answer = message.sender, message.receiver, content.request_id, content.round_number
        if is_honest and self._answered.setdefault(answer, content) is not content:
            return  # a seller that has refused may offer on a copy of the call; its buyer keeps the first answer
        for offer in content.offers:
            called = message.receiver, offer.request_id, offer.unit
            wanted = self._wanted.get(called)
            if wanted is not None and called not in self._decided and not shortcoming(wanted, offer):
                remaining = self._remaining[called]  # a liar's offer meets the unit as well
                if is_honest:
                    remaining[offer.resource, offer.offer_id] = offer, seal

    def on_written(self, name: str, record: Record, view: MarketView) -> None:
        """An honest seller has accepted a price, or an honest buyer is about to pay it."""
        if isinstance(record, AgreementReceived) and name in view.honest_resources:
            assert isinstance(record.agreement.body, Agreement)
            self._check(record.agreement.body)
        elif isinstance(record, FundsAsked) and name in view.honest_users:
            for agreement in record.agreements:
                self._check(agreement)
                self._check_lowest(agreement)
            for agreement in record.agreements:
                self._ordered_from[agreement.user, agreement.request_id].add(agreement.resource)

    def _close(self, units: Iterable[_Called], user: str, request_id: str) -> None:
        self._decided.update([called for called in units if called[:2] == (user, request_id)])

    def _check(self, agreement: Agreement) -> None:
        offer, called = agreement.offer, _called(agreement)
        if self._is_paid_as_offered(agreement):
            if agreement.cost != offer.cost:
                raise self._violated(f"{agreement.agreement_id} pays {agreement.cost} for an offer of {offer.cost}")
            if not agreement.best_offer and agreement.cost > (most := _most(offer, agreement.request)):
                raise self._violated(f"{agreement.agreement_id} pays {agreement.cost}, but the limit is {most}")
            return
        if agreement.cost == offer.cost and "" in self._rules[called]:
            return  # a liar called with and without a rule, and the payee heard of no rule
        asked = (_most(offer, self._wanted[called]), *(_most(offer, each) for each in self._called_by_liars[called]))
        if not offer.cost <= agreement.cost <= max(asked):
            raise self._violated(f"{agreement.agreement_id} pays {agreement.cost}, not {offer.cost} to {max(asked)}")
        if agreement.cost in asked:
            return  # nobody else, or nobody cheaper
        others = [
            other.cost
            for other, seal in self._offered[called]
            if other.resource != offer.resource
            and (seal is None or agreement.issued_at < seal.signed_at + other.valid_for)
        ]
        if agreement.cost not in others:
            raise self._violated(f"{agreement.agreement_id} pays {agreement.cost}, which nobody else has offered")

    def _check_lowest(self, agreement: Agreement) -> None:
        """An honest buyer pays no more than the cheapest offer that it has heard of and has not tried asks.

        Of a seller with several offers the dearest counts: which of them its buyer keeps is a matter of preference.
        Once it has tried one of them the others do not: it has kept that one.
        One from whom an earlier order of the request came to nothing does not count: its buyer need not try it again.
        """
        called = _called(agreement)
        if self._is_paid_as_offered(agreement) or SECOND_PRICE not in self._rules[called]:
            return
        dearest: defaultdict[str, int] = defaultdict(int)
        tried = {resource for resource, offer_id in self._remaining[called] if (resource, offer_id) in self._accepted}
        for (resource, _), (offer, seal) in self._remaining[called].items():
            if resource not in tried and stands_at(offer, seal, agreement.issued_at):
                dearest[offer.resource] = max(dearest[offer.resource], offer.cost)
        for resource in (agreement.resource, *self._ordered_from[agreement.user, agreement.request_id]):
            dearest.pop(resource, None)
        owed = min((_most(agreement.offer, self._wanted[called]), *dearest.values()))
        if agreement.cost > owed:
            raise self._violated(f"{agreement.agreement_id} pays {agreement.cost}, but {owed} was the next offer")

    def _is_paid_as_offered(self, agreement: Agreement) -> bool:
        return agreement.best_offer or not any(self._rules[_called(agreement)])


def _most(offer: Offer, wanted: RequestUnit) -> int:
    return money.cost(wanted.cpu_hour_cost, wanted.cores.total, wanted.wall_time or offer.end - offer.start)


def _called(agreement: Agreement) -> _Called:
    return agreement.user, agreement.request_id, agreement.request.number
