"""The reservations of a user, on a calendar and as a list."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from nicegui import ui

from ramp.client.results import Reservation
from ramp.model.instant import to_datetime
from ramp.runtime.clock import SystemClock
from ramp.web.pages import frame
from ramp.web.pages.refreshing import Refresher
from ramp.web.pages.row_tables import Column, Kind, table
from ramp.web.pages.visit import Visit

CALENDAR_DAYS: Final = 7
"""Days that the calendar shows, today the first."""

DAY_SLOTS_MAX: Final = 12
"""Maximum number of slots of a day in the calendar; the list has all."""

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
    with frame.card():
        frame.subheading(f"The next {CALENDAR_DAYS} days")
        calendar = ui.element("div").classes("ramp-calendar")
    with frame.card():
        frame.subheading("All reservations")
        drawn = table(
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

    async def look() -> None:
        found = await visit.market().reservations(everything=True)
        now = to_datetime(SystemClock().now())
        drawn.show(reversed(found))
        calendar.clear()
        with calendar:
            _draw_calendar(visit, found, now)

    refresher = Refresher(look, ASKED_AGAIN_S)
    visit.until_gone(visit.feed().listen_to_ends(refresher.changed))
    ui.timer(60.0, refresher.changed)  # slots begin and end
    await look()


def _draw_calendar(visit: Visit, found: Sequence[Reservation], now: datetime) -> None:
    today = now.astimezone(visit.zone).replace(hour=0, minute=0, second=0, microsecond=0)
    for ahead in range(CALENDAR_DAYS):
        day = today + timedelta(days=ahead)
        tomorrow = day + timedelta(days=1)
        with ui.element("div").classes("ramp-day"):
            ui.label(f"{day:%a %d %b}").classes("text-weight-medium")
            meant = [
                each
                for each in found
                if each.start < tomorrow and each.end > day and each.state in ("settling", "active", "cancelling")
            ]
            meant.sort(key=lambda each: (each.end <= now, each.start))  # upcoming slots are drawn first
            for each in meant[:DAY_SLOTS_MAX]:
                start, end = max(each.start.astimezone(visit.zone), day), min(each.end.astimezone(visit.zone), tomorrow)
                until = "24:00" if end == tomorrow else f"{end:%H:%M}"
                with ui.link(target=f"/reservations/{each.agreement_id}").classes("ramp-slot"):
                    ui.label(f"{start:%H:%M} to {until}").classes("ramp-number")
                    ui.label(f"{each.resource}, {each.cores} cores")
            if len(meant) > DAY_SLOTS_MAX:
                ui.label(f"and {len(meant) - DAY_SLOTS_MAX} more, in the list below").classes("ramp-quiet")
            if not meant:
                ui.label("free").classes("ramp-quiet")
