"""The gate checks every request before any page.

It refuses requests to another host name (DNS rebinding), changes and sockets from pages of another origin (OWASP,
Cross-Site Request Forgery Prevention and WebSocket Security cheat sheets), requests without a session, and requests for
pages of another session. It closes the sockets of a session with it, and sets headers that keep pages out of frames.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ramp.model.instant import SECOND
from ramp.runtime.clock import SystemClock
from ramp.web.security.address import ServedAddress
from ramp.web.security.sessions import Session, Sessions

SESSION_KEY: Final = "ramp.session"
"""Key of the session in an ASGI scope."""

OPENID_PATH: Final = "/login/openid"
"""Path of the pages that lead to a provider of OpenID Connect and back."""

OPEN_PATHS: Final = frozenset({"/login", f"{OPENID_PATH}/begin", f"{OPENID_PATH}/callback", "/healthz", "/metrics"})
"""Paths that need no session; `/metrics` requires its own token."""

SAFE_METHODS: Final = frozenset({"GET", "HEAD"})

POLICY: Final = (
    # NiceGUI's pages begin with a script of their own and compile templates; nothing comes from elsewhere
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; worker-src 'self' blob:; "
    "object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
)

HEADERS: Final = {
    "x-frame-options": "DENY",
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}

ENDED: Final = 4401
"""WebSocket close code of a session that has ended (4000 to 4999 are for applications, RFC 6455, 7.4.2)."""

CLIENT_PREFIX: Final = "/_nicegui/client/"
"""Prefix of NiceGUI's paths of one open page, such as uploads."""

OwnerOf = Callable[[str], str | None]
"""Returns the key of an open page's session by the page's id, or None."""


class Gate:
    """An ASGI application that checks requests and passes them on to another, the pages."""

    def __init__(self, app: ASGIApp, sessions: Sessions, address: ServedAddress, owner_of: OwnerOf) -> None:
        self._app = app
        self._sessions = sessions
        self._address = address
        self._owner_of = owner_of
        self._sockets: defaultdict[str, set[asyncio.Event]] = defaultdict(set)
        self._log = logging.getLogger(__name__)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request and hand it to the pages (ASGI 3)."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        fault = self._fault(scope)
        if fault is not None:
            status, reason = fault
            self._log.warning("refused %s: %s", scope.get("path", ""), reason)
            await _refuse(scope, receive, send, status, reason)
            return
        session = self.session_of(scope)
        path = str(scope["path"])
        if scope["type"] == "websocket":
            if session is None or not self._is_own(session, scope):
                await _refuse(scope, receive, send, 403, "no session")
            else:
                await self._socket(session, scope, receive, send)
            return
        if path not in OPEN_PATHS:
            if session is None:
                await _ask_to_sign_in(scope, receive, send)
                return
            if not self._is_own(session, scope):
                await _refuse(scope, receive, send, 404, "no such page")
                return
        scope[SESSION_KEY] = session
        await self._request(scope, receive, _with_headers(send, kept=path.startswith("/_nicegui/")))

    def session_of(self, scope: Scope) -> Session | None:
        """Return the session of a request's cookie; None without one."""
        token = HTTPConnection(scope).cookies.get(self._address.cookie)
        return None if token is None else self._sessions.find(token)

    def end(self, session: Session) -> None:
        """End a session and every socket of its pages."""
        self._sessions.end(session.key)
        for ended in self._sockets.pop(session.key, set()):
            ended.set()

    def _fault(self, scope: Scope) -> tuple[int, str] | None:
        """Return status and reason if the origin or destination of a request is not allowed, else None."""
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._address.hosts:
            return 421, f"the host {', '.join(hosts)!r} is not served here; {self._address.url} is"
        origins = headers.getlist("origin")
        if any(origin.lower() not in self._address.origins for origin in origins):
            return 403, f"a page of {', '.join(origins)!r} may not ask this"
        changes = scope["type"] == "websocket" or scope["method"] not in SAFE_METHODS
        if changes and not origins:
            return 403, "no header Origin, which browsers send with every change"
        if "cross-site" in headers.getlist("sec-fetch-site") and "navigate" not in headers.getlist("sec-fetch-mode"):
            return 403, "a page of another site may not ask this"
        if any(goal in ("iframe", "frame", "embed", "object") for goal in headers.getlist("sec-fetch-dest")):
            return 403, "pages are not shown in frames"
        if b"transport=polling" in scope.get("query_string", b""):
            return 403, "only WebSockets are spoken here"
        return None

    def _is_own(self, session: Session, scope: Scope) -> bool:
        """Whether the open page of a request, if any, belongs to the session."""
        path = str(scope["path"])
        pages = HTTPConnection(scope).query_params.getlist("client_id") if scope["type"] == "websocket" else []
        if path.startswith(CLIENT_PREFIX):
            pages = [path.removeprefix(CLIENT_PREFIX).partition("/")[0]]
        return all(self._owner_of(page) in (session.key, None) for page in pages)

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request; ignore the error that follows when the browser disconnects."""
        gone = False

        async def received() -> Message:
            nonlocal gone
            message = await receive()
            gone = gone or message["type"] == "http.disconnect"
            return message

        try:
            await self._app(scope, received, send)
        except RuntimeError:  # Starlette's middleware: "No response returned."
            if not gone:
                raise

    async def _socket(self, session: Session, scope: Scope, receive: Receive, send: Send) -> None:
        ended = asyncio.Event()
        self._sockets[session.key].add(ended)
        left = max(session.ends_at - SystemClock().now(), 0) / SECOND
        timer = asyncio.get_running_loop().call_later(left, ended.set)
        end = asyncio.create_task(ended.wait())
        scope[SESSION_KEY] = session

        async def received() -> Message:
            if end.done():
                return {"type": "websocket.disconnect", "code": ENDED}
            message = asyncio.ensure_future(receive())
            await asyncio.wait({message, end}, return_when=asyncio.FIRST_COMPLETED)
            if message.done():
                return message.result()
            message.cancel()
            await send({"type": "websocket.close", "code": ENDED, "reason": "signed out"})
            return {"type": "websocket.disconnect", "code": ENDED}

        async def sent(message: Message) -> None:
            if not end.done():
                await send(message)

        try:
            await self._app(scope, received, sent)
        finally:
            timer.cancel()
            end.cancel()
            self._sockets[session.key].discard(ended)
            if not self._sockets[session.key]:
                del self._sockets[session.key]


def _with_headers(send: Send, *, kept: bool = False) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.update(HEADERS)
            if not kept:  # NiceGUI's own scripts may be kept, pages with balances may not
                headers["cache-control"] = "no-store"
        await send(message)

    return sent


async def _refuse(scope: Scope, receive: Receive, send: Send, status: int, reason: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": ""})  # before it is accepted: HTTP 403
    else:
        await PlainTextResponse(f"{reason}\n", status)(scope, receive, _with_headers(send))


async def _ask_to_sign_in(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["method"] in SAFE_METHODS and not str(scope["path"]).startswith("/_nicegui"):
        await RedirectResponse("/login", 303)(scope, receive, _with_headers(send))
    else:
        await _refuse(scope, receive, send, 401, "no session; `ramp web --link` prints a login link")
