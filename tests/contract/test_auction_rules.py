"""What every auction rule must do that is declared, here or by an installed package; nothing is listed here."""

from dataclasses import replace

import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from ramp.model.called_terms import bound
from ramp.model.instant import HOUR, MINUTE
from ramp.model.offer import Offer
from ramp.model.price_paid import price_problem
from ramp.model.request import RequestUnit, TotalCores
from ramp.model.seal import Role, Seal
from ramp.model.sizes.moldable import cost_cap, price_with
from ramp.protocol.events import Preference
from ramp.protocol.rules.auction_rule import Bidding, UnitBids
from ramp.protocol.rules.checked_rule import ROUNDS_MAX, CheckedRule, PaidPrices
from ramp.protocol.user.evaluator import Ranking
from ramp.runtime.auction_rules import RULES
from tests.agreements import agreement_of

EXAMPLE = "examples/own_auction_rule.py:AsLongAsItFalls"
NAMES = [*RULES.names(), EXAMPLE]

UNITS = st.builds(
    lambda cap, cores: RequestUnit(1, cap, 9 * HOUR, TotalCores(cores), not_before=HOUR, wall_time=HOUR),
    st.integers(1, 60),
    st.sampled_from((1, 16)),
)


@st.composite
def auctions(draw: st.DrawFn) -> tuple[RequestUnit, list[Offer], Preference]:
    """A unit and offers that meet it, in the order of their arrival; some machines charge more than was asked."""
    unit = draw(UNITS)
    offers = []
    for number in range(draw(st.integers(1, 5))):
        start = draw(st.sampled_from((HOUR, 2 * HOUR)))
        cores = unit.cores.total + draw(st.sampled_from((0, 0, 1)))
        length = HOUR + draw(st.sampled_from((0, 0, MINUTE)))
        price = draw(st.integers(0, price_with(unit, cores, length)))
        offers.append(
            Offer(f"o{number}", "r", 1, f"res{number}", price, start, start + length, cores, 0.5, 10 * MINUTE)
        )
    return unit, offers, draw(st.sampled_from(Preference))


def used(name: str) -> CheckedRule:
    return CheckedRule(name.rpartition(":")[2], RULES.find(name))


def ranked(unit: RequestUnit, offers: list[Offer], preference: Preference) -> UnitBids:
    ranking = Ranking(preference)
    for offer in offers:
        ranking.add(offer)
    return UnitBids(unit, unit.cpu_hour_cost, ranking.offers)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=examples(60))
@given(auction=auctions())
def test_no_unit_is_paid_above_its_cap_or_below_its_winners_offer(
    name: str, auction: tuple[RequestUnit, list[Offer], Preference]
) -> None:
    """Also when holds are refused, so that the offer behind wins; and everybody who checks the price agrees."""
    unit, offers, preference = auction
    rule = used(name)
    offers = [bound(offer, unit, rule.name) for offer in offers]
    bids = ranked(unit, offers, preference)
    seals = {
        (offer.resource, offer.offer_id): Seal(offer.resource, Role.RESOURCE, "user", "r", 0, "text")
        for offer in offers
    }
    winners = rule.winners(bids)
    prices = PaidPrices(rule, {1: bids}, seals)
    for index, winner in enumerate(winners):
        priced = prices.of(1, winner, winners[index + 1 :], MINUTE)
        assert winner.cost <= priced.cost <= cost_cap(unit, winner.end - winner.start)
        agreement = agreement_of(winner, unit, user="user", cost=priced.cost, issued_at=MINUTE, price=priced.price)
        assert price_problem(agreement) == ""
        assert (priced.price is None) is rule.pays_offer


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=examples(60))
@given(units=st.lists(auctions(), min_size=1, max_size=3), rounds=st.integers(1, 12), data=st.data())
def test_every_auction_ends_and_asks_for_no_more_than_before(
    name: str, units: list[tuple[RequestUnit, list[Offer], Preference]], rounds: int, data: st.DataObject
) -> None:
    """The checked rule raises where a rule asks for more, or without end; offers come as the prices allow."""
    rule = used(name)
    asked = {number: unit.cpu_hour_cost for number, (unit, _, _) in enumerate(units, 1)}
    best: dict[int, Offer] = {}
    for held in range(1, ROUNDS_MAX + 2):
        bids = []
        for number, (unit, offers, _) in enumerate(units, 1):
            wanted = replace(unit, number=number)
            called = replace(wanted, cpu_hour_cost=asked[number])
            fitting = [offer for offer in offers if offer.cost <= cost_cap(called, offer.end - offer.start)]
            if fitting and data.draw(st.booleans()):
                offer = data.draw(st.sampled_from(fitting))
                if number not in best or offer.cost < best[number].cost:
                    best[number] = offer
            bids.append(UnitBids(wanted, asked[number], (best[number],) if number in best else ()))
        asks = rule.next_asks(Bidding(held, rounds, tuple(bids)))
        if asks is None:
            return
        assert all(0 <= asks[number] <= asked[number] for number in asked)
        assert not rule.sealed or asks == asked
        asked = asks
    pytest.fail("it never ends")


@pytest.mark.parametrize("name", NAMES)
def test_a_rule_says_in_a_line_what_it_is(name: str) -> None:
    assert RULES.find(name).about


def test_the_shipped_rules_are_listed() -> None:
    usable = {one.name for one in RULES.listed() if not one.error}
    assert {"open-rounds", "sealed-first-price", "second-price"} <= usable
