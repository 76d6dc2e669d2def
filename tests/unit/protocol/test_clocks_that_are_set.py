"""A clock is set: what a duration was meant by stays as far away as it was, in every state of every conversation.

Two equal parties; the clock of one is set by an hour forward or back. From then on both have to do the same at times
that are an hour apart. Whole markets under such steps: tests/simulation/test_clock_steps.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ramp.model import contents as c
from ramp.model.acl import Performative
from ramp.model.instant import HOUR, MILLISECOND, MINUTE, SECOND
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.progress import RequestEnded
from ramp.protocol.timing import Timing

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
        if any(isinstance(each, fx.Report) and isinstance(each.progress, RequestEnded) for each in effects):
            return times + 1
    return TICKS


def listing(one: Any) -> None:
    one.command(ev.ResourcesAsked("listing"))


def submit(one: Any, now: int = 0, **options: Any) -> None:
    unit = RequestUnit(1, 70, 3 * HOUR, TotalCores(16), not_before=HOUR, wall_time=HOUR)
    one.command(ev.RequestSubmitted("r1", RequestForQuotation((unit,)), ev.AuctionOptions(**options)), now)


def discovering(one: Any) -> None:
    submit(one, rounds=2)


def bidding(one: Any) -> None:
    discovering(one)
    one.hear("directory", c.DirectoryListing("r1", "resource-trader", ("res1", "res2")))


def bidding_again(one: Any) -> None:
    bidding(one)
    one.hear("res1", c.Proposal("r1", 1, (one.offer("res1", 50),)), 10, performative=Performative.PROPOSE)


def voting(one: Any) -> None:
    one.auction()


def asking_for_funds(one: Any) -> None:
    one.auction()
    one.grant()


def confirming(one: Any) -> None:
    one.committed()


def voiding(one: Any) -> None:
    one.committed()
    one.hear("res1", one.failed())


def withdrawn(one: Any) -> None:
    one.auction()
    one.grant()
    one.command(ev.RequestWithdrawn("r1"))


def cancelling(one: Any) -> None:
    one.command(ev.AgreementCancelled(one.bought(), "no"))


def claiming(one: Any) -> None:
    one.bought()
    one.hear("res1", one.failed())


def asking_the_bank(one: Any) -> None:
    one.command(ev.AccountAsked("q", None, None))


def letting_go(one: Any) -> None:
    one.auction()
    one.command(ev.RequestWithdrawn("r1"))


USER = [
    listing, discovering, bidding, bidding_again, voting, letting_go, asking_for_funds, confirming, voiding, withdrawn,
    cancelling, claiming, asking_the_bank,
]  # fmt: skip


@pytest.mark.parametrize("by", [-HOUR, HOUR])
@pytest.mark.parametrize("story", USER)
def test_a_user_does_the_same_an_hour_apart(story: Any, by: int, parties: Any) -> None:
    one, other = parties["alice"](), parties["alice"]()
    story(one)
    story(other)
    other.party.clock_set(by)
    assert agree(one, other, by)


@pytest.mark.parametrize("by", [-HOUR, HOUR])
def test_a_hold_that_was_granted_lasts_as_long_as_it_was_promised(by: int, parties: Any, said: Any) -> None:
    """One of two units is held when the clock is set; the money is asked for, and spent, before that hold ends."""
    one, other = parties["alice"](units=2), parties["alice"](units=2)
    for each in (one, other):
        each.auction()
        each.grant(unit=1, hold_for=MINUTE)
    other.party.clock_set(by)
    assert agree(one, other, by, lambda each, now: each.grant(unit=2, now=now))


@pytest.mark.parametrize("by", [-HOUR, HOUR])
@pytest.mark.parametrize("late", [False, True])
def test_the_banks_vote_is_measured_from_when_it_was_asked(late: bool, by: int, parties: Any) -> None:
    def act(each: Any, now: int) -> Any:
        return each.vote(now + (UNTIL_TOO_LATE if late else 0))

    one, other = parties["alice"](), parties["alice"]()
    for each in (one, other):
        asking_for_funds(each)
    other.party.clock_set(by)
    assert outline(act(one, SECOND)) == outline(act(other, SECOND + by))


UNTIL_TOO_LATE = 118 * SECOND


@pytest.mark.parametrize("by", [-HOUR, HOUR])
def test_round_trips_are_measured_across_the_step(by: int, parties: Any) -> None:
    """The pause before a first repetition comes from them (RFC 6298): a step must not look like a slow line."""
    one, other = parties["alice"](), parties["alice"]()
    for each in (one, other):
        voting(each)
    other.party.clock_set(by)
    assert agree(one, other, by, lambda each, now: each.grant(now=now))


@pytest.mark.parametrize("by", [-HOUR, HOUR])
def test_an_empty_market_is_asked_as_long_as_before(by: int, parties: Any) -> None:
    one, other = parties["alice"](), parties["alice"]()
    for each in (one, other):
        submit(each, now=7 * SECOND)
    other.party.clock_set(by)
    nobody = c.DirectoryListing("r1", "resource-trader", ())
    assert agree(one, other, by, lambda each, now: each.hear("directory", nobody, now))


@pytest.mark.parametrize("by", [-HOUR, HOUR])
def test_round_and_request_last_as_long_as_they_did(by: int, parties: Any) -> None:
    """Begun at 7 s and 8 s, the clock set, answered 2 s later: 2 s and 3 s, whatever the clock has been set to."""
    one = parties["alice"]()
    submit(one, now=7 * SECOND, rounds=1, quote_only=True)
    one.hear("directory", c.DirectoryListing("r1", "resource-trader", ("res1",)), 8 * SECOND)
    one.party.clock_set(by)
    offers = (one.offer("res1", 50),)
    one.hear("res1", c.Proposal("r1", 1, offers), 10 * SECOND + by, performative=Performative.PROPOSE)
    assert one.outcome.duration == 3 * SECOND
    assert one.outcome.started_at == 7 * SECOND + by
    assert [each.duration for each in one.outcome.rounds] == [2 * SECOND]


@pytest.mark.parametrize("by", [-HOUR, HOUR])
def test_a_bidders_round_trip_is_measured_across_the_step(by: int, parties: Any) -> None:
    one, other = parties["alice"](), parties["alice"]()
    for each in (one, other):
        bidding(each)
    other.party.clock_set(by)
    refusal = c.Proposal("r1", 1, refusals=(Refusal(1, RefusalCode.PRICE),))
    assert agree(one, other, by, lambda each, now: each.hear("res1", refusal, now, performative=Performative.REFUSE))


@pytest.mark.parametrize("by", [-HOUR, HOUR])
def test_a_later_vote_is_measured_from_when_it_was_asked(by: int, parties: Any) -> None:
    """res2 is asked at 7 s, when res1 has refused: its hold and the money set aside are counted from then on."""
    one, other = parties["alice"](), parties["alice"]()
    for each in (one, other):
        each.auction()
        each.hear("res1", c.HoldRefused("r1", "offer-res1-1", RefusalCode.SLOT_TAKEN), 7 * SECOND)
    other.party.clock_set(by)
    assert agree(one, other, by, lambda each, now: each.grant("res2", now=now + 7 * SECOND))


@pytest.mark.parametrize("by", [-HOUR, HOUR])
def test_money_is_set_aside_from_when_the_bank_was_asked(by: int, parties: Any) -> None:
    """Asked at 7 s for two minutes; 4 s before these are over is too late to decide, 6 s before is not."""
    for left, decides in ((6 * SECOND, True), (4 * SECOND, False)):
        one = parties["alice"]()
        one.auction()
        one.grant(now=7 * SECOND, hold_for=HOUR)
        one.party.clock_set(by)
        one.vote(7 * SECOND + 2 * MINUTE - left + by)
        assert one.confirmation.decided is decides


# -- resources -------------------------------------------------------------------------------------------------------


def idle(one: Any) -> None:
    one.party.start(0)


def held(one: Any) -> None:
    one.party.start(0)
    one.hold()


def committed(one: Any) -> None:
    one.party.start(0)
    offer, _ = one.hold()
    one.commit(offer)


def held_and_unasked(one: Any) -> None:
    one.party.start(0)
    offer, _ = one.hold()
    one.hear("alice", c.HoldCancelled("r1", offer.offer_id))


@pytest.mark.parametrize("by", [-20 * SECOND, 20 * SECOND])
@pytest.mark.parametrize("story", [idle, held, committed, held_and_unasked])
def test_a_resource_does_the_same_at_other_times(story: Any, by: int, parties: Any) -> None:
    one, other = parties["res"](), parties["res"]()
    story(one)
    story(other)
    other.party.clock_set(by)
    for _ in range(TICKS):
        due = one.party.deadline
        assert other.party.deadline == due + by
        assert outline(one.party.tick(due)) == outline(other.party.tick(due + by))


@pytest.mark.parametrize("by", [-HOUR, HOUR])
def test_a_release_in_doubt_is_tried_again_as_soon_as_before(by: int, parties: Any) -> None:
    one, other = parties["res"](), parties["res"]()
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


@pytest.mark.parametrize("steps", [(-HOUR, HOUR), (HOUR, -HOUR), (-SECOND, -HOUR, HOUR, SECOND)])
def test_a_hold_lasts_as_long_as_promised_though_the_clock_was_wrong_meanwhile(steps: Any, resource: Any) -> None:
    offer, _ = resource.hold()
    for by in steps:
        resource.party.clock_set(by)
    resource.party.tick(Timing().hold_time - 1)
    assert resource.state(offer) == "held"
    assert fx.ReleaseSlot(offer.offer_id) in resource.party.tick(Timing().hold_time)


@pytest.mark.parametrize("by", [-20 * MINUTE, 20 * MINUTE])
def test_a_bank_is_asked_about_a_sale_when_the_slot_begins_by_its_own_clock(by: int, resource: Any, said: Any) -> None:
    offer = resource.sell()
    resource.party.clock_set(by)
    asked = [c.PaymentQuery("a1")]
    assert [each for each in said(resource.party.tick(offer.start + by - 1)) if each in asked] == []
    assert [each for each in said(resource.party.tick(offer.start + by)) if each in asked] == asked


@pytest.mark.parametrize("by", [-HOUR, -SECOND, SECOND, HOUR])
def test_a_lease_lasts_as_long_as_before_and_who_has_left_may_come_again(by: int, directory: Any) -> None:
    lease = 15 * SECOND
    directory.register("ended", 1, lease=SECOND)
    directory.register("left", 1)
    directory.register("renewed", 1)
    directory.deregister("left", 2)
    directory.party.tick(SECOND)
    directory.register("renewed", 2, now=SECOND)
    directory.register("stays", 1, now=SECOND)
    directory.party.clock_set(by)
    now = SECOND + by
    directory.register("ended", 2, now=now)
    directory.register("left", 3, now=now)
    assert directory.names(now + lease - 1).names == ("ended", "left", "renewed", "stays")
    assert directory.party.deadline is not None
    while directory.party.deadline is not None:
        assert directory.party.deadline <= now + lease
        directory.party.tick(directory.party.deadline)
    assert directory.party.registered == ()


@pytest.mark.parametrize("by", [-HOUR, HOUR])
def test_a_keeper_asks_again_as_soon_as_before(by: int, parties: Any) -> None:
    one, other = parties["keeper"](), parties["keeper"]()
    for each in (one, other):
        each.party.handle(ev.OverviewAsked("q", None, None), 0)
    other.party.clock_set(by)
    assert agree(one, other, by)
