"""The web server: all pages by their paths, and NiceGUI behind the gate, on one socket."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from inspect import isawaitable
from pathlib import Path
from typing import Any, Final

import uvicorn
from fastapi import FastAPI
from nicegui import app as nicegui_app
from nicegui import core, ui
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from ramp.errors import RampError
from ramp.model.seal import Role
from ramp.web.metrics import metrics_route, metrics_token
from ramp.web.pages import account, ask, frame, requests, reservation, reservations
from ramp.web.pages.frame import Builder, PageClosed, Visit
from ramp.web.pages.keeper import KeeperPage
from ramp.web.pages.laboratory import overview, results, trace
from ramp.web.pages.laboratory.results import files_route
from ramp.web.pages.machines import machine
from ramp.web.pages.machines.market import MarketPage, PricesPage
from ramp.web.security.address import ServedAddress, bound_socket
from ramp.web.security.gate import SESSION_KEY, Gate, OwnerOf
from ramp.web.security.sign_in import plain_page, routes
from ramp.web.site import Site

RECONNECT_S: Final = 10.0
"""Seconds that a page without a socket is kept."""

HISTORY: Final = 500
"""Updates kept for a page that reconnects; after more, it reloads."""

STOP_S: Final = 3
"""Seconds to wait for open requests at the end."""

ENDED_BY: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that stop the server: Ctrl-C, a service manager, a closed terminal."""

FOR_A_PAGE: Final = ("event", "javascript_response", "ack", "log")
"""Messages of NiceGUI that name the page that they are for; a socket has named its page before."""

Handler = Callable[..., Any]


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


def application(site: Site, address: ServedAddress, openid: Path | None = None) -> Gate:
    """Return the pages behind their gate as an ASGI application; call it once per process."""
    sessions, provider = site.sessions, None
    if openid is not None:
        from ramp.web.security.openid import openid_routes, read_openid  # what it needs is slow to load

        provider = openid_routes(*read_openid(openid), sessions, address)

    async def healthy(_: Request) -> PlainTextResponse:
        return PlainTextResponse("ok\n")

    metrics = metrics_route(metrics_token(site.state.metrics_token), site.levels, site.counted)
    plain = [Route("/healthz", healthy, methods=["GET"]), metrics, files_route(site.results)]
    app = FastAPI(openapi_url=None)
    gate = Gate(app, sessions, address, site.owners.get)
    app.router.routes += [*routes(sessions, address, gate, provider), *plain]
    register_pages(site)
    nicegui_app.on_shutdown(site.end)
    core.app.config.socket_io_js_transports = ["websocket"]
    # the loading bar has no name for screen readers and no use here
    core.app.config.quasar_config["loadingBar"]["skipHijack"] = True
    ui.run_with(
        app,
        title="RAMP",
        dark=None,
        language="en-US",
        reconnect_timeout=RECONNECT_S,
        message_history_length=HISTORY,
        show_welcome_message=False,
        tailwind=False,  # a browser would load 68 kB for classes that no page uses
    )
    core.app.exception_handler(404)(_missing)
    keep_to_own_pages(site.owners.get)
    return gate


def serve(site: Site, address: ServedAddress, openid: Path | None, ready: Callable[[], None]) -> None:
    """Serve the pages until SIGINT, SIGTERM or SIGHUP; `openid` is the file of a provider of OpenID Connect.

    Raises:
        ConfigurationError: if the address cannot be served.
    """
    listening = bound_socket(address)
    config = uvicorn.Config(
        application(site, address, openid),
        log_config=None,
        access_log=False,  # it would contain login links
        server_header=False,
        date_header=False,
        lifespan="on",
        timeout_graceful_shutdown=STOP_S,
        ws_max_size=4 << 20,
        ssl_certfile=None if address.certificate is None else str(address.certificate),
        ssl_keyfile=None if address.key is None else str(address.key),
    )
    server = uvicorn.Server(config)
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)

    async def run() -> None:
        loop = asyncio.get_running_loop()
        for number in ENDED_BY:
            if signal.getsignal(number) is not signal.SIG_IGN:  # `nohup` ignores that the terminal is closed
                loop.add_signal_handler(number, setattr, server, "should_exit", True)
        # `Server.serve` would set the signals' handlers itself, and raise the signal once more at the end
        serving = asyncio.create_task(server._serve(sockets=[listening]))  # noqa: SLF001
        while not server.started and not serving.done():
            await asyncio.sleep(0.02)
        if not serving.done():
            ready()
        await serving

    try:
        asyncio.run(run())
    finally:
        listening.close()


async def _missing(_request: Request, _error: Exception) -> Response:
    return plain_page("Page not found", '<p>There is no such page here. <a href="/">To the market</a></p>', 404)


def keep_to_own_pages(owner_of: OwnerOf) -> None:
    """Drop messages for pages of another session: NiceGUI takes a page's id for the right to speak for it."""
    handlers: dict[str, Handler] = core.sio.handlers["/"]
    for name in ("handshake", *FOR_A_PAGE):
        core.sio.on(name, _checked(handlers[name], owner_of))


def _checked(handler: Handler, owner_of: OwnerOf) -> Callable[[str, object], Awaitable[object]]:
    async def checked(sid: str, message: object) -> object:
        page = message.get("client_id") if isinstance(message, dict) else None
        if not isinstance(page, str):
            return False
        environment = core.sio.get_environ(sid)  # None for a socket that is just gone
        session = None if environment is None else environment["asgi.scope"].get(SESSION_KEY)
        if session is None or owner_of(page) != session.key:
            return False
        answer = handler(sid, message)
        return await answer if isawaitable(answer) else answer

    return checked
