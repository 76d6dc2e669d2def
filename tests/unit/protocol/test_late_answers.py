"""A resource whose machine or price strategy answers late, in doubt, out of order, or after nobody waits any more."""

from __future__ import annotations

from typing import Any

import pytest

from ramp.model import contents as c
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.model.slot import Reservation, Slot
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.resource import seller

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


# -- confirmations ---------------------------------------------------------------------------------------------------


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


def test_calls_that_are_never_quoted_do_not_fill_the_memory(resource: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seller, "PENDING_MAX", 3)
    resource.answered = lambda effects, now: effects
    ids = [quotes(resource.hear("alice", call(f"r{number}")))[0] for number in range(5)]
    slots = (Slot(HOUR, 2 * HOUR, 16, 0.5),)
    priced = [resource.party.handle(ev.SlotsQuoted(call_id, slots), 0) for call_id in ids]
    assert [len(each) for each in priced] == [0, 0, 1, 1, 1]
    assert len(quotes(resource.hear("alice", call("r0")))) == 1  # a copy of one that went is as good as new
