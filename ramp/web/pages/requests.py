"""All requests of a user, as they stand."""

from __future__ import annotations

from nicegui import ui

from ramp.control.events import RequestStanding
from ramp.errors import RampError
from ramp.model.instant import to_datetime
from ramp.model.money import credits_text
from ramp.web.pages import frame
from ramp.web.pages.refreshing import Refresher
from ramp.web.pages.tables import Column, table
from ramp.web.pages.visit import Visit

COLUMNS = (
    Column("request", "Request"),
    Column("at", "Submitted"),
    Column("units", "Units", right=True),
    Column("stage", "How it stands"),
    Column("cost", "Paid (credits)", right=True),
)


async def build(visit: Visit) -> None:
    """Fill the page."""
    frame.heading("Your requests")
    feed = visit.feed()
    with frame.card():
        drawn = table(COLUMNS, [], "id", empty="Nothing has been asked for yet.")
        drawn.link("request", "/requests/")
    trouble = ui.label().props('role="alert"').classes("ramp-bad")

    async def look() -> None:
        try:
            listed = await visit.market().requests()
        except RampError as error:
            trouble.set_text(str(error))
            return
        trouble.set_text("")
        drawn.show([_row(visit, each) for each in reversed(listed)])

    refresher = Refresher(lambda: visit.soon(look()), 0.5)
    visit.until_gone(feed.listen(lambda _: refresher.changed()))
    await look()


def _row(visit: Visit, standing: RequestStanding) -> dict[str, object]:
    outcome = standing.outcome
    story = visit.feed().story(standing.request_id)
    stage = outcome.status.replace("_", " ") if outcome is not None else standing.stage
    if outcome is None and story is not None:
        stage = story.stage
    return {
        "id": standing.request_id,
        "request": visit.short_id(standing.request_id),
        "at": visit.moment(to_datetime(standing.started_at)),
        "units": standing.units,
        "stage": f"{stage}: {outcome.reason}" if outcome is not None and outcome.reason else stage,
        "cost": credits_text(outcome.cost) if outcome is not None and outcome.cost else "",
    }
