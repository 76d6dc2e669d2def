"""The keeper's page: every account, all trading, and how the agents are."""

from __future__ import annotations

from nicegui import ui

from ramp.client import dialogues
from ramp.client.asyncio_market import converse
from ramp.client.swarm import status
from ramp.control.headline import state_text
from ramp.errors import RampError
from ramp.model.contents import MarketOverview
from ramp.model.instant import HOUR, to_datetime
from ramp.model.money import credits_text
from ramp.runtime.clock import SystemClock
from ramp.web.pages import frame
from ramp.web.pages.tables import Column, table
from ramp.web.pages.visit import Visit

TRADES_SINCE = 24 * HOUR
"""How far back trading is shown; `ramp bank overview` has all of it."""

ACCOUNTS = (
    Column("name", "Account"),
    Column("balance", "Balance (credits)", right=True),
    Column("reserved", "Set aside (credits)", right=True),
    Column("overdraft", "Overdraft (credits)", right=True),
)
TRADES = (
    Column("at", "When"),
    Column("kind", "What"),
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


async def build(visit: Visit) -> None:
    """Fill the page."""
    frame.heading("The market, as its keeper sees it")
    access = visit.site.keeper_access(visit.session)
    since = SystemClock().now() - TRADES_SINCE
    async with await access.open_async() as line:
        found = await converse(line, dialogues.overview(since, None))
    _build_bank(visit, found, access.domain)
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
        frame.subheading("Trading of the last 24 hours")
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
        table(TRADES, rows, "id", empty="Nothing was paid, refunded or deposited.")


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
                "since": each.since,
            }
            for each in (found.agents if found is not None else ())
        ]
        ui.label(f"{len(rows)} agents").classes("ramp-quiet")
        table(AGENTS, rows, "name")
