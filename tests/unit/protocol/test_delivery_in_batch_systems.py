"""Delivery of slots in a batch system: what the site sees of the reservation decides, and never the fate of a job."""

from __future__ import annotations

from typing import Any

import pytest

from ramp.model import contents as c
from ramp.model.acl import Performative
from ramp.model.contents.jobs import Delivery, JobState
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.records import JobEnded, SlotFailed
from ramp.protocol.resource.jobs.launching import LaunchTerms
from tests.unit.protocol.test_jobs_and_their_launcher import Seller as Launching
from tests.unit.protocol.test_jobs_and_their_launcher import asked, recorded

TERMS = LaunchTerms("slurm", {"alice": "alice1"}, grace=10 * SECOND, delivery_limit=5 * MINUTE)
ORDER = c.JobOrder("job-1", "a1", 16, 1, HOUR, ("./run",))
IN_ORDER = ev.SlotsTended(seen=("offer-res-1",))


class Seller(Launching):
    def __init__(self, make: Any) -> None:
        super().__init__(lambda _: make(TERMS))

    def told(self, event: ev.SlotsTended, now: int) -> list[fx.Effect]:
        return self.noted(list(self.one.party.handle(event, now)))


@pytest.fixture
def seller(launching_resource: Any) -> Seller:
    found = Seller(launching_resource)
    found.hears(ORDER)
    return found


FATES = [
    ev.JobSight(JobState.FAILED, "1", 0, None, None, None, "cancelled by its owner"),
    ev.JobSight(JobState.RUNNING, "1", 1, HOUR),
    ev.JobSight(JobState.QUEUED, "1"),
    ev.MachineInDoubt("every look takes 20 s"),
    None,
]


@pytest.mark.parametrize("fate", FATES)
def test_whatever_becomes_of_a_job_its_slot_was_delivered_if_the_site_saw_it(seller: Seller, fate: Any) -> None:
    effects = [*seller.seen(fate, HOUR + 1), *seller.told(IN_ORDER, HOUR + 15 * SECOND)]
    for now in (HOUR + 6 * MINUTE, 2 * HOUR, 2 * HOUR + 3 * MINUTE):
        effects += [*seller.seen(fate, now), *seller.tick(now)]
    assert SlotFailed not in recorded(effects)
    assert seller.status.delivery is Delivery.ON_TIME
    assert seller.status.state.is_final or isinstance(fate, ev.JobSight)
    seller.restart(3 * HOUR)
    assert seller.status.delivery is Delivery.ON_TIME or not seller.status.state.is_final


@pytest.mark.parametrize("fate", FATES)
def test_without_any_look_at_the_slot_the_delivery_is_unknown_and_the_money_stays(seller: Seller, fate: Any) -> None:
    effects = seller.told(IN_ORDER, HOUR - MINUTE)  # before the slot
    effects += seller.told(ev.SlotsTended(), HOUR + MINUTE)  # the machine could not be asked
    for now in (HOUR + 6 * MINUTE, 2 * HOUR, 2 * HOUR + 3 * MINUTE):
        effects += [*seller.seen(fate, now), *seller.tick(now)]
    effects += seller.told(IN_ORDER, 2 * HOUR + 4 * MINUTE)  # after the slot
    effects += seller.tick(2 * HOUR + 5 * MINUTE)
    assert SlotFailed not in recorded(effects)
    open_ = isinstance(fate, ev.JobSight) and not fate.state.is_final
    assert seller.status.delivery is (Delivery.PENDING if open_ else Delivery.UNKNOWN)


def test_a_restart_goes_on_waiting_for_the_sites_word_about_the_slot_of_an_ended_job(seller: Seller) -> None:
    seller.seen(ev.JobSight(JobState.DONE, "1", 16, HOUR, HOUR + 1, 0), HOUR + 2)
    assert (seller.status.state, seller.status.delivery) == (JobState.DONE, Delivery.PENDING)
    seller.restart(HOUR + MINUTE)
    assert recorded(seller.told(IN_ORDER, HOUR + 2 * MINUTE)) == [JobEnded]
    assert recorded(seller.told(IN_ORDER, HOUR + 3 * MINUTE)) == []
    seller.restart(HOUR + 4 * MINUTE)
    assert (seller.status.state, seller.status.delivery) == (JobState.DONE, Delivery.ON_TIME)


@pytest.mark.parametrize("ended", [False, True])
def test_a_slot_that_the_site_has_seen_lost_is_paid_back_though_its_job_has_run(seller: Seller, ended: bool) -> None:
    job = (JobState.DONE, "1", 16, HOUR, HOUR + 1, 0) if ended else (JobState.RUNNING, "1", 16, HOUR)
    seller.seen(ev.JobSight(*job), HOUR + 2)
    seller.told(IN_ORDER, HOUR + MINUTE)
    effects = seller.told(ev.SlotsTended((("offer-res-1", "node n3 is down"),)), HOUR + 2 * MINUTE)
    assert SlotFailed in recorded(effects)
    assert asked(effects) == ([] if ended else [fx.CancelJob])
    assert seller.status.delivery is Delivery.UNDELIVERED


def test_a_buyer_hears_of_the_delivery_after_the_end_of_its_job(seller: Seller) -> None:
    seller.seen(ev.JobSight(JobState.DONE, "1", 16, HOUR, HOUR + 1, 0), HOUR + 2)
    seller.told(IN_ORDER, HOUR + MINUTE)
    effects = seller.one.hear("alice", c.JobQuery("job-1", "a1"), HOUR + 61, performative=Performative.QUERY_REF)
    (answer,) = [each.message.content for each in effects if isinstance(each, fx.Send)]
    assert (answer.state, answer.delivery) == (JobState.DONE, Delivery.ON_TIME)
