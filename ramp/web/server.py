"""The web server: NiceGUI behind the gate, on one socket."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable
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

from ramp.web.metrics import metrics_route, metrics_token
from ramp.web.pages.laboratory.results import files_route
from ramp.web.pages.register import register_pages
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
