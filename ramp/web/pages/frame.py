"""What every page has: its visit, the frame with navigation and signing out, elements, redrawing, written numbers."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from nicegui import Client, run, ui
from nicegui.elements.mixins.text_element import TextElement
from starlette.requests import Request

from ramp.client.access import find_market, status
from ramp.client.asyncio_market import AsyncMarket
from ramp.control.status import Health, headline
from ramp.errors import RampError
from ramp.model import money
from ramp.model.instant import MINUTE, to_datetime, with_local_times
from ramp.model.seal import Role
from ramp.web.live import Changes, UserFeed
from ramp.web.security.sessions import Session
from ramp.web.site import Site

BROWSER_LIMIT_S: Final = 20.0
"""Seconds that a browser may take to connect."""

WIDTH_PX: Final = 1280
"""Width of a browser that does not report one."""


@dataclass(slots=True)
class Visit:
    """One open page.

    Attributes:
        client: the page, as NiceGUI knows it.
        dark: whether the browser shows dark pages.
        zone: the browser's time zone; UTC if this computer does not know it.
        width_px: of the browser's window when the page was opened.
        webgl: whether the browser draws in three dimensions.
    """

    site: Site
    session: Session
    request: Request
    client: Client
    dark: bool = False
    zone: ZoneInfo = field(default_factory=lambda: ZoneInfo("UTC"))
    width_px: int = WIDTH_PX
    webgl: bool = True

    def market(self) -> AsyncMarket:
        """Return the market for actions of the signed-in user, signed by that user's agent.

        Raises:
            NoMarket: if none is running.
            ConfigurationError: if the user has left the market.
        """
        assert self.session.role is Role.USER, "the keeper buys nothing"
        return AsyncMarket(find_market(self.site.state, self.session.name))

    def looking_market(self) -> AsyncMarket:
        """Return the market for information that all its members may see; the keeper reads it as any user."""
        if self.session.role is Role.USER:
            return self.market()
        return AsyncMarket(find_market(self.site.state, None))

    def feed(self) -> UserFeed:
        """Return the events of the signed-in user's requests."""
        return self.site.feed_of(self.session.name)

    @staticmethod
    def short_id(identifier: str) -> str:
        """Return the short form of an id, which the command line also accepts."""
        return identifier[: identifier.find("-") + 9]

    async def ask_browser(self) -> bool:
        """Ask the browser for its scheme, time zone and width; returns False if the page is closed."""
        try:
            await ui.context.client.connected(BROWSER_LIMIT_S)
            answer = await ui.run_javascript("return ramp.browser()", timeout=BROWSER_LIMIT_S)
        except TimeoutError:
            return False
        match answer:
            case [bool(dark), str(zone), int(width), bool(webgl)]:
                self.dark = dark
                self.zone = _zone_of(zone)
                self.width_px = width
                self.webgl = webgl
        return True

    def moment(self, moment: datetime) -> str:
        """Write a time in the browser's zone, which the page names once; tables write theirs in the same way."""
        local = moment.astimezone(self.zone)
        year = "" if local.year == datetime.now(self.zone).year else f" {local.year}"
        return local.strftime(f"%a %d %b{year} %H:%M")

    def sentence(self, text: str, *, up: bool = False) -> str:
        """Write the times in a text of another party as `moment` does; `up` rounds up to minutes, for limits."""
        later = MINUTE - 1 if up else 0
        return with_local_times(text, lambda at: self.moment(to_datetime(at + later)))

    @property
    def zone_text(self) -> str:
        """Name the zone of the page's times: `Europe/Berlin, UTC+0100`."""
        return "UTC" if self.zone.key == "UTC" else f"{self.zone.key}, UTC{datetime.now(self.zone):%z}"


Builder = Callable[[Visit], Awaitable[None]]
"""Function that fills a page."""


