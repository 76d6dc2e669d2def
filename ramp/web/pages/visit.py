"""One open page: who looks at it, in which market, and what the browser has said of itself."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from nicegui import Client, ui
from starlette.requests import Request

from ramp.client.asyncio_market import AsyncMarket
from ramp.errors import RampError
from ramp.web.live.feed import UserFeed
from ramp.web.security.sessions import Session
from ramp.web.site import Site

BROWSER_LIMIT_S: Final = 20.0
"""How long a browser may take to connect, in seconds; after that nobody looks."""

_ASK_BROWSER: Final = (
    "return [matchMedia('(prefers-color-scheme: dark)').matches, Intl.DateTimeFormat().resolvedOptions().timeZone,"
    " innerWidth]"
)

WIDTH_PX: Final = 1280
"""Of a browser that does not say how wide it is."""


class PageClosed(Exception):
    """A page was closed while it was being built."""


@dataclass(slots=True)
class Visit:
    """One open page.

    Attributes:
        site: what all pages share.
        session: who looks.
        request: what was asked for.
        client: the page, as NiceGUI knows it.
        dark: whether the browser shows dark pages.
        zone: the browser's time zone, as far as this computer knows it; else UTC.
        width_px: of the browser's window when the page was opened.
        tasks: what is being done for the page.
    """

    site: Site
    session: Session
    request: Request
    client: Client
    dark: bool = False
    zone: ZoneInfo = field(default_factory=lambda: ZoneInfo("UTC"))
    width_px: int = WIDTH_PX
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def market(self) -> AsyncMarket:
        """The market as the user who looks; see `Site.market_of`."""
        return self.site.market_of(self.session)

    def looking_market(self) -> AsyncMarket:
        """The market for what everybody in it may see; see `Site.looking_market`."""
        return self.site.looking_market(self.session)

    def feed(self) -> UserFeed:
        """What goes on with the requests of the user who looks."""
        return self.site.feeds.of(self.session.name, self.market)

    def until_gone(self, ends: Callable[[], None]) -> None:
        """Call something once nobody looks at the page any more.

        Raises:
            PageClosed: if nobody does any more: whoever builds a page asks others before, and people do not wait.
        """
        if self.client.is_deleted:
            ends()
            raise PageClosed
        self.client.on_delete(ends)

    def soon(self, work: Coroutine[None, None, None]) -> None:
        """Do something for the page as long as somebody looks at it."""
        task: asyncio.Task[None] = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self._done)

    def one_at_a_time(self, look: Callable[[], Coroutine[None, None, None]]) -> Callable[[], None]:
        """What does something for the page, and never twice at a time, however slow those are who are asked.

        Args:
            look: what is done; where that is wanted meanwhile, it is done once more afterwards.
        """
        going = again = False

        async def go_on() -> None:
            nonlocal going, again
            try:
                while again:
                    again = False
                    await look()
            finally:
                going = False

        def begin() -> None:
            nonlocal going, again
            again = True
            if not going:
                going = True
                self.soon(go_on())

        return begin

    def end(self) -> None:
        """Nobody looks any more."""
        for task in list(self.tasks):
            task.cancel()

    def _done(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, RampError):
            logging.getLogger(__name__).info("cannot redraw a page: %s", error)
        elif error is not None:
            logging.getLogger(__name__).error("a page", exc_info=error)

    @staticmethod
    def short_id(identifier: str) -> str:
        """An id as short as people tell them apart; the command line takes it as well."""
        return identifier[: identifier.find("-") + 9]

    async def ask_browser(self) -> bool:
        """Ask the browser for its scheme, time zone and width; returns False where nobody looks any more."""
        try:
            await ui.context.client.connected(BROWSER_LIMIT_S)
            answer = await ui.run_javascript(_ASK_BROWSER, timeout=BROWSER_LIMIT_S)
        except TimeoutError:
            return False
        match answer:
            case [bool(dark), str(zone), int(width)]:
                self.dark = dark
                self.zone = _zone_of(zone)
                self.width_px = width
        return True

    def moment(self, moment: datetime) -> str:
        """A moment for people: local, and what it is in UTC where that is not the same."""
        local = moment.astimezone(self.zone)
        text = local.strftime("%a %d %b %H:%M")
        if local.utcoffset():
            text += f" ({moment.astimezone(UTC):%H:%M} UTC)"
        else:
            text += " UTC"
        return text


Builder = Callable[[Visit], Awaitable[None]]
"""Fills a page."""


def _zone_of(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return ZoneInfo("UTC")
