"""All requests of a user."""

from __future__ import annotations

from typing import Final

from nicegui import ui

from ramp.control.auction_story import AuctionStory
from ramp.control.events import RequestStanding
from ramp.model.instant import to_datetime
from ramp.web.pages import frame
from ramp.web.pages.numbers import amount
from ramp.web.pages.refreshing import Refresher
from ramp.web.pages.row_tables import Column, Kind, table
from ramp.web.pages.visit import Visit

ASKED_AGAIN_S: Final = 1.0
"""Minimum seconds between two queries to the agent."""


async def build(visit: Visit) -> None:
    """Fill the page."""
    frame.heading("Your requests")
    feed = visit.feed()
    with frame.card():
        search = ui.input("Search").props("dense clearable").style("width: 14rem")
        drawn = table(
            (
                Column("Request", lambda each: visit.short_id(each.request_id), link="/requests/"),
                Column("Name", lambda each: each.name),
                Column("Submitted", lambda each: to_datetime(each.started_at), Kind.TIME),
                Column("Units", lambda each: each.units, Kind.NUMBER),
                Column("Status", lambda each: visit.sentence(_stage_text(each, feed.story(each.request_id)))),
                Column("Paid (credits)", _paid, Kind.CREDITS, _cost_text),
            ),
            key=lambda each: each.request_id,
            empty="No requests yet.",
        )
        search.bind_value_to(drawn.drawn, "filter", forward=lambda text: text or None)

    async def look() -> None:
        drawn.show(reversed(await visit.market().requests()))

    Refresher(look, feed.changed, pause=ASKED_AGAIN_S)
    await look()


def _stage_text(standing: RequestStanding, story: AuctionStory | None) -> str:
    outcome = standing.outcome
    if outcome is None:
        return standing.stage if story is None else story.stage
    stage = outcome.status.replace("_", " ")
    return f"{stage}: {outcome.reason}" if outcome.reason else stage


def _paid(standing: RequestStanding) -> int | None:
    return standing.cost if standing.outcome is not None and standing.charged else None


def _cost_text(standing: RequestStanding) -> str:
    """Return the cost of a request after refunds, which are named; empty if nothing was paid."""
    if _paid(standing) is None:
        return ""
    back = f" ({amount(standing.returned)} returned)" if standing.returned else ""
    return amount(standing.cost) + back
