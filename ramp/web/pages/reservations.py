"""The reservations of a user, on a calendar and as a list."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from nicegui import ui

from ramp.client.results import Reservation
from ramp.model.instant import to_datetime
from ramp.runtime.clock import SystemClock
from ramp.web.pages import charts, frame
from ramp.web.pages.charts import Options, Taken, redraw_rows, row_chart
from ramp.web.pages.frame import Refresher, Visit
from ramp.web.pages.row_tables import Column, Kind, RowTable

LONGEST: Final = timedelta(days=7)
"""How far the chart reaches before and after the present at most."""

STATES: Final = {
    "upcoming": "#4e79a7",
    "running": "#59a14f",
    "past": "#8a97a3",
    "settling": "#b8860b",
    "cancelling": "#b8860b",
}
"""Colours of the states that the chart shows."""

ASKED_AGAIN_S: Final = 2.0
"""Minimum seconds between two queries to the agent."""


def standing(each: Reservation, now: datetime) -> str:
    """Return the state of a reservation; active ones are upcoming, running or past."""
    if each.state != "active":
        return each.state
    if now < each.start:
        return "upcoming"
    return "running" if now < each.end else "past"


async def build(visit: Visit) -> None:
    """Fill the page."""
    frame.heading("Your reservations")
    with frame.card("By machine") as calendar:
        label = "Reservations by machine over time, as in the table below"
        chart = charts.draw_chart({}, label, on_pick=lambda event: open_one(event.name))
    with frame.card("All reservations"):
        drawn = RowTable(
            (
                Column("Reservation", lambda each: each.reservation_id, link="/reservations/"),
                Column("Status", lambda each: standing(each, to_datetime(SystemClock().now()))),
                Column("Resource", lambda each: each.resource),
                Column("Start", lambda each: each.start, Kind.TIME),
                Column("End", lambda each: each.end, Kind.TIME),
                Column("Cores", lambda each: each.cores, Kind.NUMBER),
                Column("Cost (credits)", lambda each: each.cost, Kind.CREDITS),
            ),
            key=lambda each: each.agreement_id,
            empty="No reservations yet.",
        )

    ids: dict[str, str] = {}

    def open_one(named: str) -> None:
        if (agreement_id := ids.get(named.partition(" ")[2])) is not None:
            ui.navigate.to(f"/reservations/{agreement_id}")

    async def look() -> None:
        found = await visit.market().reservations(everything=True)
        now = to_datetime(SystemClock().now())
        drawn.show(reversed(found))
        redraw_rows(chart, _chart_of(found, now))
        calendar.set_visibility(bool(found))
        ids.update({each.reservation_id: each.agreement_id for each in found})

    Refresher(look, visit.feed().ended, pause=ASKED_AGAIN_S, every=60.0)  # slots begin and end
    await look()


def _chart_of(found: Sequence[Reservation], now: datetime) -> Options:
    rows: dict[str, list[Taken]] = {}
    for each in found:
        state = standing(each, now)
        if state in STATES:
            taken = Taken(each.reservation_id, state, each.cores, each.start, each.end)
            rows.setdefault(each.resource, []).append(taken)
    return row_chart(dict(sorted(rows.items())), now, LONGEST, STATES)
