"""Jobs whose start is only probable: who may buy them, what is signed, and what the bank makes of their start."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ramp.model import contents as c
from ramp.model.acl import Performative
from ramp.model.instant import HOUR, MINUTE, SECOND, from_iso
from ramp.model.offer import RefusalCode
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.model.slot import Reservation, Slot, StaticTerms
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
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


def test_a_job_that_has_started_is_not_taken_back() -> None:
    market = Market()
    market.machine.started_at = market.world.now
    market.world.run(limit=MINUTE)
    (agreement_id,) = market.world.users["alice"].agreements
    market.world.command("alice", ev.AgreementCancelled(agreement_id, "it is done"))
    market.world.run(limit=MINUTE)
    assert (market.state(), market.alice) == ("sold", (10**7 - COST, 0))


@pytest.mark.parametrize(("latest", "nearest"), [(MINUTE, "2 minutes"), (8 * 24 * HOUR, "a week")])
def test_a_job_has_to_start_neither_too_soon_nor_too_late(latest: int, nearest: str) -> None:
    market = Market(replace(UNIT, deadline=START + latest + HOUR))
    refusal = next((each.code, each.nearest) for each in market.refusals)
    called = market.world.now - 10 * SECOND
    passes = called + HOUR + (2 * MINUTE if latest == MINUTE else 7 * 24 * HOUR)
    assert refusal[0] is RefusalCode.WINDOW_TOO_SHORT
    assert abs(from_iso(refusal[1]) - passes) < SECOND, nearest


def test_a_buyer_takes_no_offer_that_is_less_certain_than_asked(alice: Any) -> None:
    alice.command(ev.RequestSubmitted("r1", RequestForQuotation((UNIT,)), ev.AuctionOptions(rounds=1)))
    alice.hear("directory", c.DirectoryListing("r1", "resource-trader", ("res1",)))
    start, end = UNIT.deadline - HOUR, UNIT.deadline
    doubtful = replace(alice.offer("res1", 50), start=start, end=end, start_probability=0.89, if_late="whole")
    effects = alice.hear("res1", c.Proposal("r1", 1, (doubtful,)), performative=Performative.PROPOSE)
    (rejection,) = [each.message.content for each in effects if isinstance(each, fx.Send)][:1]
    assert "got 0.89, expected at least 0.9" in rejection.reason


LONE = {"start_probability": 0.95, "if_late": "whole"}


def test_the_bank_pays_no_agreement_that_promises_otherwise(bank: Any) -> None:
    line = bank.line()
    bank.order(line, until=HOUR)
    offer = replace(bank.agreement(line).offer, **LONE)
    bank.countersign(line, valid_until=HOUR, offer=offer, request=replace(UNIT, start_probability=0.99))
    assert (bank.reserved(), bank.posted("alice"), bank.posted("res1")) == (0, 200_000, 0)
