"""What a resource does beside selling: its own book, slots that end by themselves, draining, late answers."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramp.model import contents as c
from ramp.model.acl import Performative
from ramp.model.agreement import ContractChange, Signed
from ramp.model.contents.directory import DRAINING_SERVICE, RESOURCE_SERVICE
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.offer import RefusalCode
from ramp.model.request import RequestForQuotation
from ramp.model.slot import Reservation, Slot, StaticTerms
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.resource import seller
from ramp.protocol.resource.jobs.launching import Application, LaunchTerms
from ramp.protocol.resource.quotas import Booked, Quotas
from ramp.protocol.resource.seller import DRAINING_DETAIL, PriceRange
from ramp.protocol.user.bidding_round import FOR_GOOD
from tests.unit.protocol.conftest import UNIT, OneResource, contents, messages, new_resource, restarted_resource

NAMD = Application("NAMD", ("namd2",), "2")
INSTANTS = st.integers(0, 8)
SLOTS = st.lists(st.tuples(INSTANTS, st.integers(1, 4), st.integers(1, 9)), max_size=8)


@given(SLOTS, INSTANTS, st.integers(1, 4), st.integers(1, 9))
def test_a_slot_fits_where_it_fits_at_every_instant(slots: Any, start: int, length: int, cores: int) -> None:
    booked = Booked(12)
    for number, (begin, lasting, wanted) in enumerate(slots):
        booked.put(str(number), begin, begin + lasting, wanted)
    taken = [sum(c for b, n, c in slots if b <= at < b + n) for at in range(start, start + length)]
    assert bool(booked.problem(start, start + length, cores)) == (max(taken) + cores > 12)


def test_a_hold_that_is_let_go_when_it_is_paid_for_stays_sold(resource: Any) -> None:
    """It ends by a cancellation, which is signed."""
    offer = resource.sell()
    assert contents(resource.hear("alice", c.HoldCancelled("r1", offer.offer_id), HOUR // 2)) == []
    assert resource.state(offer) == "sold"


def cancellation(offer: Any) -> Signed:
    return Signed(ContractChange("a1", 0, offer.offer_id, "alice", "res", "bank", 1, reason="no"), ("alice",), "text")


def test_a_payment_that_is_refused_ends_a_cancellation_as_well(resource: Any) -> None:
    """Nothing was paid, so nothing is refunded, and the buyer hears that there is nothing to cancel."""
    offer, _ = resource.hold()
    resource.commit(offer)
    assert contents(resource.hear("alice", cancellation(offer), 1)) == []
    answers = contents(resource.hear("bank", c.PaymentRefused("a1", "withdrawn"), 2))
    assert [(type(each), each.number, each.code) for each in answers] == [(c.ChangeRefused, 0, "not_active")]


def test_a_slot_is_being_released_until_the_machine_has_said_so(resource: Any) -> None:
    offer, _ = resource.hold()
    assert resource.party.releases == {}
    resource.hear("alice", c.HoldCancelled("r1", offer.offer_id))
    assert list(resource.party.releases) == [offer.offer_id]
    resource.party.handle(ev.SlotFreed(offer.offer_id, None), 1)
    assert resource.party.releases == {}


def test_what_is_asked_of_an_unknown_slot_is_refused_by_name(resource: Any) -> None:
    body = ContractChange("a7", 0, "o7", "alice", "res", "bank", 1, reason="no")
    (sent,) = resource.hear("alice", Signed(body, ("alice",), "text"), conversation="r7")
    refused = sent.message.content
    assert (refused.agreement_id, refused.code) == ("a7", "unknown_agreement")
    assert refused.detail
    assert (sent.message.in_reply_to, sent.message.conversation_id) == ("w", "r7")
    (sent,) = resource.hear("alice", c.Acceptance("r7", "o7"), conversation="r7")
    assert (sent.message.in_reply_to, sent.message.conversation_id) == ("w", "r7")


PRICES = PriceRange(70, 20, 4)


def words(effects: list[fx.Effect]) -> list[tuple[Performative, str]]:
    sent = messages(effects)
    return [(each.performative, each.content.service) for each in sent if hasattr(each.content, "service")]


def test_every_unit_of_a_call_is_refused_with_the_code(resource: Any) -> None:
    resource.party.set_selling(PRICES, draining=True, now=0)
    answer = resource.call()
    assert answer.performative is Performative.REFUSE
    assert [(each.code, each.detail) for each in answer.content.refusals] == [(RefusalCode.DRAINING, DRAINING_DETAIL)]
    assert RefusalCode.DRAINING in FOR_GOOD, "nobody calls it again in that auction"


def test_an_offer_made_before_cannot_be_accepted_any_more(resource: Any) -> None:
    offer = resource.call().content.offers[0]
    resource.party.set_selling(PRICES, draining=True, now=0)
    (refused,) = contents(resource.hear("alice", c.Acceptance("r1", offer.offer_id)))
    assert (type(refused), refused.code, refused.detail) == (c.HoldRefused, RefusalCode.DRAINING, DRAINING_DETAIL)


def test_the_directory_is_told_at_once_and_by_every_heartbeat(resource: Any) -> None:
    now = resource.party.deadline or 0
    both = [(Performative.SUBSCRIBE, RESOURCE_SERVICE), (Performative.SUBSCRIBE, DRAINING_SERVICE)]
    assert words(resource.party.set_selling(PRICES, draining=True, now=now)) == both
    assert words(resource.party.set_selling(PRICES, draining=True, now=now)) == []
    assert words(resource.party.tick(resource.party.deadline)) == both
    assert words(resource.party.set_selling(PRICES, draining=False, now=now)) == [
        (Performative.CANCEL, DRAINING_SERVICE)
    ]
    assert words(resource.party.tick(resource.party.deadline)) == both[:1]


def test_who_leaves_while_it_drains_leaves_both_lists(resource: Any) -> None:
    resource.party.set_selling(PRICES, draining=True, now=0)
    assert words(resource.party.leave(0)) == [
        (Performative.CANCEL, DRAINING_SERVICE),
        (Performative.CANCEL, RESOURCE_SERVICE),
    ]


def test_it_sells_again_at_the_prices_that_are_set(resource: Any) -> None:
    resource.party.set_selling(PRICES, draining=True, now=0)
    resource.party.set_selling(PriceRange(50, 40, 1), draining=False, now=0)
    assert resource.call(1, 60).content.offers[0].cpu_hour_cost >= 40
    resource.party.set_selling(PriceRange(500, 400, 1), draining=False, now=0)
    refusal = resource.call(1, 60, request_id="r2").content.refusals[0]
    assert (refusal.code, refusal.nearest) == (RefusalCode.PRICE, "400 credits/core-hour")


def ask(resource: Any, buyer: str, query_id: str = "q", horizon: int = HOUR) -> list[fx.Effect]:
    return list(resource.hear(buyer, c.MachineQuery(query_id, horizon), performative=Performative.QUERY_REF))


def answer(resource: Any, asked: list[fx.Effect], load: float) -> list[tuple[str, str, float]]:
    """Who is told what, once the machine has answered one question."""
    (question,) = asked
    assert isinstance(question, fx.DescribeMachine)
    effects = resource.party.handle(ev.MachineDescribed(question.call_id, json.dumps({"load": load})), 0)
    told = [each.message for each in effects]
    assert all(each.in_reply_to == "w" and each.performative is Performative.INFORM for each in told)
    return [(each.receiver, each.content.query_id, json.loads(each.content.snapshot)["load"]) for each in told]


@pytest.mark.parametrize(
    ("selling", "stated"),
    [
        ({"draining": True}, ',"draining":true'),
        ({"terms": StaticTerms(64, gpus_per_node=2)}, ',"gpus":"2 GPUs a node","gpu_price":9'),
        ({"launching": LaunchTerms("local", {}, applications=(NAMD,))}, ',"applications":"NAMD 2"'),
    ],
    ids=["draining", "GPUs", "applications"],
)
def test_buyers_are_told_prices_and_terms_with_the_machines_state(selling: dict[str, Any], stated: str) -> None:
    one = OneResource(new_resource(Quotas(), prices=PriceRange(60, 20, gpu_price=9), **selling))
    asked = ask(one, "alice")
    effects = one.party.handle(ev.MachineDescribed(asked[0].call_id, '{"load": 0.5}'), 0)  # type: ignore[union-attr]
    (told,) = [each.snapshot for each in contents(effects)]
    assert told == '{"load":0.5,"operating_system":null,"architecture":null,"start_price":60' + stated + "}"


def test_of_too_many_questions_the_oldest_is_given_up(resource: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource.party._queries, "_most", 2)
    asked = [ask(resource, "alice", f"q{number}") for number in range(3)]
    assert [answer(resource, each, 0.5) for each in asked] == [[], [("alice", "q1", 0.5)], [("alice", "q2", 0.5)]]


def test_what_drives_the_queue_is_said_when_the_machine_has_been_opened(resource: Any) -> None:
    """A guest's plug-in is opened later than its agent begins."""
    assert (resource.party.source, resource.call().content.offers[0].source) == ("synthetic", "synthetic")
    assert resource.party.handle(ev.MachineOpened("live"), 0) == []
    assert (resource.party.source, resource.call(2, 60).content.offers[0].source) == ("live", "live")


