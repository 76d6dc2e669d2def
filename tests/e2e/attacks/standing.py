"""How a market stands: ledger, reservations, what its users' agents say, who is listed, who was restarted."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, fields
from typing import Any

import psutil

from ramp.runtime.ledger.store import LedgerStore
from tests.e2e.swarm.swarm_books import Books
from tests.e2e.swarm.swarm_market import Market, in_hours, unit, until


@dataclass(frozen=True)
class Standing:
    """What must not change under an attack.

    Attributes:
        findings: of the ledger's audit.
        entries: entries of the ledger; whatever leaves a trace there adds one.
        balances: posted and reserved of every account.
        orders: ids of the orders whose money is set aside.
        reservations: holds and firm reservations of every machine, as ids and whether they are firm.
        requests: what `ramp status` shows, by user.
        agreements: what `ramp reservations` shows, by user: states and doubts by agreement id.
        listed: who sells.
        restarts: of every agent.
    """

    findings: tuple[str, ...]
    entries: int
    balances: dict[str, tuple[int, int]]
    orders: tuple[str, ...]
    reservations: dict[str, frozenset[tuple[str, bool]]]
    requests: dict[str, Any]
    agreements: dict[str, dict[str, tuple[str, str]]]
    listed: list[str]
    restarts: dict[str, int]

    def changes(self, later: Standing) -> dict[str, Any]:
        """What is different later, by attribute: before and after."""
        pairs = {field.name: (getattr(self, field.name), getattr(later, field.name)) for field in fields(self)}
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def restarts(market: Market) -> dict[str, int]:
    """How often every agent was started again."""
    return {entry["name"]: entry["restarts"] for entry in market.status()["agents"]}


def standing(market: Market) -> Standing:
    """How a market stands now."""
    with LedgerStore.open(market.state.ledger) as ledger:
        findings, entries = tuple(ledger.audit()), len(ledger.snapshot().entries)
        balances = {each.account.account_id: (each.posted, each.reserved) for each in ledger.balances()}
        orders = tuple(order.order_id for order in ledger.open_orders())
    reserved = {
        name: frozenset((each.reservation_id, each.firm) for each in live)
        for name, live in Books(market).reservations().items()
    }
    users = market.users()
    return Standing(
        findings,
        entries,
        balances,
        orders,
        reserved,
        {user: market.ask(user, {"verb": "list_requests"})["requests"] for user in users},
        {
            user: {
                each["agreement"]["agreement_id"]: (each["state"], each["doubt"]) for each in market.agreements(user)
            }
            for user in users
        },
        market.listed(),
        restarts(market),
    )


@contextlib.contextmanager
def paused(market: Market, role: str, act: str, request_id: str, hours: int) -> Iterator[dict[str, Any]]:
    """Stop a purchase of one unit of small1 just before somebody says something; yields the agreement.

    Afterwards the purchase goes on, and must end as if nothing had been.
    """
    market.arm(role, act, "before", 1, signal.SIGSTOP)
    with market.submitted("alice", request_id, [unit(1, 8, in_hours(hours))]) as events:
        name = until(market.victim, lambda: f"somebody walks into the trap\n{market.logs()}")
        process = psutil.Process(market.agent(name)["pid"])
        until(lambda: process.status() == psutil.STATUS_STOPPED, f"{name} stands still")
        try:
            listed = [each["agreement"] for each in market.agreements("alice")]
            yield next(each for each in listed if each["request_id"] == request_id)
        finally:
            process.send_signal(signal.SIGCONT)
        *_, last = events
    assert last["outcome"]["status"] == "committed", last["outcome"]
    assert last["outcome"]["units"][0]["offer"]["resource"] == "small1@localhost"
    Books(market).come_right()


@contextlib.asynccontextmanager
async def stopped_purchase(*arguments: Any) -> AsyncIterator[dict[str, Any]]:
    """`paused` for coroutines."""
    manager = paused(*arguments)
    agreement = await asyncio.to_thread(manager.__enter__)
    try:
        yield agreement
    except BaseException as error:
        await asyncio.to_thread(manager.__exit__, type(error), error, error.__traceback__)
        raise
    await asyncio.to_thread(manager.__exit__, None, None, None)
