"""Balance and statement of the user."""

from __future__ import annotations

from typing import Final

from nicegui import ui

from ramp.client.results import Account
from ramp.model.instant import from_datetime
from ramp.web.pages import charts, frame
from ramp.web.pages.numbers import credits_named, signed
from ramp.web.pages.refreshing import Refresher
from ramp.web.pages.row_tables import Column, Kind, table
from ramp.web.pages.visit import Visit

SINCE: Final = "-30d"
"""Period of the statement; `ramp balance --statement` has all."""

ASKED_AGAIN_S: Final = 2.0
"""Minimum seconds between two queries to the bank."""


async def build(visit: Visit) -> None:
    """Fill the page."""
    frame.heading("Your account")
    body = ui.element("div").classes("column full-width").style("gap: 1rem")

    async def look() -> None:
        found = await visit.market().statement(since=SINCE)
        body.clear()
        with body:
            _draw(visit, found)

    refresher = Refresher(look, ASKED_AGAIN_S)
    visit.until_gone(visit.feed().listen_to_ends(refresher.changed))
    await look()


def _draw(visit: Visit, found: Account) -> None:
    amounts = (
        ("Balance", found.balance),
        ("Reserved for purchases", found.reserved),
        ("Overdraft", found.overdraft),
        ("Available", found.available),
    )
    with frame.card(), ui.element("dl").classes("ramp-facts ramp-number"):
        frame.draw_facts(visit, ((name, f"{credits_named(amount)}") for name, amount in amounts))
    with frame.card():
        frame.subheading("The last 30 days")
        if found.postings:
            points = [(from_datetime(each.at), each.balance) for each in found.postings]
            points.append((from_datetime(found.at), found.balance))
            ui.echart(charts.balance_chart(points, visit.dark)).style("height: 15rem").props(
                'role="img" aria-label="Balance over time, as in the table below"'
            )
        table(
            (
                Column("Time", lambda each: each.at, Kind.TIME),
                Column("Type", lambda each: each.kind),
                Column("Counterparty", lambda each: visit.market().short(each.counterparty)),
                Column("Amount (credits)", lambda each: each.amount, Kind.CREDITS, lambda each: signed(each.amount)),
                Column("Balance (credits)", lambda each: each.balance, Kind.CREDITS),
            ),
            reversed(found.postings),
            empty="No transactions.",
        )