def test_a_copy_of_a_question_asks_the_machine_once(resource: Any) -> None:
    asked = ask(resource, "alice")
    assert ask(resource, "alice") == []
    assert len(ask(resource, "alice", horizon=2 * HOUR)) == 1  # another question
    assert len(answer(resource, asked, 0.5)) == 1
    assert answer(resource, asked, 0.5) == []  # the machine says it twice
    assert len(ask(resource, "alice")) == 1  # and may be asked again


DOUBT = ev.MachineInDoubt("no answer")


def releases(effects: list[Any]) -> int:
    return sum(isinstance(each, fx.ReleaseSlot) for each in effects)


# -- confirmations ---------------------------------------------------------------------------------------------------


def test_a_confirmation_in_doubt_waits_for_a_look_up_of_its_own(resource: Any) -> None:
    """The machine answers only when the test says so."""
    offer = resource.call().content.offers[0]
    key, party = offer.offer_id, resource.party
    slot = Reservation(key, f"R-{key}", Slot(HOUR, 2 * HOUR, 16, 0.5), False, MINUTE)

    def looked_at(now: int) -> list[Any]:
        return [each for each in party.tick(now) if not isinstance(each, fx.Send)]

    resource.answered = lambda effects, now: effects
    resource.hear("alice", c.Acceptance("r1", key))
    party.handle(ev.SlotHeld(key, DOUBT), 0)
    party.tick(2 * SECOND)
    party.handle(ev.SlotHeld(key, slot), 3 * SECOND)
    resource.commit(offer)
    party.handle(ev.SlotConfirmed(key, DOUBT), 4 * SECOND)
    assert looked_at(6 * SECOND) == []  # the older one is under way
    assert party.handle(ev.SlotLookedUp(key, None), 7 * SECOND) == []
    assert [type(each) for each in looked_at(12 * SECOND)] == [fx.LookUpSlot]
    assert [type(each) for each in party.handle(ev.SlotLookedUp(key, slot), 13 * SECOND)] == [fx.ConfirmSlot]


