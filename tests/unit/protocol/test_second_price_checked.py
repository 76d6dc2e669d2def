"""What winner and bank take for the price of a second-price auction, and every way in which a buyer may cheat."""

from dataclasses import replace
from typing import Any

import pytest

from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.agreement import PricePaid, Signed
from ramp.model.called_terms import bound
from ramp.model.instant import HOUR
from ramp.model.offer import Offer, RefusalCode
from ramp.model.price_paid import SECOND_PRICE, PriceFault
from ramp.model.request import RequestForQuotation, TotalCores
from ramp.model.seal import Role, Seal
from ramp.protocol import effects as fx
from tests.unit.protocol.conftest import UNIT, contents, messages

SEAL = Seal("other", Role.RESOURCE, "alice", "r1", 0, "sealed")


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
    (answer,) = [each.content for each in messages(resource.commit(offer, **changes)) if each.receiver == "alice"]
    return answer


def next_to(offer: Offer, price: int) -> PricePaid:
    return PricePaid(SECOND_PRICE, replace(offer, offer_id="x", resource="other", cpu_hour_cost=price), SEAL)


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
    answers = contents(bank.take(message, 20))
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
    answers = contents(bank.take(message, 20))
    if paid:
        assert any(isinstance(each, c.PaymentMade) for each in answers)
    else:
        (refused,) = [each for each in answers if isinstance(each, c.PaymentRefused)]
        assert (refused.code, refused.detail[:9]) == ("bad_price", "above_cap")
