"""The paths of all pages, and their common setup and error handling."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from nicegui import ui
from starlette.requests import Request

from ramp.errors import RampError
from ramp.model.seal import Role
from ramp.web.pages import account, ask, frame, requests, reservation, reservations
from ramp.web.pages.frame import Builder, PageClosed, Visit
from ramp.web.pages.keeper import KeeperPage
from ramp.web.pages.laboratory import overview, results, trace
from ramp.web.pages.machines import machine
from ramp.web.pages.machines.market import MarketPage, PricesPage
from ramp.web.security.gate import SESSION_KEY
from ramp.web.site import Site


@dataclass(frozen=True, slots=True)
class Page:
    """A page: its path, title, role (None: all roles) and builder."""

    path: str
    title: str
    role: Role | None
    build: Builder


async def _home(visit: Visit) -> None:
    await (KeeperPage if visit.session.role is Role.KEEPER else MarketPage)(visit).build()


PAGES: Final = (
    Page("/", "Market", None, _home),
    Page("/machines/{name}", "Machine", None, machine.build),
    Page("/prices", "Prices", Role.USER, lambda visit: PricesPage(visit).build()),
    Page("/ask", "New request", Role.USER, ask.build),
    Page("/requests", "Requests", Role.USER, requests.build_all),
    Page("/requests/{request_id}", "Request", Role.USER, requests.build_one),
    Page("/reservations", "Reservations", Role.USER, reservations.build),
    Page("/reservations/{agreement_id}", "Reservation", Role.USER, reservation.build),
    Page("/account", "Account", Role.USER, account.build),
    Page("/laboratory", "Laboratory", None, overview.build),
    Page("/laboratory/{experiment}", "Experiment", None, results.build),
    Page("/laboratory/traces/{trace}", "Trace", None, trace.build),
)


def register_pages(site: Site) -> None:
    """Register the pages with NiceGUI; call it once per process."""
    for page in PAGES:
        ui.page(page.path, title=f"{page.title} - RAMP", dark=None, language="en-US")(_shown(site, page))


def _shown(site: Site, page: Page) -> Callable[[Request], Awaitable[None]]:
    async def show(request: Request) -> None:
        session = request.scope[SESSION_KEY]
        client = ui.context.client
        site.owners[client.id] = session.key
        client.on_delete(lambda: site.owners.pop(client.id, None))
        visit = Visit(site, session, request, client)
        pages = [each for each in PAGES if each.role in (None, session.role) and "{" not in each.path]
        frame.build_frame(visit, {each.path: each.title for each in pages})
        with ui.element("div").classes("column full-width").style("gap: 1rem"):  # in NiceGUI's `main`
            if page.role not in (None, session.role):
                ui.label(f"This page is for the {page.role} only.")
                return
            if not await visit.ask_browser():
                return
            try:
                await page.build(visit)
                ui.label(f"Times: {visit.zone_text}").classes("ramp-quiet text-caption")
            except PageClosed:
                return
            except Exception as error:
                if client.is_deleted:  # a closed page cannot be filled
                    logging.getLogger(__name__).info("the page %s was closed: %s", page.path, error)
                elif isinstance(error, RampError):
                    frame.problem(visit, error)
                else:
                    logging.getLogger(__name__).exception("the page %s", page.path)
                    frame.problem(visit, RuntimeError("Internal error; see the log of `ramp web`."))

    return show
