"""Bugs stay in their conversation, and journals that lack their first records are taken up all the same."""

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from ramp.agents.group import end_agent
from ramp.model.instant import MINUTE
from ramp.protocol.records import CommitDecided, FundsAsked, RequestStarted
from ramp.protocol.resource.participant import Participant
from ramp.protocol.user.confirmation import Confirmation
from ramp.runtime.host import Host
from tests.integration.faults.one_process import OneProcess, in_one_process

BUGS: dict[str, tuple[type, str]] = {
    "user, a vote of the bank or proof of a resource": (Confirmation, "handle"),
    "resource, an acceptance": (Participant, "start"),
    "resource, the plug-in's answer": (Participant, "on_held"),
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
        assert bank is not None
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