# -- releases --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("sold", "at", "again"), [(0, HOUR, 1), (0, 2 * HOUR, 0), (1, HOUR, 1), (1, 2 * HOUR, 0)])
def test_after_a_restart_only_what_may_still_take_something_is_released(
    resource: Any, sold: int, at: int, again: int
) -> None:
    offer, _ = resource.hold()
    if sold:
        resource.commit(offer)
        resource.hear("bank", c.PaymentRefused("a1", "withdrawn"))
    else:
        resource.hear("alice", c.HoldCancelled("r1", offer.offer_id))
    _, effects = restarted_resource(resource.journal, at)
    assert releases(effects) == again


# -- quotes and descriptions -----------------------------------------------------------------------------------------


def call(request_id: str = "r1", round_number: int = 1) -> c.CallForProposals:
    return c.CallForProposals(request_id, round_number, RequestForQuotation((UNIT,)))


def quotes(effects: list[Any]) -> list[str]:
    return [each.call_id for each in effects if isinstance(each, fx.QuoteSlots)]


def test_calls_that_are_never_quoted_do_not_fill_the_memory(resource: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seller, "PENDING_MAX", 3)
    resource.answered = lambda effects, now: effects
    ids = [quotes(resource.hear("alice", call(f"r{number}")))[0] for number in range(5)]
    slots = (Slot(HOUR, 2 * HOUR, 16, 0.5),)
    priced = [resource.party.handle(ev.SlotsQuoted(call_id, slots), 0) for call_id in ids]
    assert [len(each) for each in priced] == [0, 0, 1, 1, 1]
    assert len(quotes(resource.hear("alice", call("r0")))) == 1  # a copy of one that went is as good as new


@pytest.mark.parametrize("start_probability", [None, 0.9])
def test_a_slot_whose_cores_were_sold_meanwhile_is_not_held_and_a_place_in_a_queue_is(
    resource: Any, start_probability: float | None
) -> None:
    found = resource.call(request_id="r9", user="bob", cores=17).content.offers[0]
    made = resource.party._seller.offer(found.offer_id, 0)
    wanted = replace(made, offer=replace(made.offer, start_probability=start_probability))
    for request_id, agreement_id in (("r1", "a1"), ("r2", "a2"), ("r3", "a3")):
        resource.sell(request_id, agreement_id)
    resource.party._seller.offer = lambda *_: wanted
    answer = resource.hear("bob", c.Acceptance("r9", found.offer_id), conversation="r9")
    assert [type(each) for each in contents(answer)] == [c.HoldRefused if start_probability is None else c.HoldGranted]


def test_who_drained_before_a_restart_says_so_with_its_first_registration() -> None:
    party = new_resource(Quotas(), prices=PRICES, draining=True)
    assert (Performative.SUBSCRIBE, DRAINING_SERVICE) in words(party.start(0))


def test_a_resource_asks_for_the_time_when_its_owner_wants_to_know(resource: Any) -> None:
    (asked, *_) = messages(resource.party.handle(ev.ClockAsked("q"), 0))
    assert asked.conversation_id == "q"
