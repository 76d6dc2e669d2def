"""Balance and statement of the user."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import tzinfo
from typing import Final

from nicegui import ui

from ramp.client.results import Account, Posting
from ramp.model.contents.accounts import TransferKind
from ramp.model.instant import from_datetime
from ramp.model.money import credits_of, exact_credits
from ramp.web.pages import charts, frame
from ramp.web.pages.dialogs import complaining, mark
from ramp.web.pages.frame import Refresher, Visit, credits_named, signed
from ramp.web.pages.row_tables import Column, Kind, RowTable

SINCE: Final = "-365d"
"""Period of the statement; `ramp balance --statement` has all."""

AMOUNTS: Final = ("Balance", "Reserved for purchases", "Overdraft", "Available")

ASKED_AGAIN_S: Final = 2.0
"""Minimum seconds between two queries to the bank."""


async def build(visit: Visit) -> None:
    """Fill the page."""
    frame.heading("Your account")
    with frame.card():
        warned = ui.label().props('role="status"').classes("ramp-wait text-weight-medium")
        facts = ui.element("dl").classes("ramp-facts ramp-number")
        limit = visit.site.sessions.warning_of(visit.session.name)
        field = ui.input("Warn below (credits)", value=str(exact_credits(limit)) if limit else "", placeholder="100")
        field.on("change", lambda: set_warning())  # noqa: PLW0108  # defined below
    body = ui.element("div").classes("column full-width").style("gap: 1rem")

    async def look() -> None:
        found = await visit.market().statement(since=SINCE)
        warned.set_text(warning_text(visit, found.available))
        warned.set_visibility(bool(warned.text))
        amounts = (found.balance, found.reserved, found.overdraft, found.available)
        frame.draw_facts(visit, facts, zip(AMOUNTS, map(credits_named, amounts), strict=True))
        body.clear()
        with body:
            _draw(visit, found)

    def set_warning() -> None:
        text = str(field.value or "").strip()
        try:
            visit.site.sessions.warn_below(visit.session.name, credits_of(text) if text else 0)
        except ValueError as error:
            mark(field, str(error))
        else:
            mark(field, "")
            refresher.changed()

    refresher = Refresher(look, visit.feed().ended, pause=ASKED_AGAIN_S)
    await look()


def warning_text(visit: Visit, available: int) -> str:
    """Warn that less is available than the user's limit; empty if it is not."""
    below = visit.site.sessions.warning_of(visit.session.name)
    if available >= below:
        return ""
    return f"Only {credits_named(available)} left; you asked for a warning below {credits_named(below)}."


def _draw(visit: Visit, found: Account) -> None:
    short = visit.market().short
    with frame.card():
        with ui.element("div").classes("row items-center full-width"):
            frame.subheading("Spending by seller and month")
            ui.space()
            ui.button("Download statement (CSV)", on_click=lambda: _download(visit)).props("flat no-caps")
        RowTable(
            (
                Column("Month", lambda each: each.month),
                Column("Seller", lambda each: each.seller),
                Column("Paid (credits)", lambda each: each.paid, Kind.CREDITS),
                Column("Refunded (credits)", lambda each: each.refunded, Kind.CREDITS),
                Column("Spent (credits)", lambda each: each.paid - each.refunded, Kind.CREDITS),
            ),
            spending(found.postings, visit.zone, short),
            empty="Nothing was bought.",
            name="Spending by seller and month",
        )
    with frame.card("Transactions"):
        if found.postings:
            points = [(from_datetime(each.at), each.balance) for each in found.postings]
            points.append((from_datetime(found.at), found.balance))
            options = charts.balance_chart(points)
            charts.draw_chart(options, "Balance over time, as in the table below", 15)
        RowTable(
            (
                Column("Time", lambda each: each.at, Kind.TIME),
                Column("Type", lambda each: each.kind),
                Column("Counterparty", lambda each: short(each.counterparty)),
                Column("Amount (credits)", lambda each: each.amount, Kind.CREDITS, lambda each: signed(each.amount)),
                Column("Balance (credits)", lambda each: each.balance, Kind.CREDITS),
            ),
            reversed(found.postings),
            empty="No transactions.",
        )


@dataclass(slots=True)
class Spending:
    """What one seller was paid in one month, and refunds of it; minor units."""

    month: str
    seller: str
    paid: int = 0
    refunded: int = 0


def spending(postings: Iterable[Posting], zone: tzinfo, short: Callable[[str], str]) -> list[Spending]:
    """Return the spending by month in the page's zone and by seller, the latest month first."""
    found: dict[tuple[str, str], Spending] = {}
    for each in postings:
        if each.kind not in (TransferKind.PAYMENT, TransferKind.REFUND):
            continue
        month, seller = f"{each.at.astimezone(zone):%Y-%m}", short(each.counterparty)
        line = found.setdefault((month, seller), Spending(month, seller))
        if each.kind == TransferKind.PAYMENT:
            line.paid -= each.amount
        else:
            line.refunded += each.amount
    return sorted(found.values(), key=lambda line: (line.month, line.paid), reverse=True)


async def _download(visit: Visit) -> None:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(("time", "type", "counterparty", "amount_credits", "balance_credits", "agreement_id"))
    with complaining(visit):
        for each in (await visit.market().statement()).postings:
            amounts = (exact_credits(minor) for minor in (each.amount, each.balance))
            writer.writerow((each.at.isoformat(), each.kind, each.counterparty, *amounts, each.agreement_id))
        ui.download.content(text.getvalue(), "statement.csv", "text/csv")
