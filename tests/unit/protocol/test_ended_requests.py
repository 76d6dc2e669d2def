"""What has ended stays at hand for an hour after its last date, then leaves memory and goes to the archive."""

from __future__ import annotations

from typing import Any

import pytest

from ramp.model import contents as c
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.timing import Timing
from ramp.protocol.user.ended_requests import EndedRequests

RETENTION = Timing().retention
SLOT_END = 2 * HOUR


def archived(effects: list[Any]) -> list[tuple[str, ...]]:
    return [each.references for each in effects if isinstance(each, fx.Archive)]


# -- users -----------------------------------------------------------------------------------------------------------


def test_what_nobody_offered_for_is_kept_for_an_hour(alice: Any) -> None:
    alice.submit(now=5)
    while alice.outcome is None:
        ended = alice.party.deadline
        alice.tick(ended)
    assert alice.party.deadline == ended + RETENTION
    assert archived(alice.tick(ended + RETENTION)) == [("r1",)]


def come_to_nothing(one: Any, *request_ids: str) -> int:
    """Several requests end at the same time, for the directory is silent; when."""
    for request_id in request_ids:
        one.submit(request_id=request_id)
    limit = Timing().discovery_limit
    one.tick(limit)
    assert all(one.party.purchases[each].outcome is not None for each in request_ids)
    return limit


def test_a_request_that_a_bug_has_struck_keeps_no_other_in_memory(alice: Any) -> None:
    ended = come_to_nothing(alice, "r1", "r2")
    alice.party.forget("r1")
    assert archived(alice.tick(ended + RETENTION)) == [("r2",)]


def kept(purchases: Any, agreements: Any, until: Any) -> EndedRequests:
    """Ended requests of which no agreement is being changed."""
    return EndedRequests(
        purchases, agreements, Timing(), is_open=lambda _: False, until=until, forgotten=lambda _: None
    )


def test_what_has_to_wait_for_a_later_end_keeps_nothing_behind_it_in_memory(alice: Any) -> None:
    agreement_id = alice.bought()
    bought = alice.party.purchases["r1"]
    alice.submit(request_id="r2", now=SLOT_END)
    while alice.party.purchases["r2"].outcome is None:
        alice.tick(alice.party.deadline)
    both_due = SLOT_END + RETENTION + HOUR
    ended = kept(alice.party.purchases, {}, lambda _: both_due)
    ended.drew_up(alice.party.agreements[agreement_id])
    for each in (bought, alice.party.purchases["r2"]):
        ended.ended(each, SLOT_END)
    assert ended.on_timer(both_due) == [fx.Archive(("r2",))]


@pytest.mark.parametrize("by", [-HOUR, HOUR])
@pytest.mark.parametrize(("later", "rounds"), [(10 * MINUTE - 1, 1), (10 * MINUTE, 0)])
def test_rounds_stay_in_memory_as_long_when_the_clock_is_set(alice: Any, later: int, rounds: int, by: int) -> None:
    alice.bought()
    alice.party.clock_set(by)
    alice.submit(request_id="r2", now=later - Timing().discovery_limit + by)
    while alice.party.purchases["r2"].outcome is None:
        alice.tick(alice.party.deadline)
    assert len(alice.outcome.rounds) == rounds


# -- resources -------------------------------------------------------------------------------------------------------


def gone(effects: list[Any]) -> list[tuple[str, ...]]:
    told = [each.keys for each in effects if isinstance(each, fx.ForgetSlots)]
    assert told == archived(effects)  # machine and archive hear the same
    return told


def run_to(one: Any, end: int) -> list[Any]:
    """Every deadline up to an instant; what was done in all."""
    effects: list[Any] = []
    while one.party.deadline is not None and one.party.deadline <= end:
        effects += one.answered(one.party.tick(one.party.deadline), one.party.deadline)
    return effects


def test_a_slot_whose_release_the_machine_has_not_answered_is_kept(resource: Any) -> None:
    resource.party.start(0)
    free, _ = resource.hold()
    resource.hear("alice", c.HoldCancelled("r1", free.offer_id), MINUTE)
    assert gone(run_to(resource, MINUTE + RETENTION)) == []
    resource.party.handle(ev.SlotFreed(free.offer_id, None), MINUTE + RETENTION)
    assert gone(run_to(resource, MINUTE + 2 * RETENTION)) == [(free.offer_id,)]
    assert resource.party.participants == {}


def test_what_is_being_given_back_is_kept_until_the_bank_has_answered(alice: Any) -> None:
    agreement_id = alice.bought()
    late = SLOT_END + RETENTION
    alice.hear("res1", alice.failed(), late - SECOND)  # its own word, long after: the buyer claims its money
    assert archived(alice.tick(late)) == []
    assert agreement_id in alice.party.agreements
    alice.hear("bank", c.ChangePosted(agreement_id, 0, "t", -5), late + SECOND)
    assert alice.party.deadline == late + RETENTION
    assert archived(alice.tick(late + RETENTION)) == [("r1", agreement_id)]
