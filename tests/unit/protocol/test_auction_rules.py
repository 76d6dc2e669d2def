"""Rules in use: what their calls say, who wins, what is paid, and what becomes of a rule that misbehaves."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from ramp.errors import RemoteProtocolError, RuleFailed
from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.called_terms import bound
from ramp.model.instant import HOUR, MINUTE
from ramp.model.offer import Offer, Refusal, RefusalCode
from ramp.model.price_paid import SECOND_PRICE
from ramp.model.request import RequestForQuotation, TorusTerms, TotalCores
from ramp.model.seal import Role, Seal
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.outcome import RequestStatus
from ramp.protocol.progress import RequestEnded, RoundClosed
from ramp.protocol.rules.auction_rule import AuctionRule, Bidding, Price, UnitBids
from ramp.protocol.rules.checked_rule import (
    RUNNER_UP_BYTES_MAX,
    CheckedRule,
    RuleBook,
    RuleFault,
    passed_on_bytes,
)
from ramp.protocol.user.voting import REQUEST_ENDED
from ramp.runtime.auction_rules import RULES
from simulation.market.virtual_notary import VirtualNotary
from tests.unit.protocol.conftest import UNIT, contents, new_user

SELLERS = ("res1", "res2", "res3")


class Buyer:
    """A user with one request, among sellers whose every word is the test's."""

    def __init__(self, rule: str = "", rules: Callable[[str], AuctionRule] = RULES.find, **options: Any) -> None:
        self.party = new_user(rules=rules)
        units = tuple(replace(UNIT, number=number) for number in range(1, options.pop("units", 1) + 1))
        wanted = ev.AuctionOptions(rule=rule, **options)
        self.call: Any = None
        self.begun = self.party.handle(ev.RequestSubmitted("r1", RequestForQuotation(units), wanted), 0)
        self.effects: list[fx.Effect] = list(self.begun)

    def hear(
        self, sender: str, content: Any, role: Role = Role.RESOURCE, *, seal: bool = True, now: int = 0
    ) -> list[Any]:
        if isinstance(content, c.Proposal):
            content = replace(content, offers=tuple(self.answering(offer) for offer in content.offers))
        message = Message(Performative.INFORM, sender, "alice", "r1", content)
        message = VirtualNotary(sender, role).seal(message, now) if seal else message
        self.effects = self.party.handle(message, now)
        self.call = next(iter(contents(self.effects, c.CallForProposals)), self.call)
        return self.effects

    def answering(self, offer: Offer) -> Offer:
        """An offer as an honest seller makes it: where the call names a rule, it says what it was called for."""
        if self.call is None or not self.call.rule or offer.terms or offer.unit > len(self.call.request.units):
            return offer
        return bound(offer, self.call.request.unit(offer.unit), self.call.rule)

    def called(self) -> list[c.CallForProposals]:
        listing = c.DirectoryListing("r1", "resource-trader", SELLERS)
        return contents(self.hear("directory", listing, Role.DIRECTORY), c.CallForProposals)

    def offer(self, resource: str, price: int | None, **options: Any) -> list[Any]:
        """A proposal, or a refusal for the price's sake."""
        refused = (Refusal(1, RefusalCode.PRICE),)
        made = () if price is None else (offer_of(resource, price),)
        return self.hear(resource, c.Proposal("r1", 1, made, refused if price is None else ()), **options)

    def bids(self, *prices: int | None) -> list[Any]:
        self.called()
        for seller, price in zip(SELLERS, prices, strict=True):
            self.offer(seller, price)
        return self.effects

    def grant(self, resource: str, now: int = 0) -> list[Any]:
        return self.hear(resource, c.HoldGranted("r1", f"offer-{resource}", "R-1", MINUTE), now=now)

    @property
    def agreement(self) -> Any:
        return self.party.purchases["r1"].confirmation.agreements[0]  # type: ignore[union-attr]

    @property
    def outcome(self) -> Any:
        return self.party.purchases["r1"].outcome


def offer_of(resource: str, price: int, **changes: Any) -> Offer:
    offer = Offer(f"offer-{resource}", "r1", 1, resource, price, HOUR, 2 * HOUR, 16, 0.5, 10 * MINUTE)
    return replace(offer, **changes)


# -- what is called for --------------------------------------------------------------------------------------------


