"""The keeper's page: all accounts, transactions, machines and agents."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final, NamedTuple

from nicegui import ui

from ramp.client import dialogues
from ramp.client.dialogues import converse
from ramp.client.machine_state import MachineState
from ramp.client.swarm import status
from ramp.control.headline import state_text
from ramp.errors import RampError
from ramp.model.contents import AccountLine, MarketOverview
from ramp.model.instant import HOUR, to_datetime
from ramp.runtime.clock import SystemClock
from ramp.web.pages import frame
from ramp.web.pages.numbers import amount
from ramp.web.pages.row_tables import Column, Kind, table
from ramp.web.pages.visit import Visit

TRADES_SINCE = 24 * HOUR
"""Period of the trades; `ramp bank overview` has all."""

LOOK_AGAIN_S: Final = 10.0
"""Seconds between two queries to the machines."""


async def build(visit: Visit) -> None:
    """Fill the page."""
    frame.heading("Market administration")
    access = visit.site.keeper_access(visit.session)
    since = SystemClock().now() - TRADES_SINCE
    async with await access.open() as line:
        found = await converse(line, dialogues.overview(since, None))
    _build_bank(visit, found, access.domain)
    await _build_machines(visit)
    _build_agents(visit)


def _build_bank(visit: Visit, found: MarketOverview, domain: str) -> None:
    def short(name: str) -> str:
        return name.removesuffix(f"@{domain}") if domain else name

    with frame.card():
        frame.subheading("Accounts")
        table(
            (
                Column("Account", lambda each: short(each.account)),
                Column("Balance (credits)", lambda each: each.balance, Kind.CREDITS),
                Column("Reserved (credits)", lambda each: each.reserved, Kind.CREDITS),
                Column("Overdraft (credits)", lambda each: each.credit_limit, Kind.CREDITS, _overdraft_text),
            ),
            found.accounts,
        )
    with frame.card():
        frame.subheading("Transactions of the last 24 hours")
        table(
            (
                Column("Time", lambda each: to_datetime(each.posted_at), Kind.TIME),
                Column("Type", lambda each: each.kind),
                Column("From", lambda each: short(each.debit_account)),
                Column("To", lambda each: short(each.credit_account)),
                Column("Credits", lambda each: each.amount, Kind.CREDITS),
            ),
            reversed(found.trades),
            empty="No transactions.",
        )


def _overdraft_text(account: AccountLine) -> str:
    return amount(account.credit_limit) if account.is_limited else "no limit"


async def _build_machines(visit: Visit) -> None:
    with frame.card():
        frame.subheading("Machines")
        told = frame.waiting("Loading the machines…")
        room = ui.element("div").classes("full-width")
        with room:
            drawn = table(
                (
                    Column("Machine", lambda seller: seller.name, link="/machines/"),
                    Column("Cores", _of(lambda machine: machine.cores), Kind.NUMBER),
                    Column("In use (%)", _of(_busy_per_cent), Kind.NUMBER),
                    Column("Running jobs", _of(lambda machine: machine.running_total), Kind.NUMBER),
                    Column("Waiting jobs", _of(lambda machine: machine.queued_total), Kind.NUMBER),
                    Column("Reservations sold", _of(lambda machine: _slots(machine, firm=True)), Kind.NUMBER),
                    Column("Reservations held", _of(lambda machine: _slots(machine, firm=False)), Kind.NUMBER),
                    Column("Start price (credits/core-hour)", _of(lambda machine: machine.start_price), Kind.NUMBER),
                    Column("Agent", lambda seller: seller.agent),
                    Column("Queue data", _of(lambda machine: machine.source, "(no answer)")),
                ),
                key=lambda seller: seller.name,
                empty="No sellers.",
            )
        room.set_visibility(False)

    async def look() -> None:
        levels = await visit.site.reader.read()
        agents = levels.status.agents if levels.status is not None else ()
        sellers = {agent.name: state_text(agent) for agent in agents if agent.role == "resource"}
        names = sorted({*sellers, *levels.machines})
        room.set_visibility(True)
        told.set_text(f"{len(levels.machines)} of {len(names)} machines answered")
        drawn.show(_Seller(name, sellers.get(name, "at another site"), levels.machines.get(name)) for name in names)

    await look()
    ui.timer(LOOK_AGAIN_S, look, immediate=False)


class _Seller(NamedTuple):
    """A seller, the state of its agent, and its machine's answer."""

    name: str
    agent: str
    machine: MachineState | None


def _of(value: Callable[[MachineState], object], unknown: object = None) -> Callable[[_Seller], object]:
    return lambda seller: unknown if seller.machine is None else value(seller.machine)


def _busy_per_cent(machine: MachineState) -> int:
    return 100 * machine.cores_busy // max(machine.cores, 1)


def _slots(machine: MachineState, *, firm: bool) -> int:
    return sum(each.firm == firm for each in machine.reservations)


def _build_agents(visit: Visit) -> None:
    with frame.card():
        frame.subheading("Agents")
        try:
            found = status(visit.site.state)
        except RampError as error:
            frame.problem(error)
            return
        agents = found.agents if found is not None else ()
        ui.label(f"{len(agents)} agents").classes("ramp-quiet")
        table(
            (
                Column("Agent", lambda each: each.name),
                Column("Role", lambda each: each.role),
                Column("State", state_text),
                Column("Restarts", lambda each: each.restarts, Kind.NUMBER),
                Column("Since", lambda each: _since(each.since), Kind.TIME),
            ),
            agents,
        )


def _since(moment: str) -> datetime | None:
    try:
        return datetime.fromisoformat(moment)
    except ValueError:
        return None
