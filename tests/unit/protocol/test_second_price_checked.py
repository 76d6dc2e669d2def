"""What winner and bank take for the price of a second-price auction, and every way in which a buyer may cheat."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.agreement import ORDER_VALIDITY_MAX, Agreement, PricePaid, Signed
from ramp.model.called_terms import bound
from ramp.model.instant import HOUR, MINUTE
from ramp.model.offer import Offer, RefusalCode
from ramp.model.price_paid import CLOCKS_APART, SECOND_PRICE, PriceFault, price_problem
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.model.seal import Role, Seal
from ramp.protocol import effects as fx

UNIT = RequestUnit(1, 70, 3 * HOUR, TotalCores(16), not_before=HOUR, wall_time=HOUR)
WON = bound(Offer("offer-res", "r1", 1, "res", 50, HOUR, 2 * HOUR, 16, 0.5, 10 * MINUTE), UNIT, SECOND_PRICE)
NEXT = replace(WON, offer_id="offer-other", resource="other", cpu_hour_cost=55)
SEAL = Seal("other", Role.RESOURCE, "alice", "r1", 0, "sealed")
PRICE = PricePaid(SECOND_PRICE, NEXT, SEAL)
LAST = MINUTE + ORDER_VALIDITY_MAX
PAID = 55 * 16 * 100


def agreement(price: PricePaid | None = PRICE, cost: int = PAID, **changes: Any) -> Agreement:
    made = Agreement("a1", "r1", 1, "alice", "res", "bank", UNIT, WON, "R", cost, MINUTE, "o1", LAST, price=price)
    return replace(made, **changes)


def shown(**changes: Any) -> PricePaid:
    """Another runner-up's offer, sealed as it should be."""
    other = replace(NEXT, **changes)
    return PricePaid(SECOND_PRICE, other, replace(SEAL, signer=other.resource))


def otherwise(rule: str = SECOND_PRICE, **terms: Any) -> PricePaid:
    """A runner-up's offer that is what the winner's call wants, but that answers another one."""
    called = bound(NEXT, replace(UNIT, **terms), rule)
    return PricePaid(SECOND_PRICE, called, SEAL)


