"""Bids of resources: prices, sizes, what is refused, and whose accounts are served."""

from dataclasses import replace
from typing import Any

import pytest

from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.instant import HOUR
from ramp.model.machine_terms import check_static_terms
from ramp.model.offer import RefusalCode
from ramp.model.probable_start import QUEUE_WAIT_MAX
from ramp.model.request import Nodes, RequestForQuotation, RequestUnit, TotalCores
from ramp.model.slot import Slot, StaticTerms
from ramp.protocol import effects as fx
from ramp.protocol.pricing import PriceQuestion, PriceRefusal, original_price, paper_price
from ramp.protocol.resource import seller as selling
from ramp.protocol.resource.fragmentation_pricing import fragmentation_price, spoilt_share
from ramp.protocol.resource.jobs.launching import Application, LaunchTerms
from ramp.protocol.resource.quotas import Quotas
from ramp.protocol.resource.seller import PriceRange, Seller
from ramp.protocol.timing import Timing
from tests.unit.protocol.conftest import UNIT, OneResource, new_resource, new_seller

TIMING = Timing()
SLOT = Slot(HOUR, 2 * HOUR, 16, 0.25, "R00-M0", "t", fragmentation=0.125, links_taken=0.5)


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


def own_last(asked: fx.PriceSlots) -> list[int | None]:
    return [each.own_last for each in asked.questions]


def test_a_rejected_offer_stands_no_longer_and_leaves_no_memory_of_its_request() -> None:
    seller = new_seller()
    answer = bid(seller, 50, rule="second-price")
    assert called(seller, rule="second-price") == [answer]  # a copy of the call gets the same answer
    assert (answer.sealed, answer.message.in_reply_to) == (True, "w-7")
    first = proposal(answer).offers[0]
    seller.rejected(first.offer_id, "bob")
    assert len(seller.biddings) == 1
    seller.rejected(first.offer_id, "alice")
    assert len(seller.biddings) == 0
    assert questions(seller, (SLOT,)).questions[0].own_last is None


def test_a_rejected_offer_of_one_unit_takes_nothing_from_those_of_others() -> None:
    seller, units, both = new_seller(), (UNIT, replace(UNIT, number=2)), (SLOT, SLOT)
    first, _ = proposal(bid(seller, 50, 45, units=units, slots=both)).offers
    seller.rejected(first.offer_id, "alice")
    assert own_last(questions(seller, both, *units, number=2)) == [None, 45]
    copy = questions(seller, both, *units)  # is answered anew
    assert own_last(copy) == [None, None]
    assert seller.on_priced(copy.call_id, (48, 44), 0) == called(seller, *units)
    assert own_last(questions(seller, both, *units, number=3)) == [48, 44]


def test_a_price_that_comes_after_the_next_rounds_changes_nothing_of_that() -> None:
    seller = new_seller()
    slow, late = questions(seller, (SLOT,)), bid(seller, 45, number=2)
    seller.on_priced(slow.call_id, (50,), 0)
    assert called(seller, number=2) == [late]
    assert own_last(questions(seller, (SLOT,), number=3)) == [45]


def test_an_earlier_offer_that_is_rejected_takes_nothing_from_the_last_one() -> None:
    seller = new_seller()
    first, second = (proposal(bid(seller, price, number=number)).offers[0] for number, price in ((1, 50), (2, 45)))
    seller.rejected(first.offer_id, "alice")
    (again,) = called(seller, number=2)
    assert proposal(again).offers == (second,)
    assert questions(seller, (SLOT,), number=3).questions[0].own_last == 45


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


def test_a_machine_and_a_strategy_answer_for_what_they_were_asked() -> None:
    seller = new_seller()
    (asked,) = called(seller)
    with pytest.raises(ValueError, match="shorter"):
        seller.on_quoted(asked.call_id, (), 0)
    call_id = questions(seller, (SLOT,), number=2).call_id
    with pytest.raises(ValueError, match="shorter"):
        seller.on_priced(call_id, (), 0)
    assert seller.on_priced(call_id, (60,), 0) == []  # nothing waits for it any more


