"""What a resource asks its pricing strategy, which size and which start it offers, and what it remembers of offers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.instant import HOUR, SECOND
from ramp.model.offer import RefusalCode
from ramp.model.probable_start import QUEUE_WAIT_MAX
from ramp.model.request import MoldableTerms, RequestForQuotation, RequestUnit, TotalCores
from ramp.model.slot import Slot, StaticTerms
from ramp.protocol import effects as fx
from ramp.protocol.pricing import PriceQuestion, PriceRefusal, paper_price
from ramp.protocol.resource import seller as selling
from ramp.protocol.resource.jobs.launching import LaunchTerms
from ramp.protocol.resource.seller import PriceRange, Seller
from ramp.protocol.timing import Timing
from simulation.market.counted_ids import CountedIds

TIMING = Timing()
UNIT = RequestUnit(1, 70, 3 * HOUR, TotalCores(16), not_before=HOUR, wall_time=HOUR)
SLOT = Slot(HOUR, 2 * HOUR, 16, 0.25, "R00-M0", "t", fragmentation=0.125, links_taken=0.5)
MOLDABLE = RequestUnit(
    1, 70, 3 * HOUR, TotalCores(16), not_before=HOUR, wall_time=HOUR, moldable=MoldableTerms(16, 64, "amdahl:0.5")
)
ON_32 = 3495 * SECOND
"""What takes an hour on 16 cores takes 33/34 of it on 32, rounded up to seconds: 31.07 core hours."""


def new_seller(**changes: Any) -> Seller:
    """Of a machine with 64 cores, whose owner expects seven rounds."""
    return Seller(
        "res",
        terms=StaticTerms(64),
        prices=PriceRange(60, 20, 7),
        source="live",
        ids=CountedIds("res"),
        timing=TIMING,
        **changes,
    )


def called(seller: Seller, *units: RequestUnit, number: int = 1, user: str = "alice", **terms: Any) -> list[Any]:
    call = c.CallForProposals("r1", number, RequestForQuotation(units or (UNIT,)), **terms)
    return list(seller.on_call(Message(Performative.CFP, user, "res", "r1", call, reply_with="w-7"), call, 0))


def questions(seller: Seller, slots: tuple[Slot, ...], *units: RequestUnit, **terms: Any) -> fx.PriceSlots:
    (asked,) = called(seller, *units, **terms)
    (priced,) = seller.on_quoted(asked.call_id, slots, 0)
    assert isinstance(priced, fx.PriceSlots)
    return priced


def bid(seller: Seller, *prices: Any, slots: tuple[Slot, ...] = (SLOT,), now: int = 0, **terms: Any) -> fx.Send:
    units = terms.pop("units", ())
    (send,) = seller.on_priced(questions(seller, slots, *units, **terms).call_id, prices, now)
    assert isinstance(send, fx.Send)
    return send


def proposal(send: fx.Send) -> c.Proposal:
    assert isinstance(send.message.content, c.Proposal)
    return send.message.content


def test_the_strategy_is_told_all_that_the_call_the_slot_and_the_owner_say() -> None:
    """PriceQuestion's fields, each from where its docstring says that it comes."""
    seller = new_seller()
    bid(seller, 55)
    (question,) = questions(seller, (SLOT,), number=2, best_offer=True).questions
    assert question == PriceQuestion(
        asking=70,
        start_price=60,
        minimum_price=20,
        load=0.25,
        rounds_expected=7,
        own_last=55,
        round_number=2,
        best_offer=True,
        user="alice",
        cores=16,
        fragmentation=0.125,
        links_taken=0.5,
    )


def test_an_offer_of_a_later_round_is_no_earlier_offer_and_is_not_replaced_by_one() -> None:
    seller = new_seller()
    (slow,) = called(seller, number=1)
    bid(seller, 50, number=2)
    (late,) = seller.on_quoted(slow.call_id, (SLOT,), 0)
    assert isinstance(late, fx.PriceSlots)
    assert late.questions[0].own_last is None
    seller.on_priced(slow.call_id, (58,), 0)
    assert questions(seller, (SLOT,), number=3).questions[0].own_last == 50


def test_a_rejected_offer_stands_no_longer_and_leaves_no_memory_of_its_request() -> None:
    seller = new_seller()
    first = proposal(bid(seller, 50)).offers[0]
    assert called(seller) == [fx.Send(bid(new_seller(), 50).message)]  # a copy of the call gets the same answer
    seller.rejected(first.offer_id, "bob")
    assert len(seller._biddings) == 1
    seller.rejected(first.offer_id, "alice")
    assert len(seller._biddings) == 0
    assert questions(seller, (SLOT,)).questions[0].own_last is None


