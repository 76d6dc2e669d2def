"""One open page: who looks at it, in which market, and what the browser has said of itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from nicegui import ui
from starlette.requests import Request

from ramp.client.asyncio_market import AsyncMarket
from ramp.web.security.sessions import Session
from ramp.web.site import Site

BROWSER_LIMIT_S: Final = 20.0
"""How long a browser may take to connect, in seconds; after that nobody looks."""

_ASK_BROWSER: Final = (
    "return [matchMedia('(prefers-color-scheme: dark)').matches, Intl.DateTimeFormat().resolvedOptions().timeZone]"
)


@dataclass(slots=True)
class Visit:
    """One open page.

    Attributes:
        site: what all pages share.
        session: who looks.
        request: what was asked for.
        dark: whether the browser shows dark pages.
        zone: the browser's time zone, as far as this computer knows it; else UTC.
    """

    site: Site
    session: Session
    request: Request
    dark: bool = False
    zone: ZoneInfo = field(default_factory=lambda: ZoneInfo("UTC"))

    def market(self) -> AsyncMarket:
        """The market as the user who looks; see `Site.market_of`."""
        return self.site.market_of(self.session)

    async def ask_browser(self) -> bool:
        """Ask the browser for its scheme and time zone; returns False where nobody looks any more."""
        try:
            await ui.context.client.connected(BROWSER_LIMIT_S)
            answer = await ui.run_javascript(_ASK_BROWSER, timeout=BROWSER_LIMIT_S)
        except TimeoutError:
            return False
        match answer:
            case [bool(dark), str(zone)]:
                self.dark = dark
                self.zone = _zone_of(zone)
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
