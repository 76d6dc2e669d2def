"""Journals and state folders that are taken up again, and those of other times and versions, which are refused."""

import asyncio
import contextlib
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ramp.agents.group import end_agent
from ramp.cli.main import main
from ramp.errors import StateDamaged
from ramp.model.instant import MINUTE
from ramp.protocol.records import CommitDecided, FundsAsked, RequestStarted
from ramp.protocol.resource.participant import Participant
from ramp.protocol.user.confirmation import Confirmation
from ramp.runtime.host import Host
from ramp.runtime.journal import SqliteJournal
from ramp.runtime.ledger.store import LedgerStore
from ramp.runtime.state_folder import StateFolder
from tests.integration.faults.one_process import CONFIG, OneProcess, in_one_process

BUGS: dict[str, tuple[type, str]] = {
    "user, a vote of the bank or proof of a resource": (Confirmation, "on_message"),
    "resource, an acceptance": (Participant, "start"),
    "resource, the plug-in's answer": (Participant, "on_answer"),
    "resource, a commitment": (Participant, "on_commitment"),
    "resource, the bank's answer": (Participant, "on_bank"),
}


@pytest.mark.slow
@pytest.mark.parametrize("where", BUGS)
def test_a_bug_in_one_conversation_touches_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """The first call for request `bad` raises half-way; `good`, which goes on at the same time, is bought."""
    machine, name = BUGS[where]
    original = getattr(machine, name)
    raised: list[str] = []

    def failing(self: Any, *arguments: Any) -> Any:
        request_id = getattr(self, "request_id", None) or self.conversation_id
        effects = original(self, *arguments)  # it has moved on; its effects are lost
        if request_id == "bad" and not raised:
            raised.append(request_id)
            raise LookupError("a bug")
        return effects

    monkeypatch.setattr(machine, name, failing)
    lives: list[Any] = []
    start = Host.start
    monkeypatch.setattr(Host, "start", lambda self, now: (lives.append(self), start(self, now))[1])

    async def scenario(market: OneProcess) -> None:
        await market.run(lambda: len(market.agents["directory"].host.party.registered) == 2)  # type: ignore[attr-defined]
        await market.submit("bad", market.request(units=1, cores=10))
        await market.submit("good", market.request(units=1, cores=10))
        ended = lambda: market.outcome("bad") is not None and market.outcome("good") is not None  # noqa: E731
        assert await market.run(ended, limit=30 * MINUTE)
        await market.run(lambda: False, limit=20 * MINUTE)
        assert market.outcome("good").status == "committed"
        assert market.outcome("bad").status in ("committed", "failed", "withdrawn")
        assert market.ended == []
        assert len(lives) == 6  # nobody was started a second time
        bank = market.agents["bank"].host.ports.ledger
        assert bank.ledger.audit() == []
        assert bank.ledger.open_orders() == ()

    in_one_process(tmp_path, scenario)
    assert raised == ["bad"]


