"""Jobs whose start is only probable: who may buy them, what is signed, and what the bank makes of their start."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ramp.model import contents as c
from ramp.model.acl import Performative
from ramp.model.instant import HOUR, MINUTE, SECOND, from_iso
from ramp.model.offer import RefusalCode
from ramp.model.price_paid import SECOND_PRICE
from ramp.model.probable_start import probable_start_problem, request_problem, start_shortcoming
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.model.slot import Reservation, Slot, StaticTerms
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.outcome import RequestStatus
from ramp.protocol.resource.seller import PriceRange
from simulation.market.specs import ResourceSpec, UserSpec
from simulation.market.swarm import new_checkers
from simulation.market.world import START, World
from simulation.resource.steady import SteadyMachine

LATEST = START + HOUR
UNIT = RequestUnit(1, 60, LATEST + HOUR, TotalCores(16), wall_time=HOUR, start_probability=0.9)
COST = 16 * 60 * 100
"""An hour of 16 cores at the seller's first price, 60 credits, in hundredths."""


class Queue(SteadyMachine):
    """A machine whose jobs start when the test says so, and that offers them with probability .95."""

    started_at: int | None = None
    gone = False

    def quote(self, unit: RequestUnit, now: int) -> Any:
        found = super().quote(replace(unit, not_before=unit.deadline - unit.run_duration(now)), now)
        return replace(found, start_probability=0.95) if isinstance(found, Slot) else found

    def reservation(self, key: str, now: int) -> Reservation | None:
        found = super().reservation(key, now)
        return None if found is None or self.gone else replace(found, started_at=self.started_at)


class Market:
    """One buyer, one machine that does not reserve, and every invariant watched."""

    def __init__(self, unit: RequestUnit = UNIT) -> None:
        self.machine = Queue("res", 64, 0.0)
        self.world = World(
            [ResourceSpec("res", self.machine, StaticTerms(64), PriceRange(60, 60))],
            [UserSpec("alice", 10**7)],
            seed=0,
            checkers=new_checkers(),
        )
        self.world.run(limit=SECOND)
        submitted = ev.RequestSubmitted("r1", RequestForQuotation((unit,)), ev.AuctionOptions(rounds=1))
        self.world.command("alice", submitted)
        self.world.run(limit=10 * SECOND)

    @property
    def alice(self) -> tuple[int, int]:
        """What she has left, and what of it is set aside, in hundredths of a credit."""
        balance = self.world.ledger.balance("alice")
        return balance.posted, balance.reserved

    @property
    def stage(self) -> str:
        return str(self.world.users["alice"].purchases["r1"].stage)

    @property
    def refusals(self) -> list[Any]:
        outcome = self.world.users["alice"].purchases["r1"].outcome
        assert outcome is not None
        return [each.refusal for made in outcome.rounds for each in made.refusals]

    def state(self) -> str:
        (participant,) = self.world.resources["res"].participants.values()
        return str(participant.state.value)


def test_money_waits_for_the_start_and_is_paid_then() -> None:
    market = Market()
    assert (market.stage, market.state(), market.alice) == ("confirming", "queued", (10**7, COST))
    market.world.run(limit=30 * MINUTE)
    assert (market.stage, market.state(), market.alice) == ("confirming", "queued", (10**7, COST))
    market.machine.started_at = market.world.now
    market.world.run(limit=MINUTE)
    assert (market.stage, market.state(), market.alice) == ("committed", "sold", (10**7 - COST, 0))
    assert market.world.ledger.balance("res").posted == COST
    market.world.run(limit=3 * HOUR)
    market.world.finish()


def test_what_has_not_started_in_time_costs_nothing_and_is_deleted() -> None:
    market = Market()
    market.world.run(limit=LATEST - market.world.now + MINUTE)
    assert (market.stage, market.state(), market.alice) == ("failed", "released", (10**7, 0))
    outcome = market.world.users["alice"].purchases["r1"].outcome
    assert outcome is not None
    assert "the job has not started by then, so you pay nothing" in outcome.reason
    assert market.machine.reservations(market.world.now) == ()
    market.world.finish()


def test_a_late_start_costs_nothing() -> None:
    market = Market()
    market.world.run(limit=LATEST - market.world.now - SECOND)
    market.machine.started_at = LATEST  # its seller hears of it within a quarter of a minute, and brings it too late
    market.world.run(limit=MINUTE)
    assert (market.stage, market.state(), market.alice) == ("failed", "released", (10**7, 0))


