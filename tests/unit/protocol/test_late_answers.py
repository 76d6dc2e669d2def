"""A resource whose machine or price strategy answers late, in doubt, out of order, or after nobody waits any more."""

from __future__ import annotations

import json
from itertools import permutations
from typing import Any

import pytest

from ramp.model import contents as c
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.model.slot import Reservation, Slot
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.conversations import Registry
from ramp.protocol.resource import seller
from ramp.protocol.resource.releases import Releases
from ramp.protocol.timing import Pace, Timing

DOUBT = ev.MachineInDoubt("no answer")


class Asked:
    """A resource whose machine answers only when the test says so."""

    def __init__(self, resource: Any) -> None:
        self.one = resource
        self.offer = resource.call().content.offers[0]
        self.key = self.offer.offer_id
        self._answered = resource.answered
        resource.answered = lambda effects, now: effects
        self.effects = resource.hear("alice", c.Acceptance("r1", self.key))

    @property
    def state(self) -> str:
        return str(self.one.state(self.offer))

    def slot(self, firm: bool = False) -> Reservation:
        return Reservation(self.key, f"R-{self.key}", Slot(HOUR, 2 * HOUR, 16, 0.5), firm, None if firm else MINUTE)

    def held(self, answer: Any = None, now: int = 0) -> list[Any]:
        return self.one.party.handle(ev.SlotHeld(self.key, answer or self.slot()), now)  # type: ignore[no-any-return]

    def confirmed(self, answer: Any = None, now: int = 0) -> list[Any]:
        answer = answer or self.slot(firm=True)
        return self.one.party.handle(ev.SlotConfirmed(self.key, answer), now)  # type: ignore[no-any-return]

    def looked_up(self, answer: Any, now: int = 0) -> list[Any]:
        return self.one.party.handle(ev.SlotLookedUp(self.key, answer), now)  # type: ignore[no-any-return]

    def tick(self, now: int) -> list[Any]:
        return [each for each in self.one.party.tick(now) if not isinstance(each, fx.Send)]

    def cancel(self) -> list[Any]:
        return self.one.hear("alice", c.HoldCancelled("r1", self.key))  # type: ignore[no-any-return]


@pytest.fixture
def asked(resource: Any) -> Asked:
    return Asked(resource)


def releases(effects: list[Any]) -> int:
    return sum(isinstance(each, fx.ReleaseSlot) for each in effects)


# -- holds -----------------------------------------------------------------------------------------------------------


def test_while_the_machine_is_at_work_every_message_is_taken_and_nothing_is_asked_twice(asked: Asked) -> None:
    assert asked.one.hear("alice", c.Acceptance("r1", asked.key)) == []
    asked.one.hear("alice", c.NotUnderstood("what"))
    asked.one.hear("bank", c.PaymentRefused("a1", "withdrawn"))
    assert asked.one.party.tick(30 * SECOND) != []  # the heartbeat
    assert asked.tick(60 * SECOND) == []
    assert asked.state == "holding"


@pytest.mark.parametrize("late", ["reservation", "doubt"])
def test_what_is_set_aside_after_the_release_is_released_again(asked: Asked, late: str) -> None:
    assert releases(asked.cancel()) == 1
    assert releases(asked.held(DOUBT if late == "doubt" else None)) == 1
    assert asked.state == "released"


def test_a_late_answer_to_a_hold_that_was_found_meanwhile_touches_nothing(asked: Asked) -> None:
    asked.held(DOUBT)
    assert [type(each) for each in asked.tick(2 * SECOND)] == [fx.LookUpSlot]
    asked.looked_up(asked.slot(), 2 * SECOND)
    assert asked.state == "held"
    for late in (asked.slot(), DOUBT, Refusal(1, RefusalCode.SLOT_TAKEN)):
        assert asked.held(late, 3 * SECOND) == []
    asked.one.commit(asked.offer)
    assert asked.held(asked.slot(), 3 * SECOND) == []
    asked.confirmed()
    asked.one.hear("bank", c.PaymentMade("a1", "t1", asked.offer.cost))
    assert asked.held(asked.slot(), 4 * SECOND) == asked.confirmed(now=4 * SECOND) == []
    assert asked.state == "sold"


def test_a_slow_machine_is_asked_one_thing_at_a_time(asked: Asked) -> None:
    asked.held(DOUBT)
    assert len(asked.tick(2 * SECOND)) == 1
    assert [asked.tick(at * SECOND) for at in range(3, 40)] == [[]] * 37
    asked.looked_up(DOUBT, 40 * SECOND)
    assert asked.tick(41 * SECOND) == []
    assert len(asked.tick(42 * SECOND)) == 1  # after a pause twice as long as the first


# -- confirmations ---------------------------------------------------------------------------------------------------


def test_a_confirmation_after_the_end_is_released_again(asked: Asked) -> None:
    asked.held()
    asked.one.commit(asked.offer)
    assert asked.state == "confirming"
    assert releases(asked.one.hear("bank", c.PaymentRefused("a1", "withdrawn"))) == 1
    assert releases(asked.confirmed()) == 1
    assert releases(asked.confirmed(DOUBT)) == 1
    assert asked.confirmed(Refusal(1, RefusalCode.HOLD_EXPIRED)) == []


