"""Jobs ordered on a job in a queue: they wait for its start, run in it, and are told undelivered where it is late."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.contents.jobs import Delivery, JobState
from ramp.model.instant import HOUR, MINUTE, SECOND, iso
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.model.seal import Role
from ramp.model.slot import Reservation, Slot, StaticTerms
from ramp.protocol import events as ev
from ramp.protocol.effects import Send
from ramp.protocol.resource.jobs.launching import LaunchTerms
from ramp.protocol.resource.seller import PriceRange
from simulation.market.specs import ResourceSpec, UserSpec
from simulation.market.swarm import new_checkers
from simulation.market.virtual_launcher import JobFate, VirtualLauncher
from simulation.market.virtual_notary import VirtualNotary
from simulation.market.world import START, World
from simulation.resource.steady import SteadyMachine

LATEST = START + HOUR
"""The latest start: an hour before the unit's deadline."""

UNIT = RequestUnit(1, 60, LATEST + HOUR, TotalCores(16), wall_time=HOUR, start_probability=0.9)


FATE = JobFate(runs=20 * MINUTE)


class Queue(SteadyMachine):
    """A machine whose jobs start when the test says so, and that offers them with probability .95."""

    started_at: int | None = None
    gone = False
    held_for: tuple[str, ...] = ()

    def quote(self, unit: RequestUnit, now: int) -> Any:
        found = super().quote(replace(unit, not_before=unit.deadline - unit.run_duration(now)), now)
        return replace(found, start_probability=0.95) if isinstance(found, Slot) else found

    def hold_for(self, account: str, key: str, unit: RequestUnit, slot: Slot, until: int, now: int) -> Any:
        self.held_for = (*self.held_for, account)
        return self.hold(key, unit, slot, until, now)

    def reservation(self, key: str, now: int) -> Reservation | None:
        found = super().reservation(key, now)
        return None if found is None or self.gone else replace(found, started_at=self.started_at)


class Market:
    """One buyer who has bought a job in a queue, which waits."""

    def __init__(self) -> None:
        self.machine = Queue("res", 64, 0.0)
        self.launcher = VirtualLauncher(lambda job: FATE)
        terms = LaunchTerms("slurm", {"alice": "alice1"})
        res = ResourceSpec(
            "res", self.machine, StaticTerms(64), PriceRange(60, 60), launching=terms, launcher=self.launcher
        )
        self.world = World([res], [UserSpec("alice", 10**7)], seed=0, checkers=new_checkers())
        self.world.run(limit=SECOND)
        submitted = ev.RequestSubmitted("r1", RequestForQuotation((UNIT,)), ev.AuctionOptions(rounds=1))
        self.world.command("alice", submitted)
        self.world.run(limit=10 * SECOND)
        (self.agreement_id,) = self.world.users["alice"].agreements

    def orders(self, job_id: str = "job-1", begin_at: int = LATEST) -> None:
        order = c.JobOrder(job_id, self.agreement_id, 16, 1, begin_at, ("./run",))
        self.world.command("alice", ev.JobSubmitted(order))
        self.world.run(limit=10 * SECOND)

    def starts(self) -> None:
        self.machine.started_at = self.world.now
        self.world.run(limit=MINUTE)

    def status(self, job_id: str = "job-1") -> Any:
        """As its buyer hears of it."""
        self.world.command("alice", ev.JobAsked(f"q{self.world.now}", job_id))
        self.world.run(limit=10 * SECOND)
        (word,) = [each.word for each in self.world.users["alice"].jobs.known if each.order.job_id == job_id]
        return word

    def job(self) -> Any:
        (participant,) = self.world.resources["res"].participants
        (job,) = self.world.resources["res"].jobs.jobs_of(participant)
        return job


@pytest.fixture
def market() -> Market:
    return Market()


def test_the_machine_is_told_for_whose_account_it_holds(market: Market) -> None:
    assert market.machine.held_for == ("alice1",)