@pytest.mark.parametrize(("best_offer", "offers"), [(False, 0), (True, 1)])
@pytest.mark.parametrize(
    ("price", "slot", "refused"),
    [
        (55, Slot(3 * HOUR, 4 * HOUR, 16, 0.25), (RefusalCode.WINDOW_TOO_SHORT, "")),
        (18, replace(SLOT, cores=64), (RefusalCode.PRICE, "72 credits/core-hour")),
    ],
    ids=["late", "dear"],
)
def test_only_a_best_offer_may_end_after_the_deadline_or_cost_more_than_asked(
    price: int, slot: Slot, refused: tuple[RefusalCode, str], best_offer: bool, offers: int
) -> None:
    """Whatever the strategy says."""
    told = proposal(bid(new_seller(), price, slots=(slot,), best_offer=best_offer))
    assert len(told.offers) == offers
    assert [(each.code, each.nearest) for each in told.refusals] == [refused] * (1 - offers)


def test_a_strategy_hears_of_the_buyer_and_the_round() -> None:
    seller = new_seller(prices=PriceRange(60, 20, 5))
    (question,) = questions(seller, (SLOT,), number=4, user="bob", best_offer=True).questions
    assert question == PriceQuestion(70, 60, 20, 0.25, 5, None, 4, True, "bob", 16, 0.125, 0.5)
    assert seller.price_question(UNIT, "bob", SLOT) == replace(question, round_number=1, best_offer=False)


GPUS = replace(UNIT, cores=Nodes(2, 4), gpus_per_node=2, gpu_model="a100", gpu_memory_mb=40_000)
GPU_MACHINE = StaticTerms(64, 16, gpus_per_node=2, gpu_model="a100", gpu_memory_mb=40_000)


def test_gpus_are_sold_with_whole_nodes_and_their_price_is_in_that_of_the_cores() -> None:
    """Two of 16 cores with two GPUs at 12 an hour: 24 a node, so 1.5 and rounded up 2 beside each core hour."""
    seller = new_seller(terms=GPU_MACHINE, prices=PriceRange(60, 20, gpu_price=12))
    (asked,) = called(seller, GPUS)
    assert [each.cores for each in asked.units] == [Nodes(2, 16)]
    (priced,) = seller.on_quoted(asked.call_id, (replace(SLOT, cores=32),), 0)
    (question,) = priced.questions
    # of eight cores at 70, no more than 560 an hour is paid for all 32 and the GPUs
    assert (question.start_price, question.minimum_price, question.asking) == (62, 22, 17)
    (question,) = questions(new_seller(prices=PriceRange(60, 20, gpu_price=12)), (SLOT,)).questions
    assert (question.start_price, question.minimum_price) == (60, 20)


def test_gpus_are_held_with_whole_nodes() -> None:
    one = OneResource(new_resource(Quotas(), terms=GPU_MACHINE), unit=replace(GPUS, cores=Nodes(2, 8)))
    _, effects = one.hold()
    assert [each.unit.cores for each in effects if isinstance(each, fx.HoldSlot)] == [Nodes(2, 16)]


@pytest.mark.parametrize(
    ("terms", "code", "nearest"),
    [
        ({"gpus_per_node": 3}, RefusalCode.GPUS, "2 GPUs a node"),
        ({"gpu_model": "v100"}, RefusalCode.GPU_MODEL, "a100"),
        ({"gpu_memory_mb": 40_001}, RefusalCode.GPU_MEMORY, "40000 MB a GPU"),
    ],
)
def test_a_machine_with_other_gpus_says_which_it_has(terms: dict[str, Any], code: RefusalCode, nearest: str) -> None:
    refusal = check_static_terms(replace(GPUS, **terms), GPU_MACHINE)
    assert refusal is not None
    assert (refusal.code, refusal.nearest) == (code, nearest)
    assert check_static_terms(GPUS, GPU_MACHINE) is None
    none_stated = check_static_terms(GPUS, StaticTerms(64, 16))
    assert none_stated is not None
    assert (none_stated.code, none_stated.nearest) == (RefusalCode.GPUS, "")


def test_only_a_seller_of_the_application_bids() -> None:
    wanted = replace(UNIT, application="NAMD", application_version="3")
    terms = LaunchTerms("local", {"alice": "alice1"}, applications=(Application("NAMD", ("namd2",), "2"),))
    refusals = [
        (each.code, each.nearest)
        for launching in (terms, None)
        for send in called(new_seller(launching=launching), wanted)
        for each in send.message.content.refusals
    ]
    assert refusals == [(RefusalCode.APPLICATION, "NAMD 2"), (RefusalCode.APPLICATION, "")]
    assert isinstance(called(new_seller(launching=terms), replace(wanted, application_version=None))[0], fx.QuoteSlots)
    (refused,) = called(new_seller(launching=terms), replace(wanted, application_version="2", cores=TotalCores(65)))
    assert [each.code for each in refused.message.content.refusals] == [RefusalCode.MACHINE_TOO_SMALL]