def test_no_bid_of_the_extra_round_undercuts_a_sealed_one() -> None:
    buyer = Buyer(SECOND_PRICE, approval=ev.Approval.BEST_OFFER, units=2)
    buyer.called()
    for seller, price in (("res1", 60), ("res2", 50)):
        buyer.hear(seller, c.Proposal("r1", 1, (offer_of(seller, price),), (Refusal(2, RefusalCode.PRICE),)))
    buyer.offer("res3", None)
    late = offer_of("res3", 40)
    effects = buyer.hear("res3", c.Proposal("r1", 2, (late, replace(late, offer_id="o2", unit=2))))
    assert [each.offer_id for each in contents(effects, c.Rejection)] == [late.offer_id]


def test_unsigned_offers_are_not_taken_where_the_winner_is_shown_them() -> None:
    buyer = Buyer(SECOND_PRICE)
    buyer.called()
    with pytest.raises(RemoteProtocolError, match="not sealed"):
        buyer.offer("res1", 50, seal=False)
    with pytest.raises(RemoteProtocolError, match="certified as user"):
        buyer.offer("res1", 50, role=Role.USER)


# -- what is paid --------------------------------------------------------------------------------------------------


def test_second_price_is_that_of_the_next_offer_which_the_agreement_shows() -> None:
    buyer = Buyer(SECOND_PRICE)
    buyer.bids(60, 50, 55)
    buyer.grant("res2")
    agreement = buyer.agreement
    assert (agreement.offer.cpu_hour_cost, agreement.cost) == (50, 55 * 16 * 100)
    assert agreement.price.runner_up == buyer.answering(offer_of("res3", 55))
    assert agreement.price.seal.signer == "res3"


def refused_by_buyer(effects: list[Any]) -> str:
    """What a seller is told whose proposal is none."""
    (told,) = contents(effects, c.NotUnderstood)
    return str(told.reason)


def test_a_seller_that_uses_an_offers_id_again_is_told_so_and_has_answered() -> None:
    """Its seal would be shown to the winner for another offer of the same name."""
    buyer = Buyer(SECOND_PRICE, approval=ev.Approval.BEST_OFFER, units=2)
    buyer.called()
    twice = (offer_of("res3", 55, unit=2), offer_of("res3", 55))
    effects = buyer.hear("res3", c.Proposal("r1", 1, twice))
    assert "reuses an offer id in round 1" in refused_by_buyer(effects)
    for seller, price in (("res1", 60), ("res2", 50)):
        buyer.hear(seller, c.Proposal("r1", 1, (offer_of(seller, price),), (Refusal(2, RefusalCode.PRICE),)))
    assert buyer.call.round_number == 2, "nobody is silent: the round ends with the last answer, not with its time"
    (first,) = [each.progress.record for each in buyer.effects if isinstance(getattr(each, "progress", 0), RoundClosed)]
    assert {each.refusal.code for each in first.refusals if each.resource == "res3"} == {RefusalCode.BAD_PROPOSAL}
    buyer.hear("res1", c.Proposal("r1", 2, (offer_of("res1", 50, unit=2, offer_id="offer-new"),)))
    effects = buyer.hear("res2", c.Proposal("r1", 2, (offer_of("res2", 50, unit=2),)))
    assert "reuses an offer id in round 2" in refused_by_buyer(effects)