def test_a_job_that_is_gone_is_told_and_costs_nothing() -> None:
    market = Market()
    market.machine.gone = True
    market.world.run(limit=MINUTE)
    assert (market.stage, market.state(), market.alice) == ("failed", "released", (10**7, 0))


def test_the_buyer_may_withdraw_until_the_job_has_started() -> None:
    market = Market()
    market.world.command("alice", ev.RequestWithdrawn("r1"))
    market.world.run(limit=MINUTE)
    assert (market.stage, market.state(), market.alice) == ("failed", "released", (10**7, 0))
    assert market.machine.reservations(market.world.now) == ()


def test_a_job_that_has_started_is_not_taken_back() -> None:
    market = Market()
    market.machine.started_at = market.world.now
    market.world.run(limit=MINUTE)
    (agreement_id,) = market.world.users["alice"].agreements
    market.world.command("alice", ev.AgreementCancelled(agreement_id, "it is done"))
    market.world.run(limit=MINUTE)
    assert (market.state(), market.alice) == ("sold", (10**7 - COST, 0))


@pytest.mark.parametrize("crashed", ["alice", "res", "bank"])
def test_who_restarts_goes_on_waiting(crashed: str) -> None:
    market = Market()
    market.world.crash(crashed, MINUTE)
    market.world.run(limit=5 * MINUTE)
    assert (market.stage, market.state(), market.alice) == ("confirming", "queued", (10**7, COST))
    market.machine.started_at = market.world.now
    market.world.run(limit=2 * MINUTE)
    assert (market.stage, market.state(), market.alice) == ("committed", "sold", (10**7 - COST, 0))


@pytest.mark.parametrize("asked", [None, 0.96])
def test_what_is_not_certain_enough_is_refused_with_what_would_pass(asked: float | None) -> None:
    market = Market(replace(UNIT, start_probability=asked))
    assert market.stage == "no_offers"
    assert {(each.code, each.nearest) for each in market.refusals} == {
        (RefusalCode.START_PROBABILITY, "0.95 StartProbability")
    }


@pytest.mark.parametrize(("latest", "nearest"), [(MINUTE, "2 minutes"), (8 * 24 * HOUR, "a week")])
def test_a_job_has_to_start_neither_too_soon_nor_too_late(latest: int, nearest: str) -> None:
    market = Market(replace(UNIT, deadline=START + latest + HOUR))
    refusal = next((each.code, each.nearest) for each in market.refusals)
    called = market.world.now - 10 * SECOND
    passes = called + HOUR + (2 * MINUTE if latest == MINUTE else 7 * 24 * HOUR)
    assert refusal[0] is RefusalCode.WINDOW_TOO_SHORT
    assert abs(from_iso(refusal[1]) - passes) < SECOND, nearest


def test_a_reserved_slot_is_as_certain_as_any(alice: Any) -> None:
    assert start_shortcoming(UNIT, alice.offer("res1", 50)) == ""


def test_a_buyer_takes_no_offer_that_is_less_certain_than_asked(alice: Any) -> None:
    alice.command(ev.RequestSubmitted("r1", RequestForQuotation((UNIT,)), ev.AuctionOptions(rounds=1)))
    alice.hear("directory", c.DirectoryListing("r1", "resource-trader", ("res1",)))
    start, end = UNIT.deadline - HOUR, UNIT.deadline
    doubtful = replace(alice.offer("res1", 50), start=start, end=end, start_probability=0.89, if_late="whole")
    effects = alice.hear("res1", c.Proposal("r1", 1, (doubtful,)), performative=Performative.PROPOSE)
    (rejection,) = [each.message.content for each in effects if isinstance(each, fx.Send)][:1]
    assert "got 0.89, expected at least 0.9" in rejection.reason


