"""The frame of every page: navigation, the user, and signing out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from html import escape
from types import MappingProxyType
from typing import Final

from nicegui import ui
from nicegui.elements.mixins.text_element import TextElement

from ramp.client.swarm import status
from ramp.control.headline import Health, headline
from ramp.errors import RampError
from ramp.web.pages.visit import Visit
from ramp.web.security.sessions import Role

HEADLINE_S: Final = 2.0
"""Seconds between two checks of the market's state."""

STYLE: Final = """
:root { --ramp-quiet: #51606e; --ramp-ground: #f4f6f8; --ramp-card: #ffffff; --ramp-ink: #17222d; --ramp-line: #d7dee5;
  --ramp-good: #1b7a43; --ramp-bad: #b3261e; --ramp-wait: #8a5a00; --ramp-mark: #1d5f8a }
.body--dark { --ramp-quiet: #a9b6c2; --ramp-ground: #12171c; --ramp-card: #1c232b; --ramp-ink: #e7edf2;
  --ramp-line: #35414d; --ramp-good: #6fd398; --ramp-bad: #ff9d94; --ramp-wait: #f0c06a; --ramp-mark: #7fc1ea }
body, .body--dark { background: var(--ramp-ground) !important; color: var(--ramp-ink) }
.nicegui-content { max-width: 82rem; margin: 0 auto; padding: 1.2rem; gap: 1rem; width: 100% }
.ramp-card { background: var(--ramp-card); border: 1px solid var(--ramp-line); border-radius: 12px; width: 100%;
  padding: 1.1rem 1.3rem; box-shadow: none }
.ramp-quiet { color: var(--ramp-quiet) }
.ramp-good { color: var(--ramp-good) } .ramp-bad { color: var(--ramp-bad) } .ramp-wait { color: var(--ramp-wait) }
.ramp-number { font-variant-numeric: tabular-nums }
.ramp-header { background: #17405e !important; color: #fff; padding: .5rem 1.2rem; gap: .3rem 1rem; flex-wrap: wrap }
.ramp-header a { color: #fff; text-decoration: none; padding: .35rem .6rem; border-radius: 6px }
.ramp-header a[aria-current=page] { background: #ffffff2e; font-weight: 600 }
.ramp-header a:hover, .ramp-header button:hover { background: #ffffff22 }
.ramp-header button { color: #fff; background: none; border: 1px solid #ffffff88; border-radius: 6px; font: inherit;
  padding: .25rem .7rem; cursor: pointer; white-space: nowrap }
.ramp-brand { font-weight: 700; letter-spacing: .12em; font-size: 1.1rem }
a:focus-visible, button:focus-visible, [tabindex]:focus-visible { outline: 3px solid #e0902a !important;
  outline-offset: 2px }
h1 { font-size: 1.5rem; font-weight: 650; margin: 0; line-height: 1.3 }
h2 { font-size: 1.1rem; font-weight: 650; margin: 0 0 .4rem; line-height: 1.3 }
.q-table__card, .q-table { background: transparent !important; color: var(--ramp-ink) !important; box-shadow: none }
.q-table th { font-weight: 600; color: var(--ramp-quiet); white-space: normal }
.ramp-fields.ramp-wide { grid-template-columns: repeat(auto-fill, minmax(min(100%, 17rem), 1fr)) }
.ramp-tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(9.5rem, 46%), 1fr)); gap: .8rem;
  width: 100% }
.ramp-tile { background: var(--ramp-card); border: 1px solid var(--ramp-line); border-radius: 12px;
  padding: .8rem 1.1rem }
.ramp-tile-value { font-size: 1.45rem; font-weight: 650 }
.ramp-columns { display: grid; grid-template-columns: minmax(0, 1fr) 22rem; gap: 1rem; width: 100%;
  align-items: start }
.ramp-fields { width: 100%; display: grid; grid-template-columns: repeat(auto-fill, minmax(11.5rem, 1fr));
  gap: .2rem .9rem }
.ramp-facts { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .25rem 1.4rem; margin: 0 }
.ramp-facts dt { color: var(--ramp-quiet) } .ramp-facts dd { margin: 0; overflow-wrap: anywhere }
.ramp-output { overflow: auto; max-height: 24rem; padding: .8rem; border: 1px solid var(--ramp-line); margin: 0;
  border-radius: 8px; white-space: pre-wrap }
.body--dark .q-btn--outline, .body--dark .q-btn--flat { --q-primary: #7fc1ea }
.ramp-pick { color: var(--ramp-mark); background: none; border: 0; padding: 0; font: inherit; cursor: pointer;
  text-decoration: underline }
.ramp-marked td { background: color-mix(in srgb, var(--ramp-mark) 18%, transparent) }
.ramp-scrolled { overflow-x: auto; width: 100% }
.ramp-scrolled .q-table__container, .ramp-scrolled .q-table__middle { overflow: visible; max-width: none }
.ramp-compared td:first-child, .ramp-compared td:last-child { min-width: 15rem }
.q-field__label { color: var(--ramp-quiet) !important }
@media (max-width: 700px) { .ramp-header nav { order: 3; width: 100%; margin: 0 -.6rem } }
@media (max-width: 900px) { .ramp-columns { grid-template-columns: minmax(0, 1fr) } }
main a { color: var(--ramp-mark) }
"""


SIGNED_OUT: Final = """<script>
setInterval(() => {
  if (!window.socket || window.socket.connected) return;
  fetch('/', {method: 'HEAD', redirect: 'manual'}).then((r) => { if (r.type === 'opaqueredirect') location.reload() })
    .catch(() => {});
}, 2000);
</script>"""
"""Reloads a page whose session has ended elsewhere, so that it shows the page to sign in."""


def build_frame(visit: Visit, links: Mapping[str, str]) -> None:
    """Draw the header with links to pages, titles by their paths, and the state of the market."""
    ui.colors(primary="#1d5f8a", secondary="#51606e", accent="#e0902a", positive="#1b7a43", negative="#b3261e")
    ui.add_css(STYLE)
    ui.add_head_html(SIGNED_OUT)
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

    def look() -> None:
        text = headline_text(visit)
        line.set_text(text)
        line.set_visibility(bool(text))

    look()
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


def card() -> ui.element:
    """Draw a card; what is drawn within its context is in the card."""
    return ui.element("section").classes("ramp-card")


def tile(label: str, value: str, note: str) -> None:
    """Draw a number that is read at a glance, with its unit or source below."""
    with ui.element("div").classes("ramp-tile"):
        ui.label(label).classes("ramp-quiet")
        ui.label(value).classes("ramp-tile-value ramp-number")
        ui.label(note).classes("ramp-quiet ramp-number")


def draw_facts(
    visit: Visit, facts: Iterable[tuple[str, str | datetime]], links: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Draw terms with their values into the open `dl`.

    Args:
        visit: the open page.
        facts: terms and values.
        links: target of the value by its term.
    """
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
