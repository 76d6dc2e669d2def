"""A clock is set: what a duration was meant by stays as far away as it was, in every state of every conversation.

Two equal parties; the clock of one is set by an hour forward or back. From then on both have to do the same at times
that are an hour apart. Whole markets under such steps: tests/simulation/test_clock_steps.py.
"""

from collections.abc import Callable
from typing import Any

import pytest

from ramp.model import contents as c
from ramp.model.instant import HOUR, MILLISECOND, MINUTE, SECOND
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.progress import ChangeEnded, RequestEnded
from ramp.protocol.timing import Timing
from tests.unit.protocol.conftest import PARTIES, contents

TICKS = 12


def outline(effects: list[Any]) -> list[tuple[Any, ...]]:
    """What is done, without the instants in it."""
    return [
        (type(each), each.message.receiver, type(each.message.content)) if isinstance(each, fx.Send) else (type(each),)
        for each in effects
    ]


def agree(one: Any, other: Any, by: int, act: Callable[[Any, int], Any] | None = None) -> int:
    """Let both act at the same true time, and then at every deadline until all has ended; how often they acted.

    How long what has ended is kept is dated, and not looked at here.
    """
    if act is not None:
        assert outline(act(one, SECOND)) == outline(act(other, SECOND + by))
    for times in range(TICKS):
        due = one.party.deadline
        assert other.party.deadline == (None if due is None else due + by)
        if due is None:
            return times
        assert other.party.tick(due + by - 1) == []  # not earlier
        effects = one.party.tick(due)
        assert outline(effects) == outline(other.party.tick(due + by))
        if any(
            isinstance(each, fx.Report) and isinstance(each.progress, RequestEnded | ChangeEnded) for each in effects
        ):
            return times + 1
    return TICKS


def bidding(one: Any, *, again: bool) -> None:
    one.submit(rounds=2)
    one.hear("directory", c.DirectoryListing("r1", "resource-trader", ("res1", "res2")))
    if again:
        one.propose("res1", one.offer("res1", 50), now=10)


USER: dict[str, Callable[[Any], Any]] = {
    "discovering": lambda one: one.submit(rounds=2),
    "bidding": lambda one: bidding(one, again=False),
    "bidding again": lambda one: bidding(one, again=True),
    "listing": lambda one: one.go("ask the directory"),
    "voting": lambda one: one.go("auction"),
    "letting go": lambda one: one.go("auction", "withdraw"),
    "asking for funds": lambda one: one.go("auction", "grant"),
    "withdrawn": lambda one: one.go("auction", "grant", "withdraw"),
    "confirming": lambda one: one.go("commit"),
    "voiding": lambda one: one.go("commit", "fail"),
    "cancelling": lambda one: one.go("commit", "settle", "cancel"),
    "claiming": lambda one: one.go("commit", "settle", "fail"),
    "shrinking": lambda one: one.go("commit", "settle", "shrink"),
    "shrinking soon": lambda one: one.go("commit", "settle", "shrink", "agree"),
    "asking for prices": lambda one: one.go("commit", "settle", "grow"),
    "asking the bank": lambda one: one.go("ask the bank"),
}


@pytest.mark.parametrize("by", [-HOUR, HOUR])
@pytest.mark.parametrize("story", USER)
def test_a_user_does_the_same_an_hour_apart(story: str, by: int) -> None:
    one, other = PARTIES["alice"](), PARTIES["alice"]()
    USER[story](one)
    USER[story](other)
    other.party.clock_set(by)
    assert agree(one, other, by)


@pytest.mark.parametrize("by", [-HOUR, HOUR])
def test_money_is_set_aside_from_when_the_bank_was_asked(by: int) -> None:
    """Asked at 7 s for two minutes; 4 s before these are over is too late to decide, 6 s before is not."""
    for left, decides in ((6 * SECOND, True), (4 * SECOND, False)):
        one = PARTIES["alice"]()
        one.auction()
        one.grant(now=7 * SECOND, hold_for=HOUR)
        one.party.clock_set(by)
        one.vote(7 * SECOND + 2 * MINUTE - left + by)
        assert one.confirmation.decided is decides


@pytest.mark.parametrize("by", [-HOUR, HOUR])
def test_a_request_has_taken_as_long_as_it_took(by: int) -> None:
    one = PARTIES["alice"]()
    one.open("res1", now=2 * HOUR, quote_only=True)
    one.party.clock_set(by)
    one.propose("res1", one.offer("res1", 50), now=2 * HOUR + SECOND + by)
    assert (one.outcome.started_at, one.outcome.duration) == (2 * HOUR + by, SECOND)
    assert one.outcome.rounds[0].duration == SECOND


# -- resources -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", [-HOUR, HOUR])
def test_a_release_in_doubt_is_tried_again_as_soon_as_before(by: int) -> None:
    one, other = PARTIES["res"](), PARTIES["res"]()
    for each in (one, other):
        each.party.start(0)
        offer, _ = each.hold()
        each.hear("alice", c.HoldCancelled("r1", offer.offer_id))
        each.party.handle(ev.SlotFreed(offer.offer_id, ev.MachineInDoubt("the line is down")), 0)
    other.party.clock_set(by)
    due = one.party.deadline
    assert other.party.deadline == due + by
    assert outline(one.party.tick(due)) == outline(other.party.tick(due + by))
    assert due < SECOND + 500 * MILLISECOND


@pytest.mark.parametrize("by", [-HOUR, -SECOND, 0, SECOND, HOUR])
def test_a_hold_ends_at_its_date_or_after_the_time_promised_whichever_comes_first(by: int, resource: Any) -> None:
    """The machine's own book ends it at that date."""
    offer, _ = resource.hold()
    resource.party.clock_set(by)
    ends = Timing().hold_time + min(by, 0)
    resource.party.tick(ends - 1)
    assert resource.state(offer) == "held"
    assert fx.ReleaseSlot(offer.offer_id) in resource.party.tick(ends)
    assert resource.state(offer) == "released"


@pytest.mark.parametrize("by", [-20 * MINUTE, 20 * MINUTE])
def test_a_bank_is_asked_about_a_sale_when_the_slot_begins_by_its_own_clock(by: int, resource: Any) -> None:
    offer = resource.sell()
    resource.party.clock_set(by)
    asked = [c.PaymentQuery("a1")]
    assert [each for each in contents(resource.party.tick(offer.start + by - 1)) if each in asked] == []
    assert [each for each in contents(resource.party.tick(offer.start + by)) if each in asked] == asked


@pytest.mark.parametrize("by", [-HOUR, HOUR])
def test_a_hold_that_was_granted_lasts_as_long_as_it_was_promised(by: int) -> None:
    """One of two units is held when the clock is set; the money is asked for, and spent, before that hold ends."""
    one, other = PARTIES["alice"](units=2), PARTIES["alice"](units=2)
    for each in (one, other):
        each.auction()
        each.grant(unit=1, hold_for=MINUTE)
    other.party.clock_set(by)
    assert agree(one, other, by, lambda each, now: each.grant(unit=2, now=now))