def test_what_is_ordered_before_the_start_runs_once_in_that_very_job_when_it_has_started(market: Market) -> None:
    market.orders()
    taken = market.status()
    assert (taken.state, taken.delivery, taken.due_at) == (JobState.TAKEN, Delivery.PENDING, LATEST)
    reservation = market.job().to_run.reservation_id
    assert taken.detail == f"the slot begins when queued job {reservation} starts"
    market.world.run(limit=20 * MINUTE)
    assert market.launcher.launches == {}
    paid = market.world.now
    market.starts()
    assert market.launcher.launches == {"job-1": 1}
    to_run = market.job().to_run
    (participant,) = market.world.resources["res"].participants
    assert (to_run.queue_key, to_run.reservation_id, to_run.account) == (participant, reservation, "alice1")
    assert paid <= to_run.begin_at < paid + MINUTE
    assert to_run.end_at == to_run.begin_at + HOUR  # what was bought, from then on at most
    assert dict(to_run.environment)["RAMP_END"] == iso(to_run.end_at)
    status = market.job().status()
    assert (status.delivery, status.started_at is not None) == (Delivery.ON_TIME, True)
    market.world.run(limit=3 * HOUR)
    market.world.finish()


def test_what_has_not_started_has_no_output(market: Market) -> None:
    market.orders()
    query = c.JobOutputQuery("job-1", market.agreement_id, "stdout", 0)
    message = Message(Performative.QUERY_REF, "alice", "res", "q", query, reply_with="q")
    sealed = VirtualNotary("alice", Role.USER).seal(message, market.world.now)
    (answer,) = market.world.resources["res"].handle(ev.MessageReceived(sealed), market.world.now)
    assert isinstance(answer, Send)
    refused = c.JobRefused("job-1", market.agreement_id, "no_file", "the job has not started")
    assert (answer.message.receiver, answer.message.content) == ("alice", refused)


def test_what_is_ordered_after_the_start_begins_at_once(market: Market) -> None:
    market.starts()
    market.orders()
    assert market.launcher.launches == {"job-1": 1}
    status = market.job().status()
    assert (status.delivery, status.due_at < LATEST) == (Delivery.ON_TIME, True)


def test_a_start_that_comes_too_late_is_not_delivered_and_costs_nothing(market: Market) -> None:
    market.orders()
    market.world.run(limit=LATEST - market.world.now + MINUTE)
    status = market.status()
    assert (status.state, status.delivery) == (JobState.FAILED, Delivery.UNDELIVERED)
    assert status.detail == f"not delivered: the queued job had not started by {iso(LATEST)}"
    balance = market.world.ledger.balance("alice")
    assert (balance.posted, balance.reserved, market.launcher.launches) == (10**7, 0, {})
    market.world.finish()


def test_a_buyer_who_withdraws_or_cancels_is_owed_nothing(market: Market) -> None:
    market.orders()
    market.orders("job-2")
    market.world.command("alice", ev.JobCancelled("c", "job-2"))
    market.world.run(limit=10 * SECOND)
    market.world.command("alice", ev.RequestWithdrawn("r1"))
    market.world.run(limit=MINUTE)
    for job_id in ("job-1", "job-2"):
        status = market.status(job_id)
        assert (status.state, status.delivery) == (JobState.CANCELLED, Delivery.PENDING)
        assert status.detail == "the job never started"
    assert market.launcher.launches == {}


def test_a_slot_that_has_started_is_known_after_a_restart(market: Market) -> None:
    market.orders()
    market.starts()
    before = market.job().to_run
    assert not market.job().waits_for_start
    market.world.crash("res", MINUTE)
    market.world.run(limit=MINUTE)
    assert not market.job().waits_for_start  # at once, before the bank has answered
    assert market.job().to_run == before


@pytest.mark.parametrize("crashed", ["alice", "res", "bank"])
def test_who_restarts_before_and_after_the_start_has_it_run_once(market: Market, crashed: str) -> None:
    market.orders()
    market.world.crash(crashed, MINUTE)
    market.world.run(limit=5 * MINUTE)
    market.machine.started_at = market.world.now
    market.world.run(limit=3 * SECOND)
    market.world.crash(crashed, MINUTE)
    market.world.run(limit=5 * MINUTE)
    assert market.launcher.launches == {"job-1": 1}
    assert market.job().status().delivery is Delivery.ON_TIME
