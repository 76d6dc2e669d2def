"""A quote is bought as it was chosen, or lapses.

A bought one has two ends on record; readers take the last one, and no run buys a quote twice.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ramp.model import contents as c
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.offer import Offer, RefusalCode
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.model.slot import StaticTerms
from ramp.protocol import events as ev
from ramp.protocol.outcome import RequestStatus
from ramp.protocol.records import Record, RequestConcluded
from ramp.protocol.resource.seller import PriceRange
from ramp.protocol.timing import Timing
from ramp.protocol.user.purchase import Purchase
from ramp.runtime.journal import Archive, SqliteJournal
from simulation.market.faults.late_guests import ForgetfulMachine
from simulation.market.market_view import Checker, MarketView
from simulation.market.specs import ResourceSpec, UserSpec
from simulation.market.world import START, World
from simulation.swarm import new_checkers
from tests.unit.protocol.conftest import contents, messages


class Written(Checker):
    """Keeps the records of alice."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def on_written(self, name: str, record: Record, view: MarketView) -> None:
        if name == "alice":
            self.records.append(record)


def quoted() -> tuple[World, Purchase, list[Record]]:
    """Return a market of three sellers in which alice has a quote of one unit, and her records."""
    written = Written()
    resources = [
        ResourceSpec(f"res{n}", ForgetfulMachine(f"res{n}", 64, 0.0), StaticTerms(64), PriceRange(100 - n, 20))
        for n in (1, 2, 3)
    ]
    world = World(resources, [UserSpec("alice", 10_000_000)], seed=1, checkers=[*new_checkers(), written])
    start = START + 2 * HOUR
    unit = RequestUnit(1, 100, start + HOUR, TotalCores(8), not_before=start, wall_time=HOUR)
    options = ev.AuctionOptions(rounds=1, round_time=2 * SECOND, quote_only=True)
    world.command("alice", ev.RequestSubmitted("r", RequestForQuotation((unit,)), options), START + MINUTE)
    world.run(limit=MINUTE + 10 * SECOND)
    return world, world.users["alice"].purchases["r"], written.records


def test_a_bought_quote_is_archived_once(tmp_path: Path) -> None:
    world, purchase, records = quoted()
    assert purchase.outcome is not None
    world.command("alice", ev.OffersApproved("r", True, ((1, purchase.outcome.others[0].offer.resource),)))
    world.run(limit=MINUTE)
    journal = SqliteJournal(tmp_path / "alice.journal")
    for record in records:
        journal.append(record)
    assert sum(isinstance(record, RequestConcluded) for record in journal.records()) == 2
    journal.archive(["r"])
    archive = Archive(tmp_path / "alice.journal")
    assert [outcome.status for outcome, _ in archive.requests()] == ["committed"]
    assert archive.request_count() == 1


def test_a_quote_whose_purchase_was_not_recorded_ends_again() -> None:
    world, purchase, records = quoted()
    party = world.users["alice"]
    assert purchase.outcome is not None
    party.handle(ev.OffersApproved("r", True), world.now)  # its effects are lost, and with them its records
    (told,) = party.resume("r", records, world.now)
    assert told.progress.outcome.status == "quoted"  # type: ignore[union-attr]
    again = party.purchases["r"].outcome
    assert again is not None
    assert (again.until, again.others) == (0, ())


def quote(alice: Any) -> list[Offer]:
    """Return the offers of a quote that alice has, best first."""
    offers = [alice.offer(f"res{number}", 50 + number) for number in (1, 2, 3)]
    alice.open("res1", "res2", "res3", quote_only=True, name="mine")
    for offer in offers:
        alice.propose(offer.resource, offer)
    assert [unit.offer for unit in alice.outcome.ranked(1)] == offers
    assert alice.outcome.ranked(2) == ()
    assert alice.outcome.name == "mine"
    return offers


@pytest.mark.parametrize(("sellers", "chosen"), [((), "res1"), (((1, "res2"),), "res2")], ids=["best", "chosen"])
def test_only_the_offer_chosen_from_a_quote_is_bought(sellers: Any, chosen: str, alice: Any) -> None:
    offers = {offer.resource: offer for offer in quote(alice)}
    stands = alice.party.purchases["r1"].stands
    assert (stands(sellers), stands(((1, "res9"),))) == (True, False)
    effects = alice.command(ev.OffersApproved("r1", True, sellers))
    assert [each.receiver for each in messages(effects, c.Acceptance)] == [chosen]
    left = [offer.offer_id for offer in offers.values() if offer.resource != chosen]
    assert [each.offer_id for each in contents(effects, c.Rejection)] == left
    instead = (replace(offers[chosen], offer_id="instead"),)  # would be as good, but was not chosen
    alice.hear(chosen, c.HoldRefused("r1", offers[chosen].offer_id, RefusalCode.SLOT_TAKEN, instead=instead))
    assert alice.outcome.status is RequestStatus.WITHDRAWN


@pytest.mark.parametrize("late", [False, True])
def test_all_offers_of_a_quote_that_is_declined_or_too_old_are_rejected(late: bool, alice: Any) -> None:
    offers, until = quote(alice), Timing().approval_limit + HOUR
    alice.party.clock_set(HOUR)
    assert alice.party.deadline == alice.outcome.until == until
    effects = alice.tick(until) if late else alice.command(ev.OffersApproved("r1", False), until)
    assert [each.offer_id for each in contents(effects, c.Rejection)] == [offer.offer_id for offer in offers]
    assert alice.command(ev.OffersApproved("r1", True), until) == []
