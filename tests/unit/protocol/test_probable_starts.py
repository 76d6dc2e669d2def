"""Jobs whose start is only probable: who may buy them, what the bank makes of their start, and jobs ordered on them."""

from dataclasses import replace
from typing import Any

import pytest

from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.contents.jobs import Delivery, JobState
from ramp.model.instant import HOUR, MINUTE, SECOND, from_iso, iso
from ramp.model.offer import RefusalCode
from ramp.model.price_paid import SECOND_PRICE
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.model.seal import Role
from ramp.model.slot import Reservation, Slot, StaticTerms
from ramp.protocol import events as ev
from ramp.protocol.effects import Send
from ramp.protocol.outcome import RequestStatus
from ramp.protocol.resource.jobs.launching import LaunchTerms
from ramp.protocol.resource.seller import PriceRange
from simulation.market.specs import ResourceSpec, UserSpec
from simulation.market.virtual_notary import VirtualNotary
from simulation.market.world import START, World
from simulation.resource.steady import SteadyMachine
from simulation.swarm import new_checkers
from tests.swarm.virtual_launcher import JobFate, VirtualLauncher
from tests.unit.protocol.conftest import contents

LATEST = START + HOUR
UNIT = RequestUnit(1, 60, LATEST + HOUR, TotalCores(16), wall_time=HOUR, start_probability=0.9)
FATE = JobFate(runs=20 * MINUTE)
COST = 16 * 60 * 100
"""An hour of 16 cores at the seller's first price, 60 credits, in hundredths."""


class Queue(SteadyMachine):
    """A machine whose jobs start when the test says so, and that offers them with probability .95."""

    started_at: int | None = None
    gone = False
    held_for: tuple[str, ...] = ()

    def quote(self, unit: RequestUnit, now: int) -> Any:
        found = super().quote(replace(unit, not_before=unit.deadline - unit.length_from(now)), now)
        return replace(found, start_probability=0.95) if isinstance(found, Slot) else found

    def hold_for(self, account: str, key: str, unit: RequestUnit, slot: Slot, until: int, now: int) -> Any:
        self.held_for = (*self.held_for, account)
        return self.hold(key, unit, slot, until, now)

    def reservation(self, key: str, now: int) -> Reservation | None:
        found = super().reservation(key, now)
        return None if found is None or self.gone else replace(found, started_at=self.started_at)


class Market:
    """One buyer of a queued job, one machine that does not reserve, and every invariant watched."""

    def __init__(self, unit: RequestUnit = UNIT, *, launches: bool = False) -> None:
        self.machine = Queue("res", 64, 0.0)
        self.launcher = VirtualLauncher(lambda job: FATE)
        launching = {"launching": LaunchTerms("slurm", {"alice": "alice1"}), "launcher": self.launcher}
        res = ResourceSpec("res", self.machine, StaticTerms(64), PriceRange(60, 60), **(launching if launches else {}))
        self.world = World([res], [UserSpec("alice", 10**7)], seed=0, checkers=new_checkers())
        self.world.run(limit=SECOND)
        submitted = ev.RequestSubmitted("r1", RequestForQuotation((unit,)), ev.AuctionOptions(rounds=1))
        self.world.command("alice", submitted)
        self.world.run(limit=10 * SECOND)

    @property
    def agreement_id(self) -> str:
        (found,) = self.world.users["alice"].agreements
        return found

    def orders(self, job_id: str = "job-1", begin_at: int = LATEST) -> None:
        order = c.JobOrder(job_id, self.agreement_id, 16, 1, begin_at, ("./run",))
        self.world.command("alice", ev.JobSubmitted(order))
        self.world.run(limit=10 * SECOND)

    def starts(self) -> None:
        self.machine.started_at = self.world.now
        self.world.run(limit=MINUTE)

    def status(self, job_id: str = "job-1") -> Any:
        """As its buyer hears of it."""
        self.world.command("alice", ev.JobAsked(f"q{self.world.now}", c.JobQuery(job_id, "")))
        self.world.run(limit=10 * SECOND)
        (word,) = [each.word for each in self.world.users["alice"].jobs.known if each.order.job_id == job_id]
        return word

    def jobs(self) -> list[Any]:
        (participant,) = self.world.resources["res"].participants
        return list(self.world.resources["res"].jobs.jobs_of(participant))

    def job(self) -> Any:
        (job,) = self.jobs()
        return job

    @property
    def alice(self) -> tuple[int, int]:
        """What she has left, and what of it is set aside, in hundredths of a credit."""
        balance = self.world.ledger.balance("alice")
        return balance.posted, balance.reserved

    @property
    def refusals(self) -> list[Any]:
        outcome = self.world.users["alice"].purchases["r1"].outcome
        assert outcome is not None
        return [each.refusal for made in outcome.rounds for each in made.refusals]