def test_who_hears_nothing_of_a_job_after_its_latest_start_asks_for_its_money(alice: Any) -> None:
    """The seller has confirmed, and is silent from then on; the bank's word on the end has been lost."""
    unit = replace(UNIT, deadline=3 * HOUR)
    alice.command(ev.RequestSubmitted("r1", RequestForQuotation((unit,)), ev.AuctionOptions(rounds=1)))
    alice.hear("directory", c.DirectoryListing("r1", "resource-trader", ("res1",)))
    offer = replace(alice.offer("res1", 50), start=2 * HOUR, end=3 * HOUR, **LONE)
    alice.hear("res1", c.Proposal("r1", 1, (offer,)), performative=Performative.PROPOSE)
    alice.grant()
    alice.vote()
    (agreement,) = alice.confirmation.agreements
    alice.hear("res1", c.Confirmed(agreement.agreement_id, offer.offer_id), SECOND)
    said: list[Any] = []
    while not said:  # the seller is asked now and then
        now = alice.party.deadline
        assert now <= 3 * HOUR, "it never asks"
        sent = [each.message for each in alice.tick(now) if isinstance(each, fx.Send)]
        said = [each.content for each in sent if each.receiver == "bank"]
    assert agreement.valid_until == 2 * HOUR < now <= 2 * HOUR + MINUTE
    assert [type(each) for each in said] == [c.OrderWithdrawal]


LONE = {"start_probability": 0.95, "if_late": "whole"}


@pytest.mark.parametrize(
    ("changes", "offer_changes", "words"),
    [
        ({}, {}, "too many units in its order: got 2, expected 1"),
        ({"units_total": 1, "valid_until": HOUR - 1}, {}, "the job may start until"),
        ({"units_total": 1, "request": replace(UNIT, start_probability=None)}, {}, "the request needs a reserved slot"),
        ({"units_total": 1, "request": replace(UNIT, start_probability=0.96)}, {}, "at least 0.96"),
        ({"units_total": 1}, {"if_late": "half"}, "'half'"),
        ({"units_total": 1}, {"start_probability": None}, "no start probability"),
        ({"units_total": 1}, {"start_probability": None, "if_late": ""}, "15 minutes allowed for a reserved slot"),
        ({"units_total": 1}, {"if_late": "whole"}, ""),
    ],
)
def test_an_agreement_says_what_is_promised(
    bank: Any, changes: dict[str, Any], offer_changes: dict[str, Any], words: str
) -> None:
    made = bank.agreement(bank.line(), units_total=2, request=UNIT, valid_until=HOUR)
    made = replace(made, offer=replace(made.offer, **LONE), **{"units_total": 2} | changes)
    made = replace(made, offer=replace(made.offer, **offer_changes))
    problem = probable_start_problem(made)
    assert words in problem
    assert bool(problem) is bool(words)


def test_the_bank_pays_no_agreement_that_promises_otherwise(bank: Any) -> None:
    line = bank.line()
    bank.order(line, until=HOUR)
    offer = replace(bank.agreement(line).offer, **LONE)
    bank.countersign(line, valid_until=HOUR, offer=offer, request=replace(UNIT, start_probability=0.99))
    assert (bank.reserved(), bank.posted("alice"), bank.posted("res1")) == (0, 200_000, 0)


def test_after_the_start_nothing_is_refunded_on_the_buyers_word_alone(bank: Any) -> None:
    line = bank.line()
    bank.order(line, until=HOUR)
    offer = replace(bank.agreement(line).offer, **LONE)
    bank.countersign(line, 5 * MINUTE, valid_until=HOUR, offer=offer, request=UNIT)
    assert (bank.posted("alice"), bank.posted("res1")) == (104_000, 96_000)
    effects = bank.cancellation(line, ("alice",), "alice", 6 * MINUTE)
    (answer,) = [each.message.content for each in effects if isinstance(each, fx.Send)][:1]
    assert (type(answer), answer.code) == (c.ChangeRefused, "started")


def test_what_waits_is_bought_alone_and_as_offered() -> None:
    two = RequestForQuotation((UNIT, replace(UNIT, number=2, start_probability=None)))
    assert "a request of 2 units" in request_problem(two)
    assert "pays the price offered" in request_problem(RequestForQuotation((UNIT,)), pays_offer=False)
    assert request_problem(RequestForQuotation((UNIT,))) == ""


def test_what_waits_is_not_bought_where_another_offer_sets_the_price(alice: Any) -> None:
    options = ev.AuctionOptions(rounds=1, rule=SECOND_PRICE)
    (told,) = alice.command(ev.RequestSubmitted("r1", RequestForQuotation((UNIT,)), options))
    assert told.progress.outcome.status is RequestStatus.FAILED
    right = "unit 1 has a StartProbability; use an auction rule that pays the price offered"
    assert (told.progress.outcome.reason, "r1" in alice.party.purchases) == (right, False)