def test_a_look_up_that_is_older_than_the_confirmation_says_nothing_of_it(asked: Asked) -> None:
    asked.held(DOUBT)
    asked.tick(2 * SECOND)
    asked.held(now=3 * SECOND)  # the true answer overtakes the look-up's
    asked.one.commit(asked.offer)
    assert asked.looked_up(None, 4 * SECOND) == []
    assert asked.state == "confirming"
    asked.confirmed(now=5 * SECOND)
    assert asked.state == "settling"


def test_a_confirmation_in_doubt_waits_for_a_look_up_of_its_own(asked: Asked) -> None:
    asked.held(DOUBT)
    asked.tick(2 * SECOND)
    asked.held(now=3 * SECOND)
    asked.one.commit(asked.offer)
    asked.confirmed(DOUBT, 4 * SECOND)
    assert asked.tick(6 * SECOND) == []  # the older one is under way
    assert asked.looked_up(None, 7 * SECOND) == []
    assert [type(each) for each in asked.tick(12 * SECOND)] == [fx.LookUpSlot]
    assert [type(each) for each in asked.looked_up(asked.slot(), 13 * SECOND)] == [fx.ConfirmSlot]


# -- releases --------------------------------------------------------------------------------------------------------


def test_a_slot_counts_as_free_only_when_every_release_is_answered_and_sure() -> None:
    for order in permutations((True, False, False)):
        registry = Registry()
        all_of_it = Releases(Pace(Timing()), registry)
        for _ in order:
            all_of_it.asked("k", 0)
        for in_doubt in order:
            assert "k" in all_of_it
            assert all_of_it
            all_of_it.answered("k", 0, in_doubt=in_doubt)
        assert "k" in all_of_it
        assert all_of_it
        assert registry.deadline == SECOND
        assert registry.tick(SECOND) == [fx.ReleaseSlot("k")]
        assert registry.deadline is None
        all_of_it.answered("k", 2 * SECOND, in_doubt=False)
        assert not all_of_it
        assert "k" not in all_of_it


def test_a_release_in_doubt_is_repeated_after_pauses_that_grow() -> None:
    registry = Registry()
    one = Releases(Pace(Timing()), registry)
    one.asked("k", 0)
    now, pauses = 0, []
    for _ in range(6):
        one.answered("k", now, in_doubt=True)
        assert registry.deadline is not None
        pauses.append((registry.deadline - now) // SECOND)
        now = registry.deadline
        assert registry.tick(now) == [fx.ReleaseSlot("k")]
    assert pauses == [1, 2, 4, 8, 15, 15]


@pytest.mark.parametrize(("sold", "at", "again"), [(0, 0, 1), (0, HOUR, 0), (1, HOUR, 1), (1, 2 * HOUR, 0)])
def test_after_a_restart_only_what_may_still_take_something_is_released(
    resource: Any, restarted_resource: Any, written: Any, sold: int, at: int, again: int
) -> None:
    offer, effects = resource.hold()
    journal = list(written(effects))
    if sold:
        journal += written(resource.commit(offer))
        journal += written(resource.hear("bank", c.PaymentRefused("a1", "withdrawn")))
    else:
        journal += written(resource.hear("alice", c.HoldCancelled("r1", offer.offer_id)))
    _, effects = restarted_resource(journal, at)
    assert releases(effects) == again


# -- quotes and descriptions -----------------------------------------------------------------------------------------


def call(request_id: str = "r1", round_number: int = 1) -> c.CallForProposals:
    unit = RequestUnit(1, 70, 3 * HOUR, TotalCores(16), not_before=HOUR, wall_time=HOUR)
    return c.CallForProposals(request_id, round_number, RequestForQuotation((unit,)))


def quotes(effects: list[Any]) -> list[str]:
    return [each.call_id for each in effects if isinstance(each, fx.QuoteSlots)]


def test_copies_of_a_call_ask_a_slow_machine_once(resource: Any) -> None:
    resource.answered = lambda effects, now: effects
    asked = [quotes(resource.hear("alice", call())) for _ in range(5)]
    assert [len(each) for each in asked] == [1, 0, 0, 0, 0]


def test_calls_that_are_never_quoted_do_not_fill_the_memory(resource: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seller, "PENDING_MAX", 3)
    resource.answered = lambda effects, now: effects
    ids = [quotes(resource.hear("alice", call(f"r{number}")))[0] for number in range(5)]
    slots = (Slot(HOUR, 2 * HOUR, 16, 0.5),)
    priced = [resource.party.handle(ev.SlotsQuoted(call_id, slots), 0) for call_id in ids]
    assert [len(each) for each in priced] == [0, 0, 1, 1, 1]
    assert len(quotes(resource.hear("alice", call("r0")))) == 1  # a copy of one that went is as good as new


def test_a_bid_of_an_older_round_is_not_taken_for_the_last(resource: Any) -> None:
    answered = resource.answered
    resource.answered = lambda effects, now: effects
    (slow,) = resource.hear("alice", call(round_number=1))
    resource.answered = answered
    assert resource.call(2, 60).content.offers[0].cpu_hour_cost == 55
    resource.answered([slow], 0)
    assert resource.call(3, 55).content.refusals[0].code is RefusalCode.OWN_OFFER_STANDS


def test_a_buyer_sees_the_machines_snapshot_and_what_the_seller_adds(resource: Any) -> None:
    (asked,) = resource.hear("alice", c.MachineQuery("q", HOUR))
    (told,) = resource.party.handle(ev.MachineDescribed(asked.call_id, '{"free": 12}'), 0)
    added = {"operating_system": None, "architecture": None, "start_price": 60}
    assert json.loads(told.message.content.snapshot) == {"free": 12, **added}
