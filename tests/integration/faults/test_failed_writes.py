"""An I/O error at every single write of a purchase: nothing that was promised is lost.

Journals, ledger, signed agreements, reservation books and the directory's list: each write of a purchase fails once, in
three ways: before anything is written, after everything is (the error is a lie, as a failed sync can be), and with the
next writes of all agents failing too, as on a full disk. The agent that meets it ends and comes back; then user, bank,
resources and machines must agree on every unit, to the end.
"""

import errno
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ramp.agents import building
from ramp.errors import EffectFailed, LedgerUnavailable, StorageFailed
from ramp.model.instant import MINUTE
from ramp.protocol.resource.slots.kept_participants import FINAL
from ramp.protocol.transition_tables import ParticipantState
from ramp.runtime import state_folder
from ramp.runtime.guests.questions import GuardedGuest
from ramp.runtime.journal import SqliteJournal
from ramp.runtime.ledger.store import LedgerStore
from simulation.resource import reservation_book
from tests.integration.faults.one_process import OneProcess, in_one_process

ROW_OF_FAILURES = 9
"""Writes of all agents that fail in a row on a disk that is full for a while."""


class Writes:
    """Counts every durable write and lets the wanted ones fail.

    Args:
        first: number of the first write that fails, from 1; 0 lets none fail.
        mode: `before` and `after` fail it alone, `full` also those after it.
    """

    def __init__(self, first: int, mode: str) -> None:
        self.count = 0
        self.failed: list[str] = []
        self._first = first
        self._mode = mode

    def at(self, what: str, write: Any, error: Exception) -> Any:
        self.count += 1
        last = self._first + (ROW_OF_FAILURES if self._mode == "full" else 1)
        if self._first and self._first <= self.count < last:
            self.failed.append(what)
            if self._mode == "after":
                write()
            raise error
        return write()


@contextmanager
def counted(writes: Writes, patch: pytest.MonkeyPatch) -> Iterator[None]:
    append, write, pwrite = SqliteJournal.append, LedgerStore.write, reservation_book._write_whole
    write_private, full = state_folder.write_private, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def journal(self: SqliteJournal, record: Any) -> None:
        kind = f"{self.path.stem} {type(record).__name__}"
        writes.at(kind, lambda: append(self, record), StorageFailed("disk full", path=self.path))

    def ledger(self: LedgerStore, work: Any) -> Any:
        locked = sqlite3.OperationalError("database or disk is full")
        locked.sqlite_errorcode = sqlite3.SQLITE_FULL
        error = LedgerUnavailable("the ledger's database does not answer: database or disk is full")
        error.__cause__ = locked
        return writes.at("ledger", lambda: write(self, work), error)

    def book(descriptor: int, data: bytes, offset: int) -> None:
        writes.at("book", lambda: pwrite(descriptor, data, offset), full)

    def private(path: Path, text: str) -> None:
        writes.at(path.suffix, lambda: write_private(path, text), full)

    with patch.context() as inside:
        inside.setattr(SqliteJournal, "append", journal)
        inside.setattr(LedgerStore, "write", ledger)
        inside.setattr(reservation_book, "_write_whole", book)
        inside.setattr(building, "write_private", private)
        inside.setattr(state_folder, "write_private", private)
        yield


async def purchase(market: OneProcess, writes: Writes, patch: pytest.MonkeyPatch) -> None:
    await market.run(lambda: len(market.agents["directory"].host.party.registered) == 2)  # type: ignore[attr-defined]
    with counted(writes, patch):
        await market.submit("r1", market.request())
        await market.run(lambda: is_settled(market), limit=20 * MINUTE)
    check_agreed(market)


def is_settled(market: OneProcess) -> bool:
    return (
        len(market.agents) == 6
        and market.outcome("r1") is not None
        and not market.alice._running
        and not any(host.party.releases for host in resources(market))
        and all(each.state in FINAL for host in resources(market) for each in host.party.participants.values())
    )


def resources(market: OneProcess) -> list[Any]:
    return [market.agents[name].host for name in ("alpha", "beta")]


def check_agreed(market: OneProcess) -> None:
    """User, bank, resources and machines say the same of every unit."""
    bank = market.agents["bank"].host.ports.ledger
    ledger = bank.ledger
    assert ledger.audit() == []
    assert ledger.open_orders() == ()
    active = {key for key in market.alice.agreements if market.alice.agreement_state(key) == "active"}
    posted = {key: ledger.transfer(key) for key in market.alice.agreements}
    paid = {key for key, transfer in posted.items() if transfer is not None and transfer.posted_at is not None}
    sold, firm = set(), set()
    for host in resources(market):
        assert isinstance(host.ports.machine, GuardedGuest)
        plugin = host.ports.machine.guest
        participants = host.party.participants.values()
        for participant in participants:
            if participant.state is ParticipantState.SOLD:
                sold.add(participant.agreed.agreement_id)
                if plugin.reservation(participant.offer.offer_id, market.clock.now()).firm:
                    firm.add(participant.agreed.agreement_id)
        assert len(plugin.reservations(market.clock.now())) == len(
            [each for each in participants if each.state is ParticipantState.SOLD]
        )
    assert active == paid == sold == firm
    assert len(active) in (0, 2)
    outcome = market.outcome("r1")
    if outcome is not None:  # else the command itself failed, and its giver was told
        assert (outcome.status == "committed") == (len(active) == 2)
    for agreement_id in active:
        for owner in ("alice", market.alice.agreements[agreement_id].resource.partition("@")[0]):
            assert market.state.agreement(owner, agreement_id).exists(), (owner, agreement_id)
            assert market.state.payment(owner, agreement_id).exists(), (owner, agreement_id)


def run(folder: Path, first: int, mode: str, patch: pytest.MonkeyPatch) -> tuple[Writes, OneProcess]:
    writes, seen = Writes(first, mode), []

    async def scenario(market: OneProcess) -> None:
        seen.append(market)
        await purchase(market, writes, patch)

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    in_one_process(folder, scenario)
    return writes, seen[0]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("mode", ["before", "after", "full"])
def test_a_failed_write_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    writes, market = run(tmp_path / "market", 0, "before", monkeypatch)
    assert market.ended == []
    assert writes.count > 30
    met = set()
    for number in range(1, writes.count + 1):
        writes, market = run(tmp_path / "market", number, mode, monkeypatch)
        assert writes.failed, number
        met.update(writes.failed)
        for name, error in market.ended:
            assert isinstance(error, EffectFailed | StorageFailed | LedgerUnavailable), (number, name, error)
    assert "ledger" in met
