"""The frame of every page: navigation, the user, and signing out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import Final

from nicegui import run, ui
from nicegui.elements.mixins.text_element import TextElement

from ramp.client.swarm import status
from ramp.control.status import Health, headline
from ramp.errors import RampError
from ramp.model.seal import Role
from ramp.web.pages.visit import Visit

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
    visit: Visit, facts: Iterable[tuple[str, str | datetime]], links: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Draw terms with their values into the open `dl`; `links` has the target of a value by its term."""
    for term, value in facts:
        with ui.element("dt"):
            ui.label(term)
        with ui.element("dd"):
            if isinstance(value, datetime):
                draw_time(visit, value)
            elif term in links:
                ui.link(value, links[term])
            else:
                ui.label(value)


def draw_time(visit: Visit, moment: datetime) -> None:
    """Draw a time in the page's zone; its tooltip has UTC and seconds."""
    drawn = TextElement(tag="time", text=visit.moment(moment)).classes("ramp-number")
    drawn.props["title"] = f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def waiting(text: str) -> ui.label:
    """Show what the page waits for; the caller deletes it."""
    return ui.label(text).props('role="status"').classes("ramp-quiet")


def problem(visit: Visit, error: Exception) -> None:
    """Show an error on the page."""
    ui.label(visit.sentence(str(error))).props('role="alert"').classes("ramp-bad").style("white-space: pre-line")
