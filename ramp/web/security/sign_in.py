"""Signing in with a one-time link, and out: two small pages of plain HTML.

Opening the link does not use it, since chats and mail scanners open links too. The button on its page does, and the
request must come from that page.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from string import Template
from typing import Final

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from ramp.model.instant import SECOND
from ramp.model.seal import Role
from ramp.web.security.address import ServedAddress
from ramp.web.security.gate import OPENID_PATH, SESSION_KEY, Gate
from ramp.web.security.sessions import SESSION_TIME, LinkRefused, Session, Sessions

_PAGE: Final = Template(Path(__file__).with_name("plain_page.html").read_text("utf-8"))


def routes(sessions: Sessions, address: ServedAddress, gate: Gate, openid: Mount | None = None) -> list[BaseRoute]:
    """Return the routes `/login` and `/logout`, and those of OpenID Connect if there is a provider."""
    how_to = _HOW_TO if openid is None else _OPENID + _HOW_TO

    async def login(request: Request) -> Response:
        before: Session | None = request.scope.get(SESSION_KEY)
        given = request.query_params if request.method == "GET" else await _form(request)
        secret = str(given.get("token", ""))
        if not secret:
            return plain_page("Sign in", how_to if before is None else _go_on(before), 200 if before else 401)
        try:
            name, role = sessions.owner_of_link(secret)
            if request.method == "GET":
                return sign_in_page(secret, name, role, before)
            token, _ = sessions.redeem(secret)
        except LinkRefused as error:
            return plain_page("Invalid login link", f"<p>{escape(str(error))}</p>{how_to}", 403)
        if before is not None:
            gate.end(before)  # one browser, one session: two users' pages never share a cookie
        response = RedirectResponse("/", status_code=303)
        response.set_cookie(
            address.cookie,
            token,
            max_age=SESSION_TIME // SECOND,
            path="/",
            secure=address.is_secure,
            httponly=True,
            samesite="strict",
        )
        return response

    async def logout(request: Request) -> Response:
        gate.end(request.scope[SESSION_KEY])
        response = plain_page("Signed out", "<p>You are signed out on all pages.</p>" + how_to)
        response.delete_cookie(address.cookie, path="/", secure=address.is_secure, httponly=True, samesite="strict")
        return response

    return [
        Route("/login", login, methods=["GET", "POST"]),
        Route("/logout", logout, methods=["POST"]),
        *([] if openid is None else [openid]),
    ]


async def _form(request: Request) -> FormData:
    return await request.form(max_files=0, max_fields=4, max_part_size=1024)


def _called(name: str, role: Role) -> str:
    return f"{name}, the market's keeper" if role is Role.KEEPER else name


def sign_in_page(secret: str, name: str, role: Role, before: Session | None = None) -> Response:
    """Return the page whose button redeems a login link, which ends the session `before`."""
    note = "<p>This page signs in once. The session ends after twelve hours without use.</p>"
    if before is not None:
        note += f"<p>{escape(_called(before.name, before.role))} is signed in here and will be signed out.</p>"
    form = (
        f'<form method="post" action="/login"><input type="hidden" name="token" value="{escape(secret)}">'
        '<button type="submit" autofocus>Sign in</button></form>'
    )
    return plain_page(f"Sign in as {_called(name, role)}", note + form)


_HOW_TO: Final = "<p>The market's owner prints a login link with <code>ramp web --link --user NAME</code>.</p>"
_OPENID: Final = f'<p><a href="{OPENID_PATH}/begin">Sign in with your site\'s account</a></p>'


def _go_on(session: Session) -> str:
    return f'<p>{escape(_called(session.name, session.role))} is signed in. <a href="/">To the market</a></p>'


def plain_page(title: str, body: str, status: int = 200) -> HTMLResponse:
    """Return a page without NiceGUI; `body` is HTML."""
    return HTMLResponse(_PAGE.substitute(title=escape(title), body=body), status_code=status)
