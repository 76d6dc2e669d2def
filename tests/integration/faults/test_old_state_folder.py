"""A state folder from before journals had versions, with requests open, is taken over; a later one is refused."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import tarfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from one_process import CONFIG, OneProcess

from ramp.cli.main import main
from ramp.errors import VersionTooNew
from ramp.model.instant import HOUR, SECOND
from ramp.protocol.outcome import RequestStatus
from ramp.runtime.archive import Archive
from ramp.runtime.journal import JOURNAL_VERSION, SqliteJournal
from ramp.runtime.ledger.store import LedgerStore
from simulation.resource.reservation_book import ReservationBook

FOLDER = Path(__file__).parent / "data/state_of_journal_version_1.tar.gz"

DECIDED = "request-3ca7f772733266aae95bdac1"
BEGUN = "request-e87420cfae81d3ee6de9cff2"
BOUGHT = ("request-7083a20758f3f2a3d914be3c", "request-4446edcd190e5fecd39d8828")
QUOTED = "request-8bd0e25f595e60ae4cc6a301"

SELDOM = f"{CONFIG}\n[timing]\nheartbeat_s = 300\nlease_s = 700\n"
"""With few heartbeats, for hours are run through."""

KILLED_AT_MARGIN = 3 * SECOND
"""How long after the last record the market comes up again in these tests; the certificates hold then."""


def unpacked(folder: Path) -> OneProcess:
    """The market in a folder, not started; its clock stands shortly after the kill."""
    with tarfile.open(FOLDER) as packed:
        packed.extractall(folder, filter="data")
    market = OneProcess(folder, SELDOM)
    with closing(sqlite3.connect(market.state.journal("alice"))) as journal:
        assert journal.execute("PRAGMA user_version").fetchone() == (0,)
        times = [json.loads(text)["at"] for (text,) in journal.execute("SELECT record FROM journal")]
    market.clock.time = max(times) + KILLED_AT_MARGIN
    return market


def with_old_folder(folder: Path, scenario: Callable[[OneProcess], Any]) -> None:
    async def whole() -> None:
        market = unpacked(folder)
        await market.start()
        try:
            await scenario(market)
        finally:
            await market.stop()

    asyncio.run(whole())


def test_its_open_requests_go_on(tmp_path: Path) -> None:
    async def scenario(market: OneProcess) -> None:
        requests = (*BOUGHT, QUOTED, DECIDED, BEGUN)
        assert set(market.alice.purchases) == set(requests)
        assert await market.run(lambda: all(market.outcome(each) is not None for each in requests), limit=HOUR)
        ended = {each: market.outcome(each).status for each in requests}
        committed, failed = RequestStatus.COMMITTED, RequestStatus.FAILED
        assert ended == {
            **dict.fromkeys((*BOUGHT, DECIDED), committed),
            QUOTED: RequestStatus.QUOTED,
            BEGUN: failed,
        }
        assert len(market.alice.agreements) == 4
        assert {market.alice.agreement_state(each) for each in market.alice.agreements} == {"active"}
        with LedgerStore.open(market.state.ledger) as ledger:
            assert ledger.audit() == []
            assert all(ledger.transfer(each) is not None for each in market.alice.agreements)
        for agreement_id in market.alice.agreements:
            assert market.state.agreement("alice", agreement_id).exists()
        assert market.faults == []
        assert market.ended == []

    with_old_folder(tmp_path, scenario)
    for name in ("alice", "alpha", "beta"):
        with closing(sqlite3.connect(tmp_path / "state/journals" / f"{name}.sqlite")) as journal:
            assert journal.execute("PRAGMA user_version").fetchone() == (JOURNAL_VERSION,)


def test_it_goes_to_the_archive_like_any_other(tmp_path: Path) -> None:
    """Hours later nothing of it is at hand; the files of the agreements stay."""

    async def scenario(market: OneProcess) -> None:
        files = {path for path in (market.state.path / "agreements").rglob("*") if path.is_file()}
        await market.run(lambda: False, limit=4 * HOUR)
        assert not market.alice.purchases
        for name in ("alpha", "beta"):
            assert not market.agents[name].host.party.participants  # type: ignore[attr-defined]
            assert not market.agents[name].host.ports.journal.records()  # type: ignore[union-attr]
        archived = {each["request_id"] for each in Archive(market.state.archive("alice")).requests()}
        assert archived == {*BOUGHT, QUOTED, DECIDED, BEGUN}
        now = {path for path in (market.state.path / "agreements").rglob("*") if path.is_file()}
        assert files < now
        assert market.ended == []

    with_old_folder(tmp_path, scenario)
    for name in ("alpha", "beta"):
        book = tmp_path / f"state/reservations/{name}.reservations.jsonl"
        assert json.loads(book.read_text().splitlines()[0])["version"] == 3
        again = ReservationBook("steady", name, tmp_path / "state/reservations")
        assert again._entries == {}
        assert again.next_reservation_id() == f"{name}-3"


def of_version(path: Path, version: int) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version={version}")


def of_ledger_version(path: Path, version: int) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"UPDATE ledger_version SET version = {version}")


@pytest.mark.parametrize(
    ("file", "what", "newest", "mark"),
    [
        ("journals/alpha.sqlite", "journal", 2, of_version),
        ("archives/alice.sqlite", "archive", 1, of_version),
        ("ledger.sqlite", "ledger", 4, of_ledger_version),
    ],
)
def test_a_later_version_is_refused_before_anything_is_started(
    file: str, what: str, newest: int, mark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    market = unpacked(tmp_path)
    path = market.state.path / file
    path.parent.mkdir(exist_ok=True)
    mark(path, newest + 1)
    before = {each: each.read_bytes() for each in market.state.journals.iterdir() if not each.name.endswith("-shm")}
    arguments = ["up", str(market.config.path), "--detach", "--state-dir", str(market.state.path)]
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert f"{path}: this {what} is of version {newest + 1}, and this program knows versions up to {newest}" in said
    assert "run the version of RAMP that wrote it" in said
    assert {each: each.read_bytes() for each in before} == before


def test_an_agent_refuses_a_later_journal_or_archive_by_itself(tmp_path: Path) -> None:
    SqliteJournal(tmp_path / "a.sqlite", tmp_path / "archive.sqlite").close()
    of_version(tmp_path / "archive.sqlite", 2)
    with pytest.raises(VersionTooNew, match=r"archive\.sqlite: this archive is of version 2"):
        SqliteJournal(tmp_path / "a.sqlite", tmp_path / "archive.sqlite")
    of_version(tmp_path / "a.sqlite", 3)
    with pytest.raises(VersionTooNew, match=r"a\.sqlite: this journal is of version 3"):
        SqliteJournal(tmp_path / "a.sqlite")


def test_a_later_configuration_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "market.toml"
    path.write_text(f"version = 2\nsomething_new = true\n{CONFIG}")
    assert main(["config", "check", str(path)]) == 2
    assert f"{path}: this configuration is of version 2" in capsys.readouterr().err
    path.write_text(f"version = 1\n{CONFIG}")
    assert main(["config", "check", str(path)]) == 0
    path.write_text(f'version = "new"\n{CONFIG}')
    assert main(["config", "check", str(path)]) == 2
    assert "version: 'new' is wrong; right would be a whole number from 1" in capsys.readouterr().err


@pytest.mark.parametrize(("lines", "least"), [("retention_s = 600", 1200), ("offer_validity_s = 7200", 7200)])
def test_a_retention_that_peers_may_outlast_is_refused(
    lines: str, least: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "market.toml"
    path.write_text(f"{CONFIG}\n[timing]\n{lines}\n")
    assert main(["config", "check", str(path)]) == 2
    given = 600.0 if "retention" in lines else 3600.0
    right = f"timing.retention_s: {given} is wrong; right would be {least} or more"
    assert right in capsys.readouterr().err
