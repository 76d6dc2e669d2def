"""How long agents with many purchases behind them take to begin again: what is over is in the archive, or is read."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter

from sqlalchemy import event

from ramp.ledger.account import AccountKind
from ramp.ledger.orders.order import OrderLine
from ramp.model.instant import DAY, HOUR, MINUTE, Instant
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.model.seal import Role
from ramp.model.slot import StaticTerms
from ramp.protocol import events as ev
from ramp.protocol.party import Party
from ramp.protocol.records import Record, reference_of
from ramp.protocol.resource.seller import PriceRange
from ramp.protocol.timing import Timing
from ramp.runtime.host import Host, Ports
from ramp.runtime.journal import SqliteJournal
from ramp.runtime.ledger.store import LedgerStore
from ramp.runtime.record_json import record_from_json, record_to_json
from simulation.market.actors import COMPOSITION
from simulation.market.counted_ids import CountedIds
from simulation.market.specs import ResourceSpec, UserSpec
from simulation.market.virtual_notary import VirtualNotary
from simulation.market.wire import Wire
from simulation.market.world import START, World
from simulation.resource.steady import SteadyMachine

PURCHASES = 2_000
ORDERS = 2_000
AS_BANKS_START = """
import runpy, sys, time
runpy.run_module("ramp.agents.process", run_name="begun")
imported = time.process_time()
from ramp.runtime.ledger.store import LedgerStore
with LedgerStore.open(sys.argv[1]) as store:
    assert store.contradictions() == []
print(time.process_time(), imported)
"""
AT_HAND = 50
"""Purchases whose retention is not over."""

RESOURCE = ResourceSpec("res", SteadyMachine("res", 64, 0.25), StaticTerms(64), PriceRange(40, 20))
USER = UserSpec("alice", 10**9)
PARTIES: tuple[tuple[str, Callable[[], Party]], ...] = (
    ("alice", lambda: COMPOSITION.user_party("alice", CountedIds("alice"))),
    ("res", lambda: COMPOSITION.resource_party("res", RESOURCE, "live", CountedIds("res"))),
)


def run() -> list[tuple[str, float, str]]:
    """Measure user and resource; the reference has the same purchases in its journal, none of them archived."""
    rows: list[tuple[str, float, str]] = []
    records, now = one_purchase()
    for name, build in PARTIES:
        with tempfile.TemporaryDirectory() as folder:
            archived = prepare(Path(folder) / "archived", records[name], PURCHASES, archived=True)
            whole = prepare(Path(folder) / "whole", records[name], PURCHASES, archived=False)
            begun = min(start_seconds(archived, build, now) for _ in range(3))
            read = start_seconds(whole, build, now)
        role = "user" if name == "alice" else "resource"
        rows += [
            (f"restart: {role} with {PURCHASES} purchases behind it and {AT_HAND} at hand", begun * 1000, "ms"),
            (f"restart: {role}, faster than by reading all of them", read / begun, "x"),
        ]
    return rows + bank_rows()


def bank_rows() -> list[tuple[str, float, str]]:
    """The bank's audit at its start; the reference walks through every entry, as `ramp bank audit` does besides."""
    with tempfile.TemporaryDirectory() as folder, LedgerStore.open(path := Path(folder) / "ledger.sqlite") as store:
        fill_ledger(store, ORDERS)
        command = [sys.executable, "-c", AS_BANKS_START, str(path)]
        said = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(3)]
        started, imported = min(tuple(map(float, each.split())) for each in said)
        begin = perf_counter()
        assert store.contradictions() == []
        asked = perf_counter()
        assert store.audit() == []
        walked = perf_counter()
    return [
        (f"restart: audit of a ledger with {ORDERS} orders of two lines", (asked - begin) * 1000, "ms"),
        ("restart: audit, faster than by walking through all entries", (walked - asked) / (asked - begin), "x"),
        (f"restart: processor time of a process that audits {ORDERS} orders of two lines", started * 1000, "ms"),
        ("restart: of that, until all is imported but the database's library", imported * 1000, "ms"),
    ]


def fill_ledger(store: LedgerStore, orders: int) -> None:
    """Orders of two lines, all posted, without waiting for the disk."""

    @event.listens_for(store._engine, "connect")
    def _(connection: sqlite3.Connection, _record: object) -> None:
        connection.execute("PRAGMA synchronous=OFF")

    store._engine.dispose()
    for number in range(10):
        store.open_account(f"user{number}", AccountKind.USER, at=1)
        store.deposit(f"deposit-{number}", f"user{number}", 10**9, at=2)
        store.open_account(f"resource{number}", AccountKind.RESOURCE, at=1)
    for number in range(orders):
        lines = [
            OrderLine(f"agreement-{number}-{line}", f"resource{(number + line) % 10}", 100, f"offer-{number}-{line}")
            for line in range(2)
        ]
        store.reserve_order(f"order-{number}", f"user{number % 10}", lines, number + 100, at=number + 3)
        for line in lines:
            store.countersign(line.agreement_id, at=number + 4, starts_at=number + 200)


def one_purchase() -> tuple[dict[str, Sequence[Record]], Instant]:
    """What user and resource have on record of one unit bought, with real signatures; and when it is half forgotten."""
    wire = Wire(COMPOSITION.roles(["res"], ["alice"]), START - DAY)
    world = World([RESOURCE], [USER], seed=1, wire=wire)
    start = START + 10 * MINUTE
    unit = RequestUnit(1, 70, start + HOUR, TotalCores(8), not_before=start, wall_time=HOUR)
    submitted = ev.RequestSubmitted("request-0", RequestForQuotation((unit,)), ev.AuctionOptions(rounds=3))
    world.command("alice", submitted)
    world.run(limit=5 * MINUTE)
    records: dict[str, Sequence[Record]] = {}
    for name in ("alice", "res"):
        journal = world._actors[name].journal
        assert journal is not None
        records[name] = journal.records()
        assert records[name]
    return records, start + HOUR + Timing().retention // 2


def prepare(folder: Path, records: Sequence[Record], purchases: int, *, archived: bool) -> Path:
    """A journal with as many purchases as that and those at hand; returns its file."""
    folder.mkdir()
    journal = SqliteJournal(folder / "journal.sqlite")
    journal._connection.execute("PRAGMA synchronous=OFF")  # only while it is filled
    over: list[str] = []
    for number in range(purchases + AT_HAND):
        copies = [copied(record, number) for record in records]
        for record in copies:
            journal.append(record)
        if number < purchases:
            over += dict.fromkeys(map(reference_of, copies))
    if archived:
        journal.archive(over)
    journal.close()
    return journal.path


def copied(record: Record, number: int) -> Record:
    """The record of another purchase that went the same way: ids are words that end in a count."""
    text = record_to_json(record)
    for word in ("request-0", "agreement-alice-1", "order-alice-1", "offer-res-"):
        text = text.replace(word, f"{word}.{number}.")
    return record_from_json(text)


def start_seconds(path: Path, build: Callable[[], Party], now: Instant) -> float:
    """Seconds from opening the journal until the party has begun."""
    begin = perf_counter()
    journal = SqliteJournal(path)
    party = build()
    role = Role.USER if party.name == USER.name else Role.RESOURCE
    ports = Ports(send=lambda _: None, journal=journal, machine=_NoMachine(), notary=VirtualNotary(party.name, role))
    Host(party, ports).start(now)
    seconds = perf_counter() - begin
    journal.close()
    return seconds


class _NoMachine:
    """Slots that are over are asked for by nobody."""

    def ask(self, question: object, now: Instant) -> None:
        raise AssertionError(question)