WRONG = {
    "forged": (agreement(PricePaid(SECOND_PRICE, NEXT, None)), PriceFault.RUNNER_UP_FORGED),
    "sealed by another": (
        agreement(PricePaid(SECOND_PRICE, NEXT, replace(SEAL, signer="third"))),
        PriceFault.RUNNER_UP_FORGED,
    ),
    "sealed by a user": (
        agreement(PricePaid(SECOND_PRICE, NEXT, replace(SEAL, role=Role.USER))),
        PriceFault.RUNNER_UP_FORGED,
    ),
    "the winner's own": (agreement(shown(resource="res")), PriceFault.RUNNER_UP_SHAM),
    "the buyer's own": (agreement(shown(resource="alice")), PriceFault.RUNNER_UP_SHAM),
    "to another buyer": (
        agreement(PricePaid(SECOND_PRICE, NEXT, replace(SEAL, receiver="bob"))),
        PriceFault.RUNNER_UP_FOREIGN,
    ),
    "of another conversation": (
        agreement(PricePaid(SECOND_PRICE, NEXT, replace(SEAL, conversation_id="r2"))),
        PriceFault.RUNNER_UP_FOREIGN,
    ),
    "for another request": (agreement(shown(request_id="r2")), PriceFault.RUNNER_UP_FOREIGN),
    "for another unit": (agreement(shown(unit=2)), PriceFault.RUNNER_UP_FOREIGN),
    "too few cores": (agreement(shown(cores=15)), PriceFault.RUNNER_UP_FOREIGN),
    "too late": (agreement(shown(end=4 * HOUR)), PriceFault.RUNNER_UP_FOREIGN),
    "above the cap": (agreement(shown(cpu_hour_cost=71)), PriceFault.RUNNER_UP_FOREIGN),
    "expired": (agreement(shown(valid_for=MINUTE)), PriceFault.RUNNER_UP_EXPIRED),
    "of a time to come": (
        agreement(replace(PRICE, seal=replace(SEAL, signed_at=MINUTE + CLOCKS_APART + 1))),
        PriceFault.RUNNER_UP_EXPIRED,
    ),
    "dated back": (agreement(valid_until=LAST + 1), PriceFault.RUNNER_UP_EXPIRED),
    "too low": (agreement(shown(cpu_hour_cost=49), 49 * 1600), PriceFault.RUNNER_UP_TOO_LOW),
    "paid less than the next": (agreement(cost=PAID - 1), PriceFault.NOT_THE_RULES),
    "paid more than the next": (agreement(cost=PAID + 1), PriceFault.NOT_THE_RULES),
    "paid less than offered": (agreement(cost=50 * 1600 - 1), PriceFault.BELOW_OFFER),
    "paid more than the cap": (agreement(cost=70 * 1600 + 1), PriceFault.ABOVE_CAP),
    "nobody else, and less than the cap": (agreement(PricePaid(SECOND_PRICE)), PriceFault.NOT_THE_RULES),
    "the next was called for at another price": (
        agreement(otherwise(cpu_hour_cost=66)),
        PriceFault.CALLED_OTHERWISE,
    ),
    "the next was called for by another rule": (agreement(otherwise("another")), PriceFault.CALLED_OTHERWISE),
    "the next was called for with other terms": (
        agreement(otherwise(ram_per_core_mb=64_000)),
        PriceFault.CALLED_OTHERWISE,
    ),
    "the next was called for with more time": (agreement(otherwise(not_before=None)), PriceFault.CALLED_OTHERWISE),
    "the next does not say what it was called for": (agreement(shown(terms="", asked=0)), PriceFault.CALLED_OTHERWISE),
    "the winner was called for something else": (
        agreement(offer=bound(WON, replace(UNIT, architecture="x86_64"), SECOND_PRICE)),
        PriceFault.CALLED_OTHERWISE,
    ),
    "what was not wanted, by the rule": (agreement(best_offer=True), PriceFault.RULE_NOT_AGREED),
    "no rule, and not as offered": (agreement(None), PriceFault.NOT_AS_OFFERED),
    "as offered, for more cores than asked, above the cap": (
        agreement(None, 70 * 1700, offer=replace(WON, cpu_hour_cost=70, cores=17)),
        PriceFault.ABOVE_CAP,
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_with_a_price_by_the_agreement_itself(name: str) -> None:
    made, code = WRONG[name]
    problem = price_problem(made)
    assert problem is not None
    assert problem.code is code


def test_what_is_right() -> None:
    assert price_problem(agreement()) is None
    assert price_problem(agreement(PricePaid(SECOND_PRICE), 70 * 1600)) is None
    assert price_problem(agreement(shown(cpu_hour_cost=50), 50 * 1600)) is None, "both ask the same"
    ahead = agreement(replace(PRICE, seal=replace(SEAL, signed_at=MINUTE + CLOCKS_APART)))
    assert price_problem(ahead) is None, "its clock is ahead of the buyer's"
    larger = agreement(shown(cores=32, cpu_hour_cost=35), 70 * 1600)
    assert price_problem(larger) is None, "the next offer charges more cores, and costs the cap"
    own = bound(WON, replace(UNIT, cpu_hour_cost=60), "their-own")
    theirs = agreement(PricePaid("their-own"), 60 * 1600, offer=own)
    assert price_problem(theirs) is None, "any rule's price within the bounds; it may ask for ever less"
    assert price_problem(agreement(None, 50 * 1600)) is None
    best = agreement(None, 99 * 1600, offer=replace(WON, cpu_hour_cost=99), best_offer=True)
    assert price_problem(best) is None, "the owner has approved a best offer"


# -- the winner ----------------------------------------------------------------------------------------------------


def held(resource: Any, rule: str = SECOND_PRICE) -> Offer:
    """A slot held for an offer made to a call that names a rule."""
    call = c.CallForProposals("r1", 1, RequestForQuotation((UNIT,)), rule=rule)
    (reply,) = [each for each in resource.hear("alice", call) if isinstance(each, fx.Send)]
    assert reply.sealed is bool(rule), "the winner is shown it, so it leaves with a seal"
    offer: Offer = reply.message.content.offers[0]  # type: ignore[union-attr]
    resource.hear("alice", c.Acceptance("r1", offer.offer_id))
    return offer


def committed(resource: Any, offer: Offer, **changes: Any) -> Any:
    (answer,) = [
        effect.message.content
        for effect in resource.commit(offer, **changes)
        if isinstance(effect, fx.Send) and effect.message.receiver == "alice"
    ]
    return answer


def next_to(offer: Offer, price: int) -> PricePaid:
    return PricePaid(SECOND_PRICE, replace(offer, offer_id="x", resource="other", cpu_hour_cost=price), SEAL)


def test_the_winner_takes_the_price_of_the_next_offer(resource: Any) -> None:
    offer = held(resource)
    assert offer.cpu_hour_cost == 65
    answer = committed(resource, offer, price=next_to(offer, 68), cost=68 * 1600)
    assert isinstance(answer, c.Confirmed)


@pytest.mark.parametrize(
    ("rule", "changes", "code"),
    [
        (SECOND_PRICE, {}, PriceFault.RULE_NOT_AGREED),  # as offered, though the rule was called for
        (SECOND_PRICE, {"price": PricePaid("another"), "cost": 66 * 1600}, PriceFault.RULE_NOT_AGREED),
        ("", {"price": PricePaid(SECOND_PRICE), "cost": 70 * 1600}, PriceFault.RULE_NOT_AGREED),
        (
            SECOND_PRICE,
            {"price": PricePaid(SECOND_PRICE), "cost": 66 * 1600, "request": replace(UNIT, cpu_hour_cost=66)},
            PriceFault.CAP_LOWERED,
        ),
        (SECOND_PRICE, {"price": PricePaid(SECOND_PRICE), "cost": 66 * 1600}, PriceFault.NOT_THE_RULES),
    ],
)
def test_the_winner_refuses_another_price_with_a_code(
    resource: Any, rule: str, changes: dict[str, Any], code: PriceFault
) -> None:
    offer = held(resource, rule)
    answer = committed(resource, offer, **changes)
    assert isinstance(answer, c.HoldRefused)
    assert answer.code is RefusalCode.BAD_PRICE
    assert answer.detail.startswith(f"{code}: ")
    assert resource.state(offer) == "held", "the buyer may still come with the right one"


def test_a_seller_countersigns_nothing_above_the_limit_in_the_agreement(resource: Any) -> None:
    offer = held(resource, "")
    answer = committed(resource, offer, request=replace(UNIT, cpu_hour_cost=64))
    assert (answer.code, answer.detail[:9]) == (RefusalCode.BAD_PRICE, "above_cap")
    best = committed(resource, offer, request=replace(UNIT, cpu_hour_cost=64), best_offer=True)
    assert isinstance(best, c.Confirmed)


def test_the_winner_refuses_a_runner_up_that_bids_less(resource: Any) -> None:
    offer = held(resource)
    answer = committed(resource, offer, price=next_to(offer, 64), cost=65 * 1600)
    assert (answer.code, answer.detail[:17]) == (RefusalCode.BAD_PRICE, "runner_up_too_low")


# -- the bank ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("price", "code"),
    [
        (SEAL, None),
        (replace(SEAL, signer="third"), PriceFault.RUNNER_UP_FORGED),
        (replace(SEAL, conversation_id="r2"), PriceFault.RUNNER_UP_FOREIGN),
        (replace(SEAL, signed_at=-HOUR), PriceFault.RUNNER_UP_EXPIRED),
    ],
)
def test_the_bank_pays_what_the_runner_up_asks_and_nothing_else(
    bank: Any, price: Seal, code: PriceFault | None
) -> None:
    line = bank.line(cost=65 * 1600)
    bank.order(line)
    body = bank.agreement(line, cost=line.cost)
    offer = bound(body.offer, body.request, SECOND_PRICE)
    other = replace(offer, offer_id="x", resource="other", cpu_hour_cost=65)
    body = replace(body, offer=offer, price=PricePaid(SECOND_PRICE, other, price))
    message = Message(Performative.REQUEST, "res1", "bank", "r1", Signed(body, ("alice", "res1")), reply_with="w")
    answers = [effect.message.content for effect in bank.take(message, 20) if isinstance(effect, fx.Send)]
    if code is None:
        assert any(isinstance(each, c.PaymentMade) and each.amount == 65 * 1600 for each in answers)
    else:
        (refused,) = [each for each in answers if isinstance(each, c.PaymentRefused)]
        assert refused.code == "bad_price"
        assert refused.detail.startswith(f"{code}: ")


@pytest.mark.parametrize(("cores", "best_offer", "paid"), [(16, False, True), (15, False, False), (15, True, True)])
def test_the_bank_pays_nothing_above_the_limit_for_what_was_asked(
    bank: Any, cores: int, best_offer: bool, paid: bool
) -> None:
    line = bank.line()
    bank.order(line)
    body = bank.agreement(line)
    assert (body.offer.cores, body.cost) == (16, body.offer.cost)
    limit = -(-body.cost // 1600)
    asked = replace(body.request, cpu_hour_cost=limit, cores=TotalCores(cores), wall_time=HOUR)
    signed = Signed(replace(body, request=asked, best_offer=best_offer), ("alice", "res1"))
    message = Message(Performative.REQUEST, "res1", "bank", "r1", signed, reply_with="w")
    answers = [effect.message.content for effect in bank.take(message, 20) if isinstance(effect, fx.Send)]
    if paid:
        assert any(isinstance(each, c.PaymentMade) for each in answers)
    else:
        (refused,) = [each for each in answers if isinstance(each, c.PaymentRefused)]
        assert (refused.code, refused.detail[:9]) == ("bad_price", "above_cap")
