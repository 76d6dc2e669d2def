"""All requests of a user."""

from __future__ import annotations

from nicegui import ui

from ramp.control.events import RequestStanding
from ramp.errors import RampError
from ramp.model.instant import to_datetime
from ramp.model.money import credits_text
from ramp.web.live.story import AuctionStory
from ramp.web.pages import frame
from ramp.web.pages.refreshing import Refresher
from ramp.web.pages.row_tables import Column, table
from ramp.web.pages.visit import Visit


async def build(visit: Visit) -> None:
    """Fill the page."""
    frame.heading("Your requests")
    feed = visit.feed()
    with frame.card():
        drawn = table(
            (
                Column("Request", lambda each: visit.short_id(each.request_id), link="/requests/"),
                Column("Submitted", lambda each: visit.moment(to_datetime(each.started_at))),
                Column("Units", lambda each: each.units, right=True),
                Column("Status", lambda each: _stage_text(each, feed.story(each.request_id))),
                Column("Paid (credits)", _cost_text, right=True),
            ),
            key=lambda each: each.request_id,
            empty="No requests yet.",
        )
        older = ui.button("Show older requests").props("flat no-caps")
    trouble = ui.label().props('role="alert"').classes("ramp-bad")
    earlier: list[RequestStanding] = []

    async def ask() -> list[RequestStanding]:
        """Return the agent's list, the latest first; show an error if it does not answer."""
        try:
            listed = await visit.market().requests()
        except RampError as error:
            trouble.set_text(str(error))
            return []
        trouble.set_text("")
        feed.standings.listed(listed)
        return list(reversed(listed))

    def show(latest: list[RequestStanding]) -> None:
        kept = {each.request_id for each in latest}
        drawn.show((*latest, *(each for each in earlier if each.request_id not in kept)))
        older.set_visibility(feed.standings.more and not earlier)

    async def look() -> None:
        """Query the agent only after refunds or while the feed is not connected, to spare it work."""
        if feed.is_heard and not feed.standings.stale:
            trouble.set_text("")
            show(feed.standings.latest())
        else:
            show(await ask())

    async def show_older() -> None:
        earlier[:] = await ask()
        await look()

    older.on_click(show_older)
    refresher = Refresher(visit.one_at_a_time(look), 0.5)
    visit.until_gone(feed.listen(lambda _: refresher.changed()))
    await look()


def _stage_text(standing: RequestStanding, story: AuctionStory | None) -> str:
    outcome = standing.outcome
    if outcome is None:
        return standing.stage if story is None else story.stage
    stage = outcome.status.replace("_", " ")
    return f"{stage}: {outcome.reason}" if outcome.reason else stage


def _cost_text(standing: RequestStanding) -> str:
    """Return the cost of a request after refunds, which are named; empty if nothing was paid."""
    if standing.outcome is None or not standing.charged:
        return ""
    back = f" ({credits_text(standing.returned)} returned)" if standing.returned else ""
    return credits_text(standing.cost) + back