def _zone_of(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return ZoneInfo("UTC")


HEADLINE_S: Final = 2.0
"""Seconds between two checks of the market's state."""

STYLE: Final = Path(__file__).with_name("pages.css").read_text("utf-8")
SCRIPT: Final = Path(__file__).with_name("pages.js").read_text("utf-8")


def build_frame(visit: Visit, links: Mapping[str, str]) -> None:
    """Draw the header with links to pages, titles by their paths, and the state of the market."""
    ui.colors(primary="#1d5f8a", secondary="#51606e", accent="#e0902a", positive="#1b7a43", negative="#b3261e")
    ui.add_css(STYLE)
    ui.add_head_html(f"<script>{SCRIPT}</script>")
    here = visit.request.url.path
    with ui.header().classes("ramp-header items-center"):
        ui.label("RAMP").classes("ramp-brand q-mr-md")
        with ui.element("nav").props('aria-label="Pages"').classes("row items-center"):
            for path, title in links.items():
                link = ui.link(title, path)
                if here == path or (path != "/" and here.startswith(path)):
                    link.props('aria-current="page"')
        who = visit.session.name + (" (keeper)" if visit.session.role is Role.KEEPER else "")
        ui.html(
            f'<form method="post" action="/logout"><span class="q-mr-sm">{escape(who)}</span>'
            '<button type="submit">Sign out</button></form>',
            sanitize=False,
        ).style("margin-left: auto")
    _build_headline(visit)


def _build_headline(visit: Visit) -> None:
    line = ui.label().props('role="status"').classes("ramp-wait full-width")
    line.set_visibility(False)

    async def look() -> None:
        text = await run.io_bound(headline_text, visit)  # a supervisor that hangs does not hold up other pages
        line.set_text(text or "")
        line.set_visibility(bool(text))

    ui.timer(HEADLINE_S, look)


def headline_text(visit: Visit) -> str:
    """Describe what is wrong with the market; empty if nothing is."""
    try:
        found = status(visit.site.state)
    except RampError as error:
        return str(error)
    if found is None:
        return "No market is running. Start one with `ramp up`; these pages then continue."
    told = headline(found)
    return "" if told.health is Health.UP else told.sentence


def heading(text: str) -> None:
    """Draw the heading of a page."""
    ui.html(f"<h1>{escape(text)}</h1>", sanitize=False)


def subheading(text: str) -> None:
    """Draw the heading of a card."""
    ui.html(f"<h2>{escape(text)}</h2>", sanitize=False)


def card(title: str = "") -> ui.element:
    """Draw a card, with its heading if there is one; what is drawn within its context is in the card."""
    drawn = ui.element("section").classes("ramp-card")
    if title:
        with drawn:
            subheading(title)
    return drawn


def tile(label: str, value: str, note: str) -> None:
    """Draw a number that is read at a glance, with its unit or source below."""
    with ui.element("div").classes("ramp-tile"):
        ui.label(label).classes("ramp-quiet")
        ui.label(value).classes("ramp-tile-value ramp-number")
        ui.label(note).classes("ramp-quiet ramp-number")


def draw_facts(
    visit: Visit,
    place: ui.element,
    facts: Iterable[tuple[str, str | datetime]],
    links: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Draw terms with their values anew into a `dl`; `links` has the target of a value by its term."""
    place.clear()
    for term, value in facts:
        with place, ui.element("dt"):
            ui.label(term)
        with place, ui.element("dd"):
            if isinstance(value, datetime):
                drawn = TextElement(tag="time", text=visit.moment(value)).classes("ramp-number")
                drawn.props["title"] = f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
            elif term in links:
                ui.link(value, links[term])
            else:
                ui.label(value)


def waiting(text: str) -> ui.label:
    """Show what the page waits for; the caller deletes it."""
    return ui.label(text).props('role="status"').classes("ramp-quiet")


def problem(visit: Visit, error: Exception) -> None:
    """Show an error on the page."""
    ui.label(visit.sentence(str(error))).props('role="alert"').classes("ramp-bad").style("white-space: pre-line")


SPACE: Final = "\u202f"
"""Narrow no-break space between thousands, as the tables' columns write them."""


def whole(number: int) -> str:
    """Write a whole number: `1 234`."""
    return money.grouped(number).replace(" ", SPACE)


def amount(minor_units: int) -> str:
    """Write an amount in credits with two decimals: `-1 234.50`."""
    return money.credits_text(minor_units).replace(" ", SPACE)


def credits_named(minor_units: int) -> str:
    """Write an amount with its unit: `1 234.50 credits`."""
    return f"{amount(minor_units)} credits"


def signed(minor_units: int) -> str:
    """Write an amount with its sign: `+1 234.50`."""
    return f"{'+' if minor_units > 0 else ''}{amount(minor_units)}"


PAUSE_S: Final = 0.05
"""Changes within this many seconds are drawn together; a page shows an event within 200 ms."""

BEHIND_S: Final = 6.0
"""A browser acknowledges updates every 3 s; one that is this many seconds late gets no updates until it does, since
they would only fill memory."""

LOOK_AGAIN_S: Final = 0.5
"""Seconds before such a browser is checked again."""


class PageClosed(Exception):
    """The page was closed while it was built."""


class Refresher:
    """Redraws a part of the current page after changes, one drawing at a time, until the page is closed.

    Args:
        draw: draws that part, possibly after a query; changes during this lead to another drawing.
        changes: after which it is drawn; None for none.
        about: the request whose changes matter, beside changes of no request; None for every change.
        pause: seconds between two drawings.
        every: seconds after which the part is drawn again in any case; 0 for never.

    Raises:
        PageClosed: if the page is closed already.
    """

    def __init__(
        self,
        draw: Callable[[], Awaitable[None] | None],
        changes: Changes | None = None,
        *,
        about: str | None = None,
        pause: float = PAUSE_S,
        every: float = 0,
    ) -> None:
        self._draw = draw
        self._about = about
        self._pause = pause
        self._client: Client = ui.context.client
        if self._client.is_deleted:
            raise PageClosed
        self._changed = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._run())
        self._client.on_delete(self._task.cancel)
        if changes is not None:
            changes.subscribe(self.changed, expect_args=True)
        if every:
            ui.timer(every, self.changed, immediate=False)

    def changed(self, which: str = "") -> None:
        """Take a change of a request, or with "" of something else."""
        if self._about is None or which in ("", self._about):
            self._changed.set()

    async def _run(self) -> None:
        while not self._client.is_deleted:
            await self._changed.wait()
            await asyncio.sleep(self._pause)
            while is_behind(self._client):
                await asyncio.sleep(LOOK_AGAIN_S)
            self._changed.clear()
            try:
                with self._client:
                    drawn = self._draw()
                    if drawn is not None:
                        await drawn
            except RampError as error:
                logging.getLogger(__name__).info("cannot redraw a page: %s", error)
            except Exception:
                logging.getLogger(__name__).exception("drawing a page")


def is_behind(client: Client) -> bool:
    """Whether a browser has not acknowledged updates sent `BEHIND_S` ago."""
    sent = client.outbox.message_history
    return bool(sent) and sent[0][1] < time.time() - BEHIND_S
