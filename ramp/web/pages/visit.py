"""An open page: its session, its market, and properties of the browser."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from nicegui import Client, ui
from starlette.requests import Request

from ramp.client.access import find_market
from ramp.client.asyncio_market import AsyncMarket
from ramp.model.instant import MINUTE, to_datetime, with_local_times
from ramp.model.seal import Role
from ramp.web.live import UserFeed
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