def test_a_buyer_who_waits_for_a_start_asks_the_bank_after_the_deadline() -> None:
    confirmation = Market().world.users["alice"].purchases["r1"].confirmation
    assert confirmation is not None
    assert confirmation._to_bank.limit is not None
    assert confirmation._to_bank.limit > confirmation.valid_until


def test_started_jobs_of_two_requests_are_not_taken_back() -> None:
    market = Market()
    market.world.command("alice", ev.RequestSubmitted("r2", RequestForQuotation((UNIT,)), ev.AuctionOptions(rounds=1)))
    market.world.run(limit=10 * SECOND)
    market.starts()
    alice = market.world.users["alice"]
    for each in alice.agreements:
        market.world.command("alice", ev.AgreementCancelled(each, "it is done"))
    market.world.run(limit=MINUTE)
    assert [alice.agreement_state(each) for each in alice.agreements] == ["active", "active"]
    assert market.alice == (10**7 - 2 * COST, 0)


@pytest.mark.parametrize(("latest", "nearest"), [(MINUTE, "2 minutes"), (8 * 24 * HOUR, "a week")])
def test_a_job_has_to_start_neither_too_soon_nor_too_late(latest: int, nearest: str) -> None:
    market = Market(replace(UNIT, deadline=START + latest + HOUR))
    refusal = next((each.code, each.nearest) for each in market.refusals)
    called = market.world.now - 10 * SECOND
    passes = called + HOUR + (2 * MINUTE if latest == MINUTE else 7 * 24 * HOUR)
    assert refusal[0] is RefusalCode.WINDOW_TOO_SHORT
    assert abs(from_iso(refusal[1]) - passes) < SECOND, nearest


def test_a_buyer_takes_no_offer_that_is_less_certain_than_asked(alice: Any) -> None:
    alice.open("res1", units=(UNIT,))
    start, end = UNIT.deadline - HOUR, UNIT.deadline
    doubtful = replace(alice.offer("res1", 50), start=start, end=end, start_probability=0.89, if_late="whole")
    (rejection, *_) = contents(alice.propose("res1", doubtful))
    assert "got 0.89, expected at least 0.9" in rejection.reason


LONE = {"start_probability": 0.95, "if_late": "whole"}


def test_the_bank_pays_no_agreement_that_promises_otherwise(bank: Any) -> None:
    line = bank.line()
    bank.order(line, until=HOUR)
    offer = replace(bank.agreement(line).offer, **LONE)
    bank.countersign(line, valid_until=HOUR, offer=offer, request=replace(UNIT, start_probability=0.99))
    assert (bank.reserved(), bank.posted("alice"), bank.posted("res1")) == (0, 200_000, 0)


def test_what_waits_is_not_bought_where_another_offer_sets_the_price(alice: Any) -> None:
    (told,) = alice.submit(UNIT, rule=SECOND_PRICE)
    assert told.progress.outcome.status is RequestStatus.FAILED
    right = "unit 1 has a StartProbability; use an auction rule that pays the price offered"
    assert (told.progress.outcome.reason, "r1" in alice.party.purchases) == (right, False)


# -- jobs ordered on a queued job: they wait for its start, run in it, and are undelivered where it is late ------------


@pytest.fixture
def market() -> Market:
    return Market(launches=True)


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


def test_what_is_ordered_for_later_than_the_latest_start_waits_until_then_in_the_started_job(market: Market) -> None:
    market.orders(begin_at=LATEST + MINUTE)
    market.orders("job-2")
    market.world.run(limit=LATEST - market.world.now - MINUTE)
    market.starts()
    assert market.launcher.launches == {"job-1": 1, "job-2": 1}
    later, at_once = (each.to_run.begin_at for each in market.jobs())
    assert at_once < LATEST < later == LATEST + MINUTE


@pytest.mark.parametrize("started", [False, True])
def test_what_the_machine_loses_is_undelivered_and_costs_nothing_also_after_a_restart(
    market: Market, started: bool
) -> None:
    market.orders()
    if started:
        market.starts()
    market.machine.gone = True
    market.world.run(limit=5 * MINUTE)
    market.world.crash("res", MINUTE)
    market.world.run(limit=MINUTE)
    assert (market.job().status().delivery, market.alice) == (Delivery.UNDELIVERED, (10**7, 0))


def test_what_has_not_started_has_no_output(market: Market) -> None:
    market.orders()
    query = c.JobOutputQuery("job-1", market.agreement_id, "stdout", 0)
    message = Message(Performative.QUERY_REF, "alice", "res", "q", query, reply_with="q")
    sealed = VirtualNotary("alice", Role.USER).seal(message, market.world.now)
    (answer,) = market.world.resources["res"].handle(sealed, market.world.now)
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
    market.world.command("alice", ev.JobAsked("c", c.JobCancellation("job-2", "")))
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