def test_an_earlier_offer_that_is_rejected_takes_nothing_from_the_last_one() -> None:
    seller = new_seller()
    first, second = (proposal(bid(seller, price, number=number)).offers[0] for number, price in ((1, 50), (2, 45)))
    seller.rejected(first.offer_id, "alice")
    (again,) = called(seller, number=2)
    assert proposal(again).offers == (second,)
    assert questions(seller, (SLOT,), number=3).questions[0].own_last == 45


def test_a_refusal_is_made_again_for_a_copy_of_its_call() -> None:
    seller = new_seller()
    refused = bid(seller, PriceRefusal(RefusalCode.PRICE, 80))
    assert len(seller._biddings) == 0
    assert bid(seller, PriceRefusal(RefusalCode.PRICE, 80)) == refused


def test_the_last_offer_is_told_at_the_size_of_the_slot() -> None:
    """30 on 32 cores is 932.00 credits, no more than 59 at the reference size, which is 30.4 on 32 cores again."""
    seller = new_seller()
    slot = Slot(HOUR, HOUR + ON_32, 32, 0.25)
    terms = {"units": (MOLDABLE,), "slots": (slot,) * 3}
    assert len(proposal(bid(seller, 30, 30, 30, **terms)).offers) == 1
    assert {each.own_last for each in questions(seller, (slot,) * 3, MOLDABLE, number=2).questions} == {30}


def test_a_price_that_would_pass_is_told_at_the_reference_size() -> None:
    """40 on 32 cores is 1242.67 credits, which the 16 core hours of the reference size cost at 77.7."""
    slot = Slot(HOUR, HOUR + ON_32, 32, 0.25)
    send = bid(
        new_seller(),
        *(PriceRefusal(RefusalCode.PRICE, 40, "too low"),) * 3,
        slots=(slot,) * 3,
        units=(MOLDABLE,),
    )
    (refusal,) = proposal(send).refusals
    assert refusal.nearest == "78 credits/core-hour"


def test_the_size_that_costs_least_is_offered_whenever_it_begins() -> None:
    """50 on 16 cores for an hour is 800 credits, 26 on 32 cores 807.73."""
    late, soon = Slot(2 * HOUR, 3 * HOUR, 16, 0.25), Slot(HOUR, HOUR + ON_32, 32, 0.25)
    send = bid(new_seller(), 50, 26, 26, slots=(late, soon, soon), units=(MOLDABLE,))
    assert [offer.cores for offer in proposal(send).offers] == [16]


WHOLE = replace(SLOT, cores=64)
"""A machine that sells all of its 64 cores or none: for 16 cores asked at 70, at most 1 120 credits, 17.5 each."""


def test_a_machine_that_charges_more_is_asked_for_no_more_than_the_request_may_cost() -> None:
    seller = new_seller()
    assert questions(seller, (WHOLE,)).questions[0].asking == 17
    assert questions(seller, (WHOLE,), replace(UNIT, cpu_hour_cost=1), number=2).questions[0].asking == 0
    assert questions(seller, (replace(SLOT, end=3 * HOUR),), number=3).questions[0].asking == 35, "two hours for one"


def test_its_last_offer_stands_at_its_own_price() -> None:
    seller = new_seller()
    bid(seller, 13, slots=(replace(SLOT, cores=17),))  # 221 credits, 13.8 for each of the 16 core hours asked
    asked = replace(UNIT, cpu_hour_cost=14)
    (question,) = questions(seller, (replace(SLOT, cores=17),), asked, number=2).questions
    assert (question.asking, question.own_last) == (13, 13)


@pytest.mark.parametrize(
    ("price", "told"),
    [
        (70, "charges 64 cores; or ask for 64 cores"),
        (15, "charges 64 cores; or ask for 64 cores at 20 credits/core-hour"),
    ],
)
def test_a_refusal_names_the_least_asking_price_and_the_cores_charged(price: int, told: str) -> None:
    """The minimum of 20 on 64 cores costs 1 280 credits, 80 for each of the 16 core hours asked."""
    seller = new_seller()
    unit = replace(UNIT, cpu_hour_cost=price)
    (question,) = questions(seller, (WHOLE,), unit).questions
    (refusal,) = proposal(bid(new_seller(), paper_price(question), slots=(WHOLE,), units=(unit,))).refusals
    assert (refusal.code, refusal.nearest, refusal.detail) == (RefusalCode.PRICE, "80 credits/core-hour", told)
    assert refusal.passing == f"80 credits/core-hour ({told})"
    (offer,) = proposal(bid(seller, 20, slots=(WHOLE,), units=(replace(UNIT, cpu_hour_cost=80),), number=2)).offers
    assert offer.cost == 128_000


