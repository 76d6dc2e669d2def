"""Registers an XMPP account (XEP-0077), with a token of the server's owner if it asks for one (XEP-0445).

One encrypted connection sends the token, registers the account and logs in. Only the log-in proves that the account
exists and has the right password. So a client whose registration got no answer repeats it with the same password.
"""

from __future__ import annotations

import asyncio
import ssl
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from slixmpp.exceptions import IqError, IqTimeout

from ramp.errors import TransportError
from ramp.xmpp.stream import TlsClient, tls_context

ATTEMPT_LIMIT_S: Final = 30.0
"""Timeout of one attempt with one server, in seconds."""

ANSWER_LIMIT_S: Final = 10.0
"""Timeout of one answer, in seconds."""

PATIENCE_S: Final = 20.0
"""How long to retry while the server does not know the token, in seconds; a new token takes a moment to reach it."""

PAUSE_S: Final = 1.0
"""Pause between two attempts, in seconds."""

_FEATURE: Final = "{urn:xmpp:ibr-token:0}register"
_PREAUTH: Final = "{urn:xmpp:pars:0}preauth"
_TAKES_NONE: Final = "accepts no token: this one was used, has expired or was revoked"
_UNKNOWN: Final = ("item-not-found", "forbidden")  # conditions of XEP-0445 and of Prosody's mod_invites_register


async def register_account(
    address: str,
    password: str,
    token: str,
    servers: tuple[tuple[str, int], ...],
    ca_file: Path | None,
    patience_s: float = PATIENCE_S,
) -> None:
    """Check that an account exists and has the given password; register it if it does not exist.

    Args:
        address: of the account, `name@domain` in its prepared form.
        password: chosen by the account's owner.
        token: token from the server's owner; empty for a server that registers everyone.
        servers: (host, port) of the server's addresses, tried in turn.
        ca_file: PEM file of the only trusted authorities; None trusts those of the system.
        patience_s: how long to retry while the server does not know the token, in seconds.

    Raises:
        TransportError: no server was reached or trusted, or the server refuses the account.
    """
    context = tls_context(ca_file)
    end = time.monotonic() + patience_s
    while True:
        problems = []
        for host, port in servers:
            tried = _Registrar(address, password, token, context)
            await tried.attempt(host, port)
            if not tried.problem:
                return
            problems.append(f"{host}:{port} {tried.problem}")
            if tried.was_heard:
                break  # the other addresses are the same server's
        if not tried.knows_no_token or time.monotonic() + PAUSE_S > end:
            raise TransportError(f"the account {address} cannot be registered: {'; '.join(problems)}")
        await asyncio.sleep(PAUSE_S)


class _Registrar(TlsClient):
    """One connection to a server.

    Attributes:
        problem: why there was no log-in; empty if it has succeeded.
        was_heard: whether the server has answered about registration or log-in.
        knows_no_token: whether the server accepts no token now, or does not know this one.
    """

    def __init__(self, address: str, password: str, token: str, context: ssl.SSLContext) -> None:
        super().__init__(address, password, context)
        self.problem = ""
        self._ended = asyncio.Event()
        self.was_heard = False
        self.knows_no_token = False
        self._token = token
        self._refused = ""
        self._encrypted = False
        self.register_plugin("xep_0077")
        self["xep_0077"].create_account = False  # `_register` does it, because the token comes first
        self._on("auth_success", lambda: "")
        self._on("failed_all_auth", lambda: self._refused or "refuses the log-in")
        self._on("ssl_invalid_chain", lambda: "shows a certificate that is not trusted")
        self._on("connection_failed", lambda: "cannot be reached")
        self.add_event_handler("disconnected", self._hung_up)

    async def attempt(self, host: str, port: int) -> None:
        """Connect to a server, and return after the connection has ended."""
        self.connect(host, port)
        try:
            async with asyncio.timeout(ATTEMPT_LIMIT_S):
                await self._ended.wait()
        except TimeoutError:
            self._settle("does not answer in time")
        finally:
            await self.drop()
            self.close_sender()

    def _on(self, event: str, problem: Callable[[], str]) -> None:
        self.add_event_handler(event, lambda _: self._settle(problem()))

    def _settle(self, problem: str) -> None:
        if not self._ended.is_set():
            self.problem = problem
            self._ended.set()

    async def _hung_up(self, _: object) -> None:
        await self.tls_settled()
        self._settle(self._refused or "hangs up")

    async def _handle_stream_features(self, features: Any) -> Any:
        if "starttls" in self.features and not self._encrypted:
            self._encrypted = True
            self.was_heard = True
            self.knows_no_token = bool(self._token) and features.xml.find(_FEATURE) is None
            self._refused = _TAKES_NONE if self.knows_no_token else await self._register()
        elif not self._encrypted and features.xml.find("{urn:ietf:params:xml:ns:xmpp-tls}starttls") is None:
            self._settle("offers no encryption")
            return None
        return await super()._handle_stream_features(features)

    async def _register(self) -> str:
        """Send the token, then register; return why the server refuses, empty if it does not."""
        shown = self.Iq(stype="set", sto=self.boundjid.domain)
        shown.append(ElementTree.Element(_PREAUTH, {"token": self._token}))
        asked = self.Iq(stype="set", sto=self.boundjid.domain)
        asked["register"]["username"] = self.boundjid.user
        asked["register"]["password"] = self.password
        steps = [("the token", shown)] if self._token else []
        for what, step in (*steps, ("the registration", asked)):
            try:
                await step.send(timeout=ANSWER_LIMIT_S)
            except IqError as error:
                found = error.iq["error"]
                self.knows_no_token = step is shown and found["condition"] in _UNKNOWN
                return f"refuses {what}: {found['condition']}{found['text'] and ': ' + found['text']}"
            except IqTimeout:
                return f"does not answer {what}"
        return ""

    def send(self, data: Any, use_filters: bool = True) -> None:
        # slixmpp would hold back all but the log-in until there is a session, which never happens here
        self.waiting_queue.put_nowait((data, use_filters))

    def disconnect(self, *_: object, **__: object) -> asyncio.Future[None]:
        # slixmpp would disconnect after a refused log-in; here only `drop` ends the connection
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done
