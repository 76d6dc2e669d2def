"""The keeper's page: all accounts, transactions, machines and agents."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from nicegui import ui

from ramp.client import dialogues
from ramp.client.dialogues import converse
from ramp.client.machine_state import MachineState
from ramp.client.swarm import status
from ramp.control.headline import state_text
from ramp.errors import RampError
from ramp.model.contents import MarketOverview
from ramp.model.instant import HOUR, to_datetime
from ramp.model.money import credits_text
from ramp.runtime.clock import SystemClock
from ramp.web.pages import frame
from ramp.web.pages.row_tables import Column, table
from ramp.web.pages.visit import Visit

TRADES_SINCE = 24 * HOUR
"""Period of the trades; `ramp bank overview` has all."""

ACCOUNTS = (
    Column("name", "Account"),
    Column("balance", "Balance (credits)", right=True),
    Column("reserved", "Reserved (credits)", right=True),
    Column("overdraft", "Overdraft (credits)", right=True),
)
TRADES = (
    Column("at", "Time"),
    Column("kind", "Type"),
    Column("debtor", "From"),
    Column("creditor", "To"),
    Column("amount", "Credits", right=True),
)
AGENTS = (
    Column("name", "Agent"),
    Column("role", "Role"),
    Column("state", "State"),
    Column("restarts", "Restarts", right=True),
    Column("since", "Since"),
)
MACHINES = (
    Column("name", "Machine"),
    Column("cores", "Cores", right=True),
    Column("busy", "In use (%)", right=True),
    Column("running", "Running jobs", right=True),
    Column("waiting", "Waiting jobs", right=True),
    Column("sold", "Reservations sold", right=True),
    Column("held", "Reservations held", right=True),
    Column("price", "Start price (credits/core-hour)", right=True),
    Column("state", "Agent"),
    Column("source", "Queue data"),
)

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
        rows = [
            {
                "name": short(each.account),
                "balance": credits_text(each.balance),
                "reserved": credits_text(each.reserved),
                "overdraft": credits_text(each.credit_limit) if each.is_limited else "no limit",
            }
            for each in found.accounts
        ]
        table(ACCOUNTS, rows, "name")
    with frame.card():
        frame.subheading("Transactions of the last 24 hours")
        rows = [
            {
                "at": visit.moment(to_datetime(each.posted_at)),
                "kind": each.kind,
                "debtor": short(each.debit_account),
                "creditor": short(each.credit_account),
                "amount": credits_text(each.amount),
                "id": each.transfer_id,
            }
            for each in reversed(found.trades)
        ]
        table(TRADES, rows, "id", empty="No transactions.")


async def _build_machines(visit: Visit) -> None:
    with frame.card():
        frame.subheading("Machines")
        told = frame.waiting("Loading the machines…")
        room = ui.element("div").classes("full-width")
        with room:
            drawn = table(MACHINES, [], "name", empty="No sellers.")
            drawn.link("name", "/machines/")
        room.set_visibility(False)

    async def look() -> None:
        levels = await visit.site.reader.read()
        agents = levels.status.agents if levels.status is not None else ()
        sellers = {agent.name: state_text(agent) for agent in agents if agent.role == "resource"}
        names = sorted({*sellers, *levels.machines})
        room.set_visibility(True)
        told.set_text(f"{len(levels.machines)} of {len(names)} machines answered")
        drawn.show(
            [machine_row(name, sellers.get(name, "at another site"), levels.machines.get(name)) for name in names]
        )

    await look()
    ui.timer(LOOK_AGAIN_S, visit.one_at_a_time(look), immediate=False)


def machine_row(name: str, agent: str, machine: MachineState | None) -> dict[str, object]:
    """Return a row of the table of machines; unknown values stay empty.

    Args:
        name: of its resource.
        agent: state of the resource's agent.
        machine: its answer, or None.
    """
    row: dict[str, object] = {"id": name, "name": name, "state": agent}
    if machine is None:
        return row | {"source": "(no answer)"}
    return row | {
        "cores": machine.cores,
        "busy": 100 * machine.cores_busy // max(machine.cores, 1),
        "running": machine.running_total,
        "waiting": machine.queued_total,
        "sold": sum(each.firm for each in machine.reservations),
        "held": sum(not each.firm for each in machine.reservations),
        "price": machine.start_price,
        "source": machine.source,
    }


def _build_agents(visit: Visit) -> None:
    with frame.card():
        frame.subheading("Agents")
        try:
            found = status(visit.site.state)
        except RampError as error:
            frame.problem(error)
            return
        rows = [
            {
                "name": each.name,
                "role": each.role,
                "state": state_text(each),
                "restarts": each.restarts,
                "since": since_text(visit, each.since),
            }
            for each in (found.agents if found is not None else ())
        ]
        ui.label(f"{len(rows)} agents").classes("ramp-quiet")
        table(AGENTS, rows, "name")


def since_text(visit: Visit, moment: str) -> str:
    """Format the time of an agent's last change of state; other text stays unchanged."""
    try:
        return visit.moment(datetime.fromisoformat(moment))
    except ValueError:
        return moment
