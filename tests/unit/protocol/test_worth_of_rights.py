"""What the right to take cores back is worth to a seller: a discount where it could use it, and no more than it pays.

The seller asks 60 at first and 20 at least, half of it for such a right; its slot lasts an hour.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.money import cost, credits_text
from ramp.model.request import ReclaimTerms, RequestForQuotation, RequestUnit, TotalCores
from ramp.model.sizes.reclaimed import CHANGES_MAX
from ramp.model.slot import Slot, StaticTerms
from ramp.protocol import effects as fx
from ramp.protocol.pricing import PriceQuestion
from ramp.protocol.reclaiming.asking import QueueSeen, ReclaimOrdered
from ramp.protocol.resource.reclaiming.policy import ON_THE_WAY, ReclaimPolicy
from ramp.protocol.resource.seller import Enlarged, PriceRange, Seller
from ramp.protocol.timing import Timing
from simulation.market.counted_ids import CountedIds

UNIT = RequestUnit(1, 70, 3 * HOUR, TotalCores(16), not_before=HOUR, wall_time=HOUR)
RIGHT = ReclaimTerms(4, MINUTE, 10)
SLOT = Slot(HOUR, 2 * HOUR, 16, 0.0)
TIMING = Timing()


def seller(most: int | None = None, node: int = 1, rounds: int = 4) -> Seller:
    return Seller(
        "res",
        terms=StaticTerms(64, cores_per_node=node),
        prices=PriceRange(60, 20, rounds),
        source="log",
        ids=CountedIds("res"),
        timing=TIMING,
        reclaiming=ReclaimPolicy(discount=50, compensation_max=most),
    )


def asked(of: Seller, right: ReclaimTerms | None) -> tuple[int, int]:
    """First and least price that the strategy is asked with."""
    call = c.CallForProposals("r1", 1, RequestForQuotation((replace(UNIT, reclaim=right),)))
    (quote,) = of.on_call(Message(Performative.CFP, "alice", "res", "r1", call, reply_with="w"), call, 0)
    assert isinstance(quote, fx.QuoteSlots)
    (question,) = of.on_quoted(quote.call_id, (SLOT,), 0)
    assert isinstance(question, fx.PriceSlots)
    return question.questions[0].start_price, question.questions[0].minimum_price


LAST_NOTICE = HOUR - ON_THE_WAY - TIMING.amendment_window
"""With this notice nothing of the slot would be left when the cores were free and paid for."""


@pytest.mark.parametrize(
    ("right", "of_use"),
    [
        (RIGHT, True),
        (None, False),
        (replace(RIGHT, compensation=20), True),  # the least price
        (replace(RIGHT, compensation=21), False),
        (replace(RIGHT, notice=LAST_NOTICE - SECOND), True),
        (replace(RIGHT, notice=LAST_NOTICE), False),
        (replace(RIGHT, least=15), True),
    ],
)
def test_a_discount_is_given_for_a_right_of_use_only(right: ReclaimTerms | None, of_use: bool) -> None:
    expected = (30, 10) if of_use else (60, 20)
    assert asked(seller(), right) == expected
    rest = HOUR
    question = seller().question_for_growth(Enlarged(70, "alice", right, 16, rest), replace(SLOT, cores=4))
    assert (question.start_price, question.minimum_price) == expected


def test_the_strategy_hears_of_what_would_be_added_all_that_it_hears_in_an_auction() -> None:
    addition = replace(SLOT, cores=4, load=0.25, fragmentation=0.5, links_taken=0.75)
    question = seller(rounds=7).question_for_growth(Enlarged(70, "alice", None, 20, HOUR), addition)
    assert question == PriceQuestion(
        asking=70,
        start_price=60,
        minimum_price=20,
        load=0.25,
        rounds_expected=7,
        user="alice",
        cores=4,
        fragmentation=0.5,
        links_taken=0.75,
    )


@pytest.mark.parametrize(
    ("price", "discount", "expected"), [(1_000, 50, 500), (61, 50, 31), (1_000, 1, 990), (1, 99, 1), (1_000, 0, 1_000)]
)
def test_a_discount_is_in_percent_and_rounded_up(price: int, discount: int, expected: int) -> None:
    """What is sold is never free."""
    policy = ReclaimPolicy(discount=discount)
    assert (policy.price(price, granted=True), policy.price(price, granted=False)) == (expected, price)


def test_what_is_added_to_a_slot_that_ends_within_the_notice_costs_the_full_price() -> None:
    late = Enlarged(70, "alice", RIGHT, 16, MINUTE + ON_THE_WAY + TIMING.amendment_window)
    assert seller().question_for_growth(late, SLOT).start_price == 60
    assert seller().question_for_growth(replace(late, lasts=late.lasts + SECOND), SLOT).start_price == 30


def test_less_than_a_node_is_nothing_to_take() -> None:
    assert asked(seller(node=4), replace(RIGHT, least=12)) == (30, 10)
    assert asked(seller(node=4), replace(RIGHT, least=13)) == (60, 20)


def test_the_owner_may_set_another_greatest_compensation() -> None:
    assert asked(seller(most=9), RIGHT) == (60, 20)
    assert asked(seller(most=1000), replace(RIGHT, compensation=1000)) == (30, 10)


def test_an_order_above_the_greatest_compensation_is_refused_with_the_sum_that_it_would_cost(resource: Any) -> None:
    """12 of 16 cores of an hour that begins at HOUR, taken at HOUR, free 65 s later; sold for 60, 100 on top."""
    resource.unit = replace(UNIT, reclaim=replace(RIGHT, compensation=100))
    offer = resource.sell()
    left = HOUR - MINUTE - ON_THE_WAY
    total = 12 * offer.cpu_hour_cost * left * 100 // HOUR + cost(100, 12, left)
    effects, problem = resource.party.order_reclamation(ReclaimOrdered(offer.offer_id), HOUR)
    assert effects == []
    assert problem.startswith("too_expensive: it would cost ")
    assert f"{credits_text(total)} credits" in problem
    assert "right would be at most 20, or" in problem
    effects, problem = resource.party.order_reclamation(ReclaimOrdered(offer.offer_id, None, total - 1), HOUR)
    assert effects == []
    assert problem.startswith("too_expensive: ")
    effects, problem = resource.party.order_reclamation(ReclaimOrdered(offer.offer_id, None, total), HOUR)
    assert problem == ""
    assert effects


def test_nothing_above_the_greatest_compensation_is_taken_by_itself(resource: Any) -> None:
    for compensation, some in ((20, 1), (21, 0)):
        resource.unit = replace(UNIT, reclaim=replace(RIGHT, compensation=compensation))
        offer = resource.sell(f"r{some}", f"a{some}")
        participant = resource.party.participants[offer.offer_id]
        assert len(resource.party.sizes.reclaimable([participant], HOUR)) == some


@pytest.mark.parametrize(("compensation", "taken"), [(20, [11]), (21, []), (1_000_000, [])])
def test_its_own_queue_is_no_reason_to_pay_more(
    resource_that_takes_back: Any, compensation: int, taken: list[int]
) -> None:
    """The first job of its own queue lacks five of the sixteen cores that alice has, for whatever she has asked."""
    one = resource_that_takes_back
    one.unit = replace(UNIT, reclaim=replace(RIGHT, compensation=compensation))
    one.sell()
    effects = one.answered(one.party.handle(QueueSeen(5), HOUR), HOUR)
    notices = [each.message.content for each in effects if isinstance(each, fx.Send)]
    assert [each.reclamation.body.cores for each in notices] == taken


def test_a_slot_that_gives_nothing_more_keeps_no_other_from_giving(resource_that_takes_back: Any) -> None:
    """Of two the one that started last would give first; here, as they start together, the first by its name."""
    one = resource_that_takes_back
    one.unit = replace(UNIT, reclaim=RIGHT)
    first, second = one.sell("r1", "a1"), one.sell("r2", "a2")
    kept = one.party.sizes._slot(one.party.participants[first.offer_id])
    kept.changes = [one.party.participants[first.offer_id].agreement] * (CHANGES_MAX + 1)
    effects = one.answered(one.party.handle(QueueSeen(5), HOUR), HOUR)
    notices = [each.message.content.reclamation.body for each in effects if isinstance(each, fx.Send)]
    assert [(each.offer_id, each.cores) for each in notices] == [(second.offer_id, 11)]


def test_what_is_refused_all_the_same_is_passed_over_for_a_minute(resource_that_takes_back: Any) -> None:
    """As one core may be worth less than a hundredth of a credit, where all that could go are worth more."""
    one = resource_that_takes_back
    one.unit = replace(UNIT, reclaim=RIGHT)
    offer = one.sell()
    participant = one.party.participants[offer.offer_id]
    assert one.party.sizes.reclaimable([participant], HOUR) != []
    one.party.sizes.leave_alone(offer.offer_id, HOUR)
    assert one.party.sizes.reclaimable([participant], HOUR + MINUTE - 1) == []
    assert one.party.sizes.reclaimable([participant], HOUR + MINUTE) != []


def test_what_is_on_its_way_already_is_not_taken_once_more(resource_that_takes_back: Any) -> None:
    """Twelve cores of each may go; of what the queue lacks both give, and the same lack later is met by that."""
    one = resource_that_takes_back
    one.unit = replace(UNIT, reclaim=RIGHT)
    for number in (1, 2, 3):
        one.sell(f"r{number}", f"a{number}")

    def left(missing: int) -> list[int]:
        effects = one.answered(one.party.handle(QueueSeen(missing), HOUR), HOUR)
        contents = [each.message.content for each in effects if isinstance(each, fx.Send)]
        return [each.reclamation.body.cores for each in contents if isinstance(each, c.ReclamationNotice)]

    assert left(20) == [4, 8]
    assert left(20) == []
    assert left(21) == [15]
