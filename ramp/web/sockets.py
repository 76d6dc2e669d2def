"""NiceGUI's sockets, each kept to the page that it was opened for.

NiceGUI takes a page's id for the right to speak for that page. The ids are random, and the gate lets nobody open a
socket for a page of another session; this also holds each message on an open socket to its own page.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Any, Final

from nicegui import core

from ramp.web.security.gate import SESSION_KEY, OwnerOf

FOR_A_PAGE: Final = ("event", "javascript_response", "ack", "log")
"""Messages that name the page that they are for; a socket has said before which one that is."""

Handler = Callable[..., Any]


def keep_to_own_pages(owner_of: OwnerOf) -> None:
    """Let messages through that are for a page of their socket's session; the others are dropped.

    Args:
        owner_of: whose an open page is.
    """
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