@pytest.mark.parametrize("padding", ["x" * (RUNNER_UP_BYTES_MAX + 1), "&" * (RUNNER_UP_BYTES_MAX // 9 + 1)])
def test_a_proposal_that_is_too_long_to_be_shown_to_the_winner_is_not_taken(padding: str) -> None:
    """A loser that pads its own would make the winner's commitment too large for the wire."""
    buyer = Buyer(SECOND_PRICE)
    buyer.called()
    proposal = c.Proposal("r1", 1, (offer_of("res3", 55),))
    message = VirtualNotary("res3", Role.RESOURCE).seal(
        Message(Performative.PROPOSE, "res3", "alice", "r1", proposal), 0
    )
    assert message.seal is not None
    padded = replace(message, seal=replace(message.seal, text=padding))
    effects = buyer.party.handle(padded, 0)
    assert refused_by_buyer(effects).startswith("res3 has sent a proposal of 50")
    other = Buyer(SECOND_PRICE)
    other.called()
    effects = other.party.handle(replace(padded, seal=replace(message.seal, text=padding[1:])), 0)
    assert contents(effects, c.NotUnderstood) == []


@pytest.mark.parametrize(
    "called",
    [
        {"cpu_hour_cost": 69},
        {"cores": TotalCores(8)},
        {"architecture": "x86_64"},
        {"wall_time": None},
        {"torus": TorusTerms((2, 2, 4))},
    ],
)
def test_an_offer_that_answers_another_call_is_not_taken(called: dict[str, Any]) -> None:
    """Nor could the winner be shown it: who checks the agreement would see that it was called for something else."""
    buyer = Buyer(SECOND_PRICE)
    buyer.called()
    other = bound(offer_of("res1", 40), replace(UNIT, **called), SECOND_PRICE)
    (told,) = contents(buyer.hear("res1", c.Proposal("r1", 1, (other,))), c.Rejection)
    assert "its call" in told.reason or "answers a call" in told.reason
    buyer.offer("res2", 50)
    buyer.offer("res3", 55)
    buyer.grant("res2")
    assert buyer.agreement.price.runner_up.resource == "res3"


def test_a_paper_auctions_offers_say_nothing_new(resource: Any) -> None:
    for rule, says in (("", False), (SECOND_PRICE, True)):
        call = c.CallForProposals(f"r-{rule}", 1, RequestForQuotation((UNIT,)), rule=rule)
        (proposal,) = contents(resource.hear("alice", call), c.Proposal)
        assert [(bool(offer.asked), bool(offer.terms)) for offer in proposal.offers] == [(says, says)]


def test_the_limit_is_on_what_is_paid_not_on_what_is_offered() -> None:
    buyer = Buyer(SECOND_PRICE, max_cost=54 * 16 * 100)
    buyer.bids(60, 50, 55)
    assert buyer.outcome.status is RequestStatus.REJECTED
    assert "880.00 credits together" in buyer.outcome.reason
    told = contents(buyer.effects, c.Rejection)
    assert {each.reason for each in told} == {REQUEST_ENDED}, "sellers learn neither the limit nor a price"


def test_an_offer_is_not_bought_for_more_than_the_owner_was_shown() -> None:
    """The runner-up lapses while the owner thinks, and the cap would be paid."""
    buyer = Buyer(SECOND_PRICE, approval=ev.Approval.ASK)
    buyer.called()
    buyer.hear("res3", c.Proposal("r1", 1, (offer_of("res3", 55, valid_for=MINUTE),)))
    buyer.offer("res1", None)
    buyer.offer("res2", 50)
    buyer.party.handle(ev.OffersApproved("r1", True), 2 * MINUTE)
    assert [each.offer_id for each in contents(buyer.grant("res2", 2 * MINUTE), c.HoldCancelled)] == ["offer-res2"]
    buyer.hear("res2", c.HoldCancelled("r1", "offer-res2"), now=2 * MINUTE)
    assert buyer.outcome.status is RequestStatus.REJECTED
    assert buyer.outcome.reason == "the price has risen since approval"


def test_second_price_makes_the_truth_the_best_bid() -> None:
    """Vickrey 1961, by brute force: whatever the two others bid, no bid earns a seller more than what it needs."""
    rule = RULES.find(SECOND_PRICE)
    grid = range(9)
    unit = replace(UNIT, cpu_hour_cost=6)

    def gain(need: int, bid: int, others: tuple[int, int]) -> int:
        prices = {"res1": bid, "res2": others[0], "res3": others[1]}
        made = tuple(offer_of(name, price) for name, price in prices.items() if price <= unit.cpu_hour_cost)
        if not made:
            return 0
        bids = UnitBids(unit, unit.cpu_hour_cost, made)
        first, *remaining = rule.winners(bids)
        if first.resource != "res1":
            return 0
        return rule.price(bids, first, remaining).cost - offer_of("res1", need).cost

    lies = 0
    for need, bid, *others in itertools.product(grid, repeat=4):
        truth, other = gain(need, need, (others[0], others[1])), gain(need, bid, (others[0], others[1]))
        assert truth >= other, (need, bid, others)
        lies += truth > other
    assert lies > 0  # a rule that pays everybody alike would pass the rest


# -- guests --------------------------------------------------------------------------------------------------------


class Misbehaving(AuctionRule):
    """Answers in one method what it is told to."""

    pays_offer = False

    def __init__(self, method: str, answer: Any) -> None:
        self._method, self._answer = method, answer

    def _or(self, method: str, right: Any) -> Any:
        if method != self._method:
            return right
        if isinstance(self._answer, BaseException):
            raise self._answer
        return self._answer(right) if callable(self._answer) else self._answer

    def next_asks(self, bidding: Bidding) -> Any:
        return self._or("next_asks", None)

    def winners(self, bids: UnitBids) -> Any:
        return self._or("winners", bids.offers)

    def price(self, bids: UnitBids, winner: Offer, remaining: Any) -> Any:
        return self._or("price", Price(winner.cost))


class Unspeakable(Exception):
    """Whatever is done with it raises."""

    def _raise(self, *_: object) -> Any:
        raise SystemExit("never")

    __str__ = __repr__ = __eq__ = __hash__ = __iter__ = __len__ = __bool__ = _raise  # type: ignore[assignment]


class Anything(int):
    """Says that it is whatever it is compared with."""

    def __eq__(self, other: object) -> bool:
        return True

    def __ge__(self, other: object) -> bool:
        return True

    __le__ = __ge__
    __hash__ = int.__hash__


class AnyOffer(Offer):
    """Says that it is the offer that it is compared with."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = Offer.__hash__


class Sly(list[Any]):
    """A list that cannot be read."""

    def __iter__(self) -> Any:
        raise Unspeakable


ANY_OFFER = AnyOffer("offer-res9", "r1", 1, "res9", 55, HOUR, 2 * HOUR, 16, 0.5, 10 * MINUTE)

WRONG = [
    ("next_asks", ValueError("no idea"), RuleFault.RAISED),
    ("next_asks", "70", RuleFault.WRONG_ASK),
    ("next_asks", {}, RuleFault.WRONG_ASK),
    ("next_asks", {1: 71}, RuleFault.WRONG_ASK),
    ("next_asks", {1: -1}, RuleFault.WRONG_ASK),
    ("next_asks", {1: True}, RuleFault.WRONG_ASK),
    ("next_asks", {1: 50.0}, RuleFault.WRONG_ASK),
    ("next_asks", {1: 50, 2: 50}, RuleFault.WRONG_ASK),
    ("winners", RuntimeError("no idea"), RuleFault.RAISED),
    ("winners", None, RuleFault.WRONG_WINNER),
    ("winners", (), RuleFault.WRONG_WINNER),
    ("winners", "offer-res1", RuleFault.WRONG_WINNER),
    ("winners", (offer_of("res9", 10),), RuleFault.WRONG_WINNER),
    ("winners", lambda offers: (offers[0], offers[0]), RuleFault.WRONG_WINNER),
    ("winners", lambda offers: (replace(offers[0], cpu_hour_cost=1),), RuleFault.WRONG_WINNER),
    ("price", KeyError("no idea"), RuleFault.RAISED),
    ("price", 88_000, RuleFault.WRONG_PRICE),
    ("price", Price(79_999), RuleFault.WRONG_PRICE),
    ("price", Price(112_001), RuleFault.WRONG_PRICE),
    ("price", Price(88_000.0), RuleFault.WRONG_PRICE),  # type: ignore[arg-type]
    ("price", Price(88_000, offer_of("res9", 55)), RuleFault.WRONG_PRICE),
    ("price", Price(88_000, offer_of("res2", 50)), RuleFault.WRONG_PRICE),
    ("next_asks", {1: 10**5000}, RuleFault.WRONG_ASK),
    ("next_asks", {1: Anything(50)}, RuleFault.WRONG_ASK),
    ("next_asks", [Unspeakable()], RuleFault.WRONG_ASK),
    ("next_asks", {1: Unspeakable()}, RuleFault.WRONG_ASK),
    ("next_asks", Unspeakable(), RuleFault.RAISED),
    ("next_asks", SystemExit(3), RuleFault.RAISED),
    ("next_asks", ValueError("\x1b[2J\0" * 9_999), RuleFault.RAISED),
    ("next_asks", RuleFailed("rule_unknown", "another", "x" * 9_999), RuleFault.RAISED),
    ("winners", Sly([1]), RuleFault.RAISED),
    ("winners", [Unspeakable()], RuleFault.WRONG_WINNER),
    ("winners", [ANY_OFFER], RuleFault.WRONG_WINNER),
    ("price", Price(10**5000), RuleFault.WRONG_PRICE),
    ("price", Price(Anything(88_000)), RuleFault.WRONG_PRICE),
    ("price", Price(88_000, Unspeakable()), RuleFault.WRONG_PRICE),  # type: ignore[arg-type]
    ("price", Price(88_000, ANY_OFFER), RuleFault.WRONG_PRICE),
    ("price", Unspeakable(), RuleFault.RAISED),
]


@pytest.mark.parametrize(
    ("method", "answer", "code"), WRONG, ids=[f"{number}-{each[2]}" for number, each in enumerate(WRONG)]
)
def test_a_rule_that_fails_ends_its_auction_with_a_code_and_nothing_else(
    method: str, answer: Any, code: RuleFault
) -> None:
    rules = {"bad": Misbehaving(method, answer), "open-rounds": RULES.find("open-rounds")}
    buyer = Buyer("bad", rules=lambda name: rules[name])
    buyer.bids(60, 50, 55)
    assert (buyer.outcome.status, buyer.outcome.code, buyer.outcome.rule) == (RequestStatus.FAILED, code, "bad")
    assert "the auction rule bad failed" in buyer.outcome.reason
    assert code is not RuleFault.RAISED or f": {method}: " in buyer.outcome.reason
    assert len(buyer.outcome.reason) < 400
    assert buyer.outcome.reason.isprintable()
    told = contents(buyer.effects, c.Rejection)
    assert {(each.offer_id, each.reason) for each in told} == {(f"offer-{name}", REQUEST_ENDED) for name in SELLERS}
    # the agent goes on
    again = ev.RequestSubmitted("r2", RequestForQuotation((UNIT,)), ev.AuctionOptions())
    assert contents(buyer.party.handle(again, 1), c.DirectoryQuery)


@pytest.mark.parametrize(("named", "shown"), [(offer_of("res9", 10), "'offer-res9'"), (17, "17")])
def test_what_was_not_offered_is_named(named: Any, shown: str) -> None:
    buyer = Buyer("bad", rules=lambda _: Misbehaving("winners", (named,)))
    buyer.bids(60, 50, 55)
    assert f"winner {shown} was not offered" in buyer.outcome.reason


def test_a_rule_that_says_no_price_pays_what_is_offered() -> None:
    class Silent(AuctionRule):
        pays_offer = False

    buyer = Buyer("silent", rules=lambda _: Silent())
    buyer.bids(60, 50, 55)
    buyer.grant("res2")
    assert buyer.agreement.cost == 80_000


def test_a_rule_may_name_an_offer_by_one_that_is_equal_to_it() -> None:
    class Copying(AuctionRule):
        def winners(self, bids: UnitBids) -> tuple[Offer, ...]:
            return tuple(replace(offer) for offer in reversed(bids.offers))

    offers = tuple(offer_of(each, 50) for each in SELLERS)
    assert CheckedRule("copying", Copying()).winners(UnitBids(UNIT, 70, offers)) == offers[::-1]


def test_a_rule_of_a_file_has_its_own_name() -> None:
    assert RuleBook(lambda _: Misbehaving("price", None), "").rule(ev.AuctionOptions(rule="own.py:Own")).name == "Own"


def test_a_proposal_that_is_passed_on_is_as_long_as_its_text_escaped_twice() -> None:
    assert passed_on_bytes(Seal("res1", Role.RESOURCE, "alice", "r1", 0, "<a>\r")) == len("&amp;lt;a&amp;gt;&amp;#13;")


def test_a_rule_without_end_is_ended() -> None:
    rule = CheckedRule("endless", Misbehaving("next_asks", {1: 70}))
    bids = (UnitBids(UNIT, 70, ()),)
    assert rule.next_asks(Bidding(99, 3, bids)) == {1: 70}
    with pytest.raises(RuleFailed, match="rounds must be at most 100"):
        rule.next_asks(Bidding(100, 3, bids))


def test_a_sealed_rule_that_tells_of_bids_by_its_price_is_ended() -> None:
    class Telling(Misbehaving):
        sealed = True

    with pytest.raises(RuleFailed, match="would reveal bids"):
        CheckedRule("telling", Telling("next_asks", {1: 50})).next_asks(Bidding(1, 3, (UnitBids(UNIT, 70, ()),)))


def test_a_bid_that_was_sealed_is_shown_in_no_later_call() -> None:
    """Unit 1 is bid for, unit 2 is not: the extra round must not tell of the bid."""
    buyer = Buyer("sealed-first-price", units=2)
    buyer.called()
    for seller in SELLERS:
        buyer.offer(seller, 60)
    assert [call.bids for call in contents(buyer.effects, c.CallForProposals)] == [()] * len(SELLERS)


def test_a_rule_may_ask_for_nothing_and_pay_what_is_offered_or_the_cap() -> None:
    """The ends of what is right belong to it."""
    bids = UnitBids(UNIT, 70, (offer_of("res1", 50),))
    assert CheckedRule("free", Misbehaving("next_asks", {1: 0})).next_asks(Bidding(1, 3, (bids,))) == {1: 0}
    for cost in (80_000, 112_000):  # 16 cores for an hour at 50, and at the cap of 70
        assert CheckedRule("paid", Misbehaving("price", Price(cost))).price(bids, bids.offers[0], ()) == Price(cost)
    whole = replace(bids, unit=replace(UNIT, wall_time=None))  # the cap is that of the slot
    with pytest.raises(RuleFailed, match="must be 80000 to 112000 minor units"):
        CheckedRule("paid", Misbehaving("price", Price(112_001))).price(whole, bids.offers[0], ())


def test_a_rule_that_nobody_knows_ends_the_request_before_anything_is_said() -> None:
    (report,) = Buyer("secondprice").begun
    assert isinstance(report, fx.Report)
    assert isinstance(report.progress, RequestEnded)
    outcome = report.progress.outcome
    assert (outcome.status, outcome.code, outcome.rule) == (RequestStatus.FAILED, RuleFault.UNKNOWN, "secondprice")
    assert "did you mean 'second-price'" in outcome.reason


def test_a_rule_that_fails_when_slots_are_held_lets_them_go() -> None:
    answers = iter((Price(90_000), Price(1)))  # the first for the owner's limit, the second for the agreement
    buyer = Buyer("bad", rules=lambda _: Misbehaving("price", lambda _: next(answers)))
    buyer.bids(60, 50, 55)
    assert [each.offer_id for each in contents(buyer.grant("res2"), c.HoldCancelled)] == ["offer-res2"]
    buyer.hear("res2", c.HoldCancelled("r1", "offer-res2"))
    assert (buyer.outcome.status, buyer.outcome.code) == (RequestStatus.FAILED, RuleFault.WRONG_PRICE)


class TheFirst(AuctionRule):
    def winners(self, bids: UnitBids) -> Sequence[Offer]:
        return bids.offers[:1]


def test_the_papers_calls_say_nothing_new() -> None:
    buyer = Buyer()
    assert {call.rule for call in buyer.called()} == {""}
    buyer.offer("res1", 60, seal=False)
    buyer.offer("res2", 50, seal=False)
    (again, *_) = contents(buyer.offer("res3", None, seal=False), c.CallForProposals)
    assert (again.round_number, again.request.units[0].cpu_hour_cost) == (2, 50)
    assert [(bid.resource, bid.cpu_hour_cost) for bid in again.bids] == [("res1", 60), ("res2", 50)]


def test_who_is_passed_over_is_not_told_that_the_request_has_ended() -> None:
    buyer = Buyer("first", rules=lambda _: TheFirst())
    told = contents(buyer.bids(60, 50, 55), c.Rejection)
    assert {(each.offer_id, each.reason == REQUEST_ENDED) for each in told} == {
        ("offer-res1", False),
        ("offer-res3", False),
    }
    assert buyer.outcome is None


def test_a_quotation_shows_what_would_be_paid() -> None:
    buyer = Buyer(SECOND_PRICE, quote_only=True)
    buyer.bids(60, 50, 55)
    (unit,) = buyer.outcome.units
    assert (unit.offer.cpu_hour_cost, unit.paid, unit.cost) == (50, 55 * 1_600, 55 * 1_600)
    assert buyer.outcome.rule == SECOND_PRICE