@pytest.mark.parametrize("lost", [RequestStarted, FundsAsked])
def test_a_request_without_its_first_records_is_told_in_the_log_and_not_taken_up(
    tmp_path: Path, lost: type, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(market: OneProcess) -> None:
        await market.run(lambda: len(market.agents["directory"].host.party.registered) == 2)  # type: ignore[attr-defined]
        await market.submit("r1", market.request())
        assert await market.run(lambda: CommitDecided.__name__ in kinds(market))
        await end_agent(market.agents.pop("alice"))
        journal = market.state.journals / "alice.sqlite"
        with contextlib.closing(sqlite3.connect(journal)) as connection, connection:
            connection.execute("DELETE FROM journal WHERE record LIKE ?", (f'%"type":"{lost.__name__}"}}',))
        assert await market.bring_up("alice") is not None
        assert market.alice.purchases == {}

    in_one_process(tmp_path, scenario)
    assert f"request r1: the journal has no {lost.__name__} of it, so it is not resumed" in caplog.text


def kinds(market: OneProcess) -> list[str]:
    journal: Any = market.agents["alice"].host.ports.journal
    return [type(record).__name__ for record in journal.records()]


async def bought(market: OneProcess, request_id: str) -> str:
    await market.run(lambda: len(market.agents["directory"].host.party.registered) == 2)  # type: ignore[attr-defined]
    await market.submit(request_id, market.request(units=1, cores=10))
    assert await market.run(lambda: market.outcome(request_id) is not None, limit=30 * MINUTE)
    (unit,) = market.outcome(request_id).units
    await market.run(lambda: False, limit=MINUTE)
    return str(unit.agreement_id)


async def again(market: OneProcess, name: str) -> None:
    await market.bring_up(name)
    for _ in range(5):
        await asyncio.sleep(0)
    await market.run(lambda: False, limit=MINUTE, revive=False)


async def ended(market: OneProcess, name: str) -> Path:
    await end_agent(market.agents.pop(name))
    path = market.state.journal(name)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


def seller(market: OneProcess, agreement_id: str) -> str:
    return str(market.alice.agreements[agreement_id].resource.partition("@")[0])


@pytest.mark.parametrize("first", [True, False], ids=["empty", "with an earlier purchase"])
@pytest.mark.parametrize("role", ["user", "resource"])
def test_a_party_with_an_old_journal_stays_out_and_says_why(tmp_path: Path, role: str, first: bool) -> None:
    async def scenario(market: OneProcess) -> None:
        known = "" if first else await bought(market, "r1")
        copies = {}
        for name in ("alice", "alpha", "beta"):
            copies[name] = shutil.copy(await ended(market, name), tmp_path / f"{name}.copy")
            await again(market, name)
        agreement_id = await bought(market, "r2")
        name = "alice" if role == "user" else seller(market, agreement_id)
        path = await ended(market, name)
        shutil.copy(copies[name], path)
        market.ended.clear()
        await again(market, name)
        ((who, error),) = market.ended
        assert (who, type(error)) == (name, StateDamaged)
        missing = f"paid agreements missing: 1 ({agreement_id})"
        assert f"{path}: the journal is older than the bank's records; {missing}" in str(error)
        assert not known or known not in str(error)
        assert "`ramp bank refund`" in str(error)

    in_one_process(tmp_path, scenario)


@pytest.mark.parametrize("name", ["alice", "seller"])
def test_a_party_with_its_own_journal_goes_on(tmp_path: Path, name: str) -> None:
    async def scenario(market: OneProcess) -> None:
        agreement_id = await bought(market, "r1")
        party = seller(market, agreement_id) if name == "seller" else name
        await ended(market, party)
        await again(market, party)
        agent: Any = market.agents[party]
        assert agent._payments_known
        assert market.ended == []

    in_one_process(tmp_path, scenario)


def test_a_payment_made_while_its_buyer_was_away_is_no_sign_of_an_old_journal(tmp_path: Path) -> None:
    async def scenario(market: OneProcess) -> None:
        await market.run(lambda: len(market.agents["directory"].host.party.registered) == 2)  # type: ignore[attr-defined]
        await market.submit("r1", market.request(units=1, cores=10))
        assert await market.run(lambda: CommitDecided.__name__ in kinds(market))
        await ended(market, "alice")
        await market.run(lambda: False, limit=MINUTE, revive=False)  # the bank pays
        await again(market, "alice")
        agent: Any = market.agents["alice"]
        assert agent._payments_known
        assert await market.run(lambda: market.outcome("r1") is not None, limit=30 * MINUTE)
        assert market.outcome("r1").status == "committed"
        assert market.ended == []

    in_one_process(tmp_path, scenario)


@pytest.fixture
def state(tmp_path: Path) -> StateFolder:
    """What a market leaves on disk: a journal and a ledger."""
    (tmp_path / "market.toml").write_text(CONFIG)
    state = StateFolder(tmp_path / "state")
    state.prepare()
    SqliteJournal(state.journal("alpha")).close()
    LedgerStore.open(state.ledger).close()
    return state


@pytest.mark.parametrize(
    ("file", "what", "mark", "got"),
    [
        ("journals/alpha.sqlite", "journal", "PRAGMA user_version=2", "2"),
        ("journals/alpha.sqlite", "journal", "PRAGMA user_version=0", "none"),
        ("ledger.sqlite", "ledger", "UPDATE ledger_version SET version = 5", "5"),
    ],
)
def test_a_state_folder_of_another_version_is_refused_before_anything_is_started(
    file: str, what: str, mark: str, got: str, state: StateFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    path = state.path / file
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(mark)
    before = {each: each.read_bytes() for each in state.journals.iterdir() if not each.name.endswith("-shm")}
    assert main(["up", str(state.path.parent / "market.toml"), "--detach", "--state-dir", str(state.path)]) == 2
    said = capsys.readouterr().err
    assert f"{path}: wrong version of this {what}: got {got}, expected 1" in said
    assert "start with an empty state folder, or use the version of RAMP that wrote it" in said
    assert {each: each.read_bytes() for each in before} == before


def test_a_configuration_of_another_version_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "market.toml"
    path.write_text(f"version = 2\nsomething_new = true\n{CONFIG}")
    assert main(["config", "--check", str(path)]) == 2
    assert f"{path}: wrong version of this configuration: got 2, expected 1" in capsys.readouterr().err
    path.write_text(f"version = 1\n{CONFIG}")
    assert main(["config", "--check", str(path)]) == 0
    path.write_text(f'version = "new"\n{CONFIG}')
    assert main(["config", "--check", str(path)]) == 2
    assert "version: got 'new', expected a whole number" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("retention_s = 600", "retention_s: got 600, expected 1200 or more"),
        ("offer_validity_s = 7200", "retention_s: got 3600, expected 7200 or more"),
        ("agreement_validity_s = 901", "agreement_validity_s: got 901, expected 900 or less"),
    ],
)
def test_times_that_peers_may_outlast_or_every_bank_would_refuse_are_refused(
    line: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "market.toml"
    path.write_text(f"{CONFIG}\n[timing]\n{line}\n")
    assert main(["config", "--check", str(path)]) == 2
    assert f"timing.{told}" in capsys.readouterr().err