def ask(asking: int, start: int, minimum: int, load: float = 0.0, **more: object) -> PriceQuestion:
    return PriceQuestion(asking, start, minimum, load, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("question", "price"),
    [
        (ask(70, 80, 30, 0.5), 64),  # 50/4 x 0.5 = 6.25 -> 63.75
        (ask(70, 80, 30, 0.0), 59),  # the load counts as 0.1: 11.25 -> 58.75
        (ask(70, 80, 30, 1.0), 70),  # a full machine does not go down
        (ask(70, 80, 30, 2.5), 70),  # nor does an overfull one go up
        (ask(39, 45, 25, 0.1), 35),  # 5 x 0.9 = 4.5 -> 34.5, halves up
        (ask(70, 60, 20, 0.5, rounds_expected=10), 68),  # 4 x 0.5 = 2
        (ask(30, 80, 28, 0.1), 28),  # 18.3 is below the minimum, which is within the price asked
        (ask(28, 80, 28, 0.1), 28),
        (ask(70, 43, 40, 0.0), 69),  # the exact quotient 0.75 x 0.9 = 0.675 -> 69.325
    ],
)
def test_paper_price(question: PriceQuestion, price: int) -> None:
    assert paper_price(question) == price


@pytest.mark.parametrize(
    ("question", "price"),
    [
        (ask(70, 80, 40, 1.5), PriceRefusal(RefusalCode.CORES_TAKEN)),
        # 1 - 0.9 is 0.100000024 in 32 bits and 0.09999999999999998 in 64, so 10 - 5 x that is just under or over 9.5
        (ask(10, 25, 5, 0.9), 9),
        (ask(39, 45, 25), 35),  # 39 - 4.5
        (ask(70, 80, 30), 59),  # 50 div 4 = 12, x 0.9 = 10.8 -> 59.2
        (ask(70, 43, 40), 70),  # 3 div 4 = 0: it bids the price asked
        (ask(200, 80, 30), 189),  # the start price is no upper limit
        (ask(70, 80, 40, 0.28), 63),  # 10 x 0.72 = 7.2 -> 62.8
        (ask(26, 33, 25), 25),  # 2 x 0.9 = 1.8 -> 24.2, below the minimum
    ],
)
def test_original_price(question: PriceQuestion, price: int | PriceRefusal) -> None:
    assert original_price(question) == price


@pytest.mark.parametrize("strategy", [paper_price, original_price])
def test_own_offer_stands(strategy: object) -> None:
    assert strategy(ask(50, 80, 30, own_last=50)) == PriceRefusal(RefusalCode.OWN_OFFER_STANDS)  # type: ignore[operator]
    assert isinstance(strategy(ask(50, 80, 30, own_last=49)), int)  # type: ignore[operator]
    assert isinstance(strategy(ask(50, 80, 30, own_last=50, best_offer=True)), int)  # type: ignore[operator]


QUESTION = PriceQuestion(asking=70, start_price=70, minimum_price=30, load=0.5)


@pytest.mark.parametrize(
    ("changes", "price"),
    [
        ({}, 65),  # (70 - 30) / 4 x (1 - 0.5) = 5 off
        ({"fragmentation": 0.5}, 68),  # half of the room spoilt: 2.5 off, 67.5 rounds half up
        ({"links_taken": 0.5}, 68),
        ({"fragmentation": 1.0}, 70),  # a job that spoils everything never goes below the start price
        ({"fragmentation": 1.0, "asking": 69}, PriceRefusal(RefusalCode.PRICE, 70)),
        ({"fragmentation": 1.0, "asking": 69, "best_offer": True}, 70),
        ({"asking": 50, "load": 1.0}, 50),
        ({"asking": 50, "load": 1.5}, 50),
        ({"own_last": 70}, PriceRefusal(RefusalCode.OWN_OFFER_STANDS)),
    ],
    ids=str,
)
def test_fragmentation_price(changes: dict[str, Any], price: int | PriceRefusal) -> None:
    assert fragmentation_price(replace(QUESTION, **changes)) == price


def test_a_machine_that_says_more_than_all_means_all() -> None:
    """The shares come from a plug-in: what is above one is one, what is below nothing is nothing."""
    assert spoilt_share(replace(QUESTION, fragmentation=1.5)) == spoilt_share(replace(QUESTION, links_taken=7.0)) == 1
    assert spoilt_share(replace(QUESTION, fragmentation=-0.5, links_taken=-1.0)) == 0
