"""A party whose journal was restored from an old copy stays out and says why; every other restart goes on."""

import asyncio
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ramp.agents.group import end_agent
from ramp.errors import StateDamaged
from ramp.model.instant import MINUTE
from ramp.protocol.records import CommitDecided
from tests.integration.faults.one_process import OneProcess, in_one_process


async def bought(market: OneProcess, request_id: str) -> str:
    """Buy one unit and return its agreement."""
    await market.run(lambda: len(market.agents["directory"].host.party.registered) == 2)  # type: ignore[attr-defined]
    await market.submit(request_id, market.request(units=1, cores=10))
    assert await market.run(lambda: market.outcome(request_id) is not None, limit=30 * MINUTE)
    (unit,) = market.outcome(request_id).units
    await market.run(lambda: False, limit=MINUTE)
    return str(unit.agreement_id)


async def again(market: OneProcess, name: str) -> None:
    """Start an agent, and let it ask the bank."""
    await market.bring_up(name)
    for _ in range(5):
        await asyncio.sleep(0)
    await market.run(lambda: False, limit=MINUTE, revive=False)


async def ended(market: OneProcess, name: str) -> Path:
    """End an agent, and return its journal, which is then one file."""
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

        def decided() -> bool:
            journal = market.agents["alice"].host.ports.journal
            return journal is not None and any(isinstance(each, CommitDecided) for each in journal.records())

        assert await market.run(decided)
        await ended(market, "alice")
        await market.run(lambda: False, limit=MINUTE, revive=False)  # the bank pays
        await again(market, "alice")
        agent: Any = market.agents["alice"]
        assert agent._payments_known
        assert await market.run(lambda: market.outcome("r1") is not None, limit=30 * MINUTE)
        assert market.outcome("r1").status == "committed"
        assert market.ended == []

    in_one_process(tmp_path, scenario)
