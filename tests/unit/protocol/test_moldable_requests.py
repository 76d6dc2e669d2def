"""A range of cores on the market: the seller chooses the size, the buyer looks at law and cost."""

from dataclasses import replace
from typing import Any

import pytest

from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.instant import HOUR, SECOND
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import MoldableTerms, RequestForQuotation, RequestUnit, TotalCores
from ramp.model.slot import Slot
from ramp.protocol import effects as fx
from ramp.protocol.outcome import ResourceRefusal
from ramp.protocol.pricing import PriceRefusal
from ramp.protocol.progress import RoundClosed
from ramp.protocol.resource.seller import Seller
from tests.unit.protocol.conftest import messages, new_seller, reports

LAW = "amdahl:0.5"
"""On 16 cores T = 0.5 + 0.5 / 16 = 17/32; on 32 33/64, so an hour on 16 is 3495 s on 32 (rounded up); on 64 3442 s."""
UNIT = RequestUnit(
    1, 70, 3 * HOUR, TotalCores(16), not_before=HOUR, wall_time=HOUR, moldable=MoldableTerms(16, 64, LAW)
)
TIMES = {16: 3600 * SECOND, 32: 3495 * SECOND, 64: 3442 * SECOND}


def ask(seller: Seller) -> Any:
    call = c.CallForProposals("r1", 1, RequestForQuotation((UNIT,)))
    (asked,) = seller.on_call(Message(Performative.CFP, "alice", "res", "r1", call), call, 0)
    return asked


def answer(effects: list[Any]) -> c.Proposal:
    (send,) = [each for each in effects if isinstance(each, fx.Send)]
    assert isinstance(send.message.content, c.Proposal)
    return send.message.content


def test_of_several_sizes_the_cheapest_is_offered_and_of_those_the_one_that_ends_first() -> None:
    seller = new_seller()
    asked = ask(seller)
    begins = {16: HOUR, 32: 2 * HOUR, 64: HOUR}
    slots = [Slot(begins[n], begins[n] + TIMES[n], n, 0.1) for n in (each.cores.total for each in asked.units)]
    (priced,) = seller.on_quoted(asked.call_id, slots, 0)
    # no more than 70 * 16 core hours at every size: 1120 credits over 31.07 and 61.19 core hours
    assert [each.asking for each in priced.questions] == [70, 36, 18]
    found = answer(seller.on_priced(asked.call_id, [60, 30, PriceRefusal(RefusalCode.PRICE)], 0))
    (offer,) = found.offers
    # 960 credits on 16 cores, 932 on 32; on 64 not at 18
    assert (offer.cores, offer.cpu_hour_cost, offer.end - offer.start) == (32, 30, TIMES[32])
    assert found.refusals == ()


def test_a_unit_with_no_size_is_refused_once() -> None:
    seller = new_seller()
    asked = ask(seller)
    refused = [Refusal(1, code) for code in (RefusalCode.WINDOW_PASSED, RefusalCode.CORES_TAKEN, RefusalCode.TORUS)]
    found = answer(seller.on_quoted(asked.call_id, refused, 0))
    assert [each.code for each in found.refusals] == [RefusalCode.CORES_TAKEN]  # it alone may pass later


def rounds_of(effects: list[Any]) -> list[Any]:
    return [each.record for each in reports(effects, RoundClosed)]


def test_an_offer_against_the_law_is_a_coded_refusal(alice: Any) -> None:
    alice.open("res1", "res2", units=(UNIT,))
    honest = replace(alice.offer("res1", 30), cores=32, start=HOUR, end=HOUR + TIMES[32])
    ideal = replace(alice.offer("res2", 20), cores=32, start=HOUR, end=HOUR + HOUR // 2)  # half the time, cheapest
    alice.hear("res2", c.Proposal("r1", 1, (ideal,)))
    effects = alice.hear("res1", c.Proposal("r1", 1, (honest,)))
    (record,) = rounds_of(effects)
    (refusal,) = record.refusals
    assert isinstance(refusal, ResourceRefusal)
    assert (refusal.resource, refusal.refusal.code) == ("res2", RefusalCode.SIZE_AGAINST_LAW)
    assert LAW in refusal.refusal.detail
    (accepted,) = messages(effects, c.Acceptance)
    assert accepted.receiver == "res1"


@pytest.mark.parametrize(("price", "code"), [(70, None), (71, RefusalCode.BAD_PRICE)])
def test_an_offer_that_costs_more_than_the_run_may_is_a_coded_refusal(alice: Any, price: int, code: Any) -> None:
    """At its reference size of 16 cores for 1 h and 70 credits per core hour the run may cost 1 120 credits."""
    alice.open("res1", "res2", units=(UNIT,))
    at_reference = replace(alice.offer("res1", price), cores=16, start=HOUR, end=2 * HOUR)
    alice.hear("res1", c.Proposal("r1", 1, (at_reference,)))
    effects = alice.hear("res2", c.Proposal("r1", 1, (), (Refusal(1, RefusalCode.CORES_TAKEN),)))
    (record, *_) = rounds_of(effects)
    told = {each.resource: each.refusal for each in record.refusals}
    assert (told["res1"].code if "res1" in told else None) == code
    if code is not None:
        assert told["res1"].detail == (
            "cost too high: got 1 136.00 credits for 16 cores, "
            "expected at most 1 120.00 (16 cores asked at 70 credits/core-hour)"
        )
