"""A bought quote has two ends on record; readers take the last one, and no run buys a quote twice."""

from pathlib import Path

from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.model.slot import StaticTerms
from ramp.protocol import events as ev
from ramp.protocol.records import Record, RequestConcluded
from ramp.protocol.resource.seller import PriceRange
from ramp.protocol.user.purchase import Purchase
from ramp.runtime.journal import Archive, SqliteJournal
from simulation.market.faults.late_guests import ForgetfulMachine
from simulation.market.market_view import Checker, MarketView
from simulation.market.specs import ResourceSpec, UserSpec
from simulation.market.world import START, World
from simulation.swarm import new_checkers


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
    assert party.purchases["r"].outcome.until == 0  # type: ignore[union-attr]