@pytest.mark.parametrize(("best_offer", "offers"), [(False, 0), (True, 1)])
def test_a_strategy_that_ignores_the_asking_price_offers_nothing_above_it(best_offer: bool, offers: int) -> None:
    answer = proposal(bid(new_seller(), 18, slots=(WHOLE,), best_offer=best_offer))
    assert len(answer.offers) == offers
    assert [each.nearest for each in answer.refusals] == ["72 credits/core-hour"] * (1 - offers)


def test_the_offer_says_where_on_the_machine_and_answers_the_call() -> None:
    send = bid(new_seller(), 55)
    (offer,) = proposal(send).offers
    assert (offer.placement, offer.start, offer.end, offer.load) == ("R00-M0", HOUR, 2 * HOUR, 0.25)
    assert send.message.in_reply_to == "w-7"


@pytest.mark.parametrize("rule", ["", "second-price"])
def test_where_the_rule_may_show_an_offer_to_others_the_answer_is_sealed_also_to_a_copy(rule: str) -> None:
    seller = new_seller()
    assert bid(seller, 55, rule=rule).sealed is bool(rule)
    (again,) = called(seller, rule=rule)
    assert again.sealed is bool(rule)


@pytest.mark.parametrize(("best_offer", "offers"), [(False, 0), (True, 1)])
def test_only_a_best_offer_may_end_after_the_deadline(best_offer: bool, offers: int) -> None:
    late = Slot(3 * HOUR, 4 * HOUR, 16, 0.25)
    told = proposal(bid(new_seller(), 55, slots=(late,), best_offer=best_offer))
    assert len(told.offers) == offers
    assert [each.code for each in told.refusals] == [RefusalCode.WINDOW_TOO_SHORT] * (1 - offers)


@pytest.mark.parametrize(
    ("start", "asked", "code"),
    [
        (TIMING.agreement_validity - 1, 0.5, RefusalCode.WINDOW_TOO_SHORT),
        (TIMING.agreement_validity, 0.5, None),
        (QUEUE_WAIT_MAX, 0.5, None),
        (QUEUE_WAIT_MAX + 1, 0.5, RefusalCode.WINDOW_TOO_SHORT),
        (HOUR, 0.75, None),
        (HOUR, 0.76, RefusalCode.START_PROBABILITY),
        (HOUR, None, RefusalCode.START_PROBABILITY),
    ],
)
def test_a_probable_start_is_sold_from_when_it_is_signed_until_money_waits_no_longer(
    start: int, asked: float | None, code: RefusalCode | None
) -> None:
    """Both ends belong to the window, and the probability asked may be just the one offered; a refusal says why."""
    unit = RequestUnit(1, 70, start + HOUR, TotalCores(16), wall_time=HOUR, start_probability=asked)
    told = proposal(
        bid(new_seller(), 55, slots=(Slot(start, start + HOUR, 16, 0.25, start_probability=0.75),), units=(unit,))
    )
    assert [each.code for each in told.refusals] == ([] if code is None else [code])
    assert all(each.detail for each in told.refusals)


def test_who_has_no_account_is_refused_every_unit() -> None:
    seller = new_seller(launching=LaunchTerms("slurm", {"bob": "b"}))
    second = RequestUnit(2, 70, 3 * HOUR, TotalCores(16), not_before=HOUR, wall_time=HOUR)
    (send,) = called(seller, UNIT, second)
    assert [(each.unit, each.code) for each in proposal(send).refusals] == [
        (1, RefusalCode.NO_ACCOUNT),
        (2, RefusalCode.NO_ACCOUNT),
    ]


def test_of_too_many_offers_the_oldest_goes_though_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selling, "OFFERS_MAX", 2)
    seller = new_seller()
    made = [proposal(bid(seller, 55, user=user)).offers[0].offer_id for user in ("alice", "bob", "carol")]
    assert [seller.offer(each, 1) is not None for each in made] == [False, True, True]


def test_an_offer_is_forgotten_twice_without_harm() -> None:
    seller = new_seller()
    (offer,) = proposal(bid(seller, 55)).offers
    seller.forget(offer.offer_id)
    seller.forget(offer.offer_id)
    assert seller.offer(offer.offer_id, 0) is None


def test_a_machine_and_a_strategy_answer_for_what_they_were_asked() -> None:
    seller = new_seller()
    (asked,) = called(seller)
    with pytest.raises(ValueError, match="shorter"):
        seller.on_quoted(asked.call_id, (), 0)
    with pytest.raises(ValueError, match="shorter"):
        seller.on_priced(questions(seller, (SLOT,), number=2).call_id, (), 0)
