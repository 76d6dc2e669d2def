"""Keeps one agent's XMPP stream up: first log-in, reconnection with jittered back-off, liveness.

SPADE and slixmpp do not reconnect after a server restart or a lost connection. A `Link` reconnects to one of a list of
servers. It resumes the session if the server supports stream management (XEP-0198). Otherwise it opens a new session
and sends all unconfirmed messages again in order. The protocol above tolerates the duplicates.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import weakref
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from slixmpp.exceptions import IqTimeout
from slixmpp.xmlstream import XMLStream

from ramp.errors import TransportError
from ramp.runtime.configuration.values import QuotaConfig
from ramp.xmpp.stream import MarketStream

LOGINS_AT_ONCE = 8
"""Maximum number of simultaneous log-ins of one process; each costs the server tens of milliseconds."""

PATIENCE_MAX = 8.0
"""Maximum factor by which a link extends the time limits of its policy. An overloaded server answers late. Agents that
hang up and reconnect increase the load; a thousand of them keep the server from ever catching up."""

LOGIN_REFUSALS_MAX = 3
"""Refused log-ins before the first connection fails; an overloaded server may refuse a valid log-in once."""

_log = logging.getLogger(__name__)
_slots: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = weakref.WeakKeyDictionary()


def _login_slots() -> asyncio.Semaphore:
    loop = asyncio.get_running_loop()
    if loop not in _slots:
        _slots[loop] = asyncio.Semaphore(LOGINS_AT_ONCE)
    return _slots[loop]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkPolicy:
    """Timeouts and pauses of a link, all in seconds.

    Attributes:
        attempt_limit_s: timeout of one attempt, from the TCP connection to the open session. It doubles after each
            timeout, up to the factor `PATIENCE_MAX`.
        start_limit_s: timeout of all attempts of the first connection together.
        backoff_first_s: pause before the second attempt. It grows by `backoff_factor` and is multiplied by a random
            factor from 0.5 to 1.5, so that agents do not all reconnect at the same moment.
        backoff_factor: growth of the pause.
        backoff_max_s: maximum pause before the random factor.
        ping_interval_s: time between two pings of an open session; a connection may fail without notice.
        ping_limit_s: timeout of a ping; it doubles like `attempt_limit_s`.
        resume_check_s: timeout of the first ping of a resumed session.
    """

    attempt_limit_s: float = 15.0
    start_limit_s: float = 60.0
    backoff_first_s: float = 0.2
    backoff_factor: float = 1.7
    backoff_max_s: float = 15.0
    ping_interval_s: float = 30.0
    ping_limit_s: float = 30.0
    resume_check_s: float = 3.0

    def wait_before(self, attempt: int, chance: float) -> float:
        """Return the pause before an attempt in seconds.

        Args:
            attempt: number of failed attempts so far, at least 1.
            chance: random number in [0, 1).
        """
        exponent = min(attempt - 1, 64)  # far beyond the cap, and far from overflowing
        base = min(self.backoff_max_s, self.backoff_first_s * self.backoff_factor**exponent)
        return base * (0.5 + chance)


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportSettings:
    """Settings of an agent's connection to its XMPP server.

    Attributes:
        servers: (host, port) of servers of the agent's domain, at least one, tried in turn.
        ca_file: PEM file of the only trusted certificate authorities; None trusts those of the system.
        register: create a missing account if the server allows it (XEP-0077).
        federation: allow receivers of other domains (not supported by the embedded server).
        policy: timeouts and pauses of connecting.
        quotas: maximum rate of messages from one sender.
    """

    servers: tuple[tuple[str, int], ...]
    ca_file: Path | None = None
    register: bool = False
    federation: bool = False
    policy: LinkPolicy = field(default_factory=LinkPolicy)
    quotas: QuotaConfig = field(default_factory=QuotaConfig)

    def beginning_at(self, number: int) -> TransportSettings:
        """Return the same settings with another server first; `number` counts modulo the servers."""
        first = number % len(self.servers)
        return replace(self, servers=self.servers[first:] + self.servers[:first])


class _Outcome(StrEnum):
    OPENED = "session opened"
    RESUMED = "session resumed"
    LOGIN_REFUSED = "log-in refused"
    CERTIFICATE_REFUSED = "the server's certificate is not trusted"
    UNREACHABLE = "no server listens there"
    LOST = "connection lost"
    SILENT = "no answer in time"


class Link:
    """One agent's stream and the task that keeps it up.

    Args:
        stream: the client; only the link may connect or disconnect it.
        servers: (host, port) of servers, tried in turn.
        policy: timeouts and pauses.
        on_up: called when a session is open. Arguments: whether the old session was resumed, and the stanzas to send
            again before all others.
        on_down: called with the reason when an open session is lost.
        register: makes the account if it is missing; None if its owner makes it.
    """

    def __init__(
        self,
        stream: MarketStream,
        servers: tuple[tuple[str, int], ...],
        policy: LinkPolicy,
        *,
        on_up: Callable[[bool, list[str]], None],
        on_down: Callable[[str], None],
        register: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.is_up = False
        self._stream = stream
        self._servers = servers
        self._server_index = 0
        self._policy = policy
        self._on_up = on_up
        self._on_down = on_down
        self._register = register
        self._attempt: asyncio.Future[_Outcome] | None = None
        self._session_begun = False
        self._unconfirmed: list[str] = []
        self._just_resumed = False
        self._patience = 1.0
        self._closing = False
        self._keeper: asyncio.Task[None] | None = None
        self._down = asyncio.Event()
        stream.add_event_handler("session_start", self._session_started)
        stream.add_event_handler("stream_negotiated", lambda _: self._settle_session())
        stream.add_event_handler("session_resumed", lambda _: self._settle(_Outcome.RESUMED))
        stream.add_event_handler("failed_all_auth", lambda _: self._settle(_Outcome.LOGIN_REFUSED))
        stream.add_event_handler("connection_failed", lambda _: self._settle(_Outcome.UNREACHABLE))
        stream.add_event_handler("disconnected", self._disconnected)

    # -- events of the stream ------------------------------------------------------------------------------------

    def _session_started(self, _: object) -> None:
        self._session_begun = True

    def _settle_session(self) -> None:
        # later than session_start: stream management is on by now, so every outgoing message is counted
        if self._session_begun:
            self._settle(_Outcome.OPENED)

    def _settle(self, outcome: _Outcome) -> None:
        if self._attempt is not None and not self._attempt.done():
            self._attempt.set_result(outcome)

    def _disconnected(self, reason: Any) -> None:
        self._session_begun = False
        self._settle(_Outcome.LOST)
        if self.is_up:
            self.is_up = False
            self._unconfirmed = self._stream.unacknowledged()
            self._down.set()
            self._on_down(str(reason or "connection lost"))

    # -- connecting ----------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Connect for the first time, then keep the stream up.

        Raises:
            TransportError: no session within `start_limit_s`, or the server keeps refusing the log-in.
        """
        self._stream.init_plugins()
        try:
            async with asyncio.timeout(self._policy.start_limit_s):
                if self._register is not None:
                    await self._register()
                await self._connect(refusals_max=LOGIN_REFUSALS_MAX)
        except TimeoutError:
            await self._stream.drop()
            places = ", ".join(f"{host}:{port}" for host, port in self._servers)
            raise TransportError(
                f"{self._stream.boundjid.bare}: no XMPP session within {self._policy.start_limit_s:g} s; tried {places}"
            ) from None
        self._keeper = asyncio.get_running_loop().create_task(self._keep(), name=f"link {self._stream.boundjid.bare}")

    async def close(self) -> None:
        """Stop reconnecting, and close an open session."""
        self._closing = True
        if self._keeper is not None:
            self._keeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._keeper
        was_up, self.is_up = self.is_up, False
        if was_up and self._stream.transport is not None:
            await self._stream.disconnect(wait=1.0)
        await self._stream.drop()
        self._stream.close_sender()

    async def _connect(self, *, refusals_max: int | None) -> None:
        """Try the servers in turn until a session is open; fail after `refusals_max` refused log-ins, None never."""
        attempt = refusals = 0
        while True:
            outcome = await self._try_once(*self._servers[self._server_index])
            if outcome in (_Outcome.OPENED, _Outcome.RESUMED):
                self._session_open(outcome is _Outcome.RESUMED, attempt)
                return
            attempt += 1
            host, port = self._servers[self._server_index]
            _log.info("%s: %s:%d: %s (attempt %d)", self._stream.boundjid.bare, host, port, outcome, attempt)
            if outcome is _Outcome.LOGIN_REFUSED:
                refusals += 1
                if refusals_max is not None and refusals >= refusals_max:
                    raise TransportError(
                        f"{self._stream.boundjid.bare}: {host}:{port} refuses the log-in; "
                        "check the password, and that the account exists"
                    )
                if self._register is not None:
                    await self._register()  # a server that lost its accounts gets ours again
            elif outcome is _Outcome.CERTIFICATE_REFUSED and refusals_max is not None:
                raise TransportError(
                    f"{self._stream.boundjid.bare}: {host}:{port}: {outcome}; configure the file of its authority"
                )
            self._server_index = (self._server_index + 1) % len(self._servers)
            await asyncio.sleep(self._policy.wait_before(attempt, random.random()))

    def _session_open(self, resumed: bool, attempts: int) -> None:
        self.is_up = True
        self._just_resumed = resumed
        self._down.clear()
        again, self._unconfirmed = ([] if resumed else self._unconfirmed), []
        if attempts:
            _log.info("%s: connected after %d failed attempts", self._stream.boundjid.bare, attempts)
        self._on_up(resumed, again)

    async def _try_once(self, host: str, port: int) -> _Outcome:
        async with _login_slots():
            await self._stream.drop()
            self._stream.tls_refused = False
            self._stream.forget_login_attempts()
            self._session_begun = False
            self._attempt = asyncio.get_running_loop().create_future()
            XMLStream.connect(self._stream, host, port)
            try:
                async with asyncio.timeout(self._policy.attempt_limit_s * self._patience):
                    outcome = await self._attempt
                    if outcome is _Outcome.LOST:
                        await self._stream.tls_settled()
                        outcome = _Outcome.CERTIFICATE_REFUSED if self._stream.tls_refused else outcome
            except TimeoutError:
                outcome = _Outcome.SILENT
                self._patience = min(2 * self._patience, PATIENCE_MAX)
            finally:
                self._attempt = None
            if outcome not in (_Outcome.OPENED, _Outcome.RESUMED):
                await self._stream.drop()
            return outcome

    # -- keeping it up -------------------------------------------------------------------------------------------

    async def _keep(self) -> None:
        while not self._closing:
            try:
                if self.is_up:
                    await self._watch()
                else:
                    # a random pause first: otherwise all agents reconnect to a restarted server at the same moment
                    await asyncio.sleep(self._policy.wait_before(1, random.random()))
                    await self._connect(refusals_max=None)
            except Exception:  # an unexpected error must not leave the agent disconnected for ever
                _log.exception("%s: the connection failed; trying again", self._stream.boundjid.bare)
                await asyncio.sleep(self._policy.backoff_max_s)

    async def _watch(self) -> None:
        """Ping an open session once, or return earlier when it is lost."""
        if self._just_resumed:
            self._just_resumed = False
            if not await self._answers(self._policy.resume_check_s):
                await self._abandon_session()
            return
        try:
            async with asyncio.timeout(self._policy.ping_interval_s):
                await self._down.wait()
        except TimeoutError:
            if await self._answers(self._policy.ping_limit_s * self._patience):
                self._patience = max(1.0, self._patience / 2)
            else:
                self._patience = min(2 * self._patience, PATIENCE_MAX)
                _log.warning("%s: the server does not answer; reconnecting", self._stream.boundjid.bare)
                await self._stream.drop()

    async def _answers(self, limit_s: float) -> bool:
        """Return whether the server answers a ping (XEP-0199) in time; True also if the session is lost meanwhile."""
        self._stream.request_acknowledgement()
        loop = asyncio.get_running_loop()
        ping = loop.create_task(self._stream["xep_0199"].ping(self._stream.boundjid.host, timeout=limit_s))
        down = loop.create_task(self._down.wait())
        try:
            await asyncio.wait({ping, down}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            down.cancel()
            ping.cancel()
        if not self.is_up or not ping.done() or ping.cancelled():
            return True
        return not isinstance(ping.exception(), IqTimeout)  # an IqError is an answer too

    async def _abandon_session(self) -> None:
        """Abandon a resumed session in which the server does not answer, and start a new one.

        Prosody 0.12 continues to parse where the old connection ended. If that was in the middle of a stanza, Prosody
        reads everything that follows as part of that stanza. The end of the stream makes Prosody close the session and
        keep its pending messages for the next log-in. The agent sends unconfirmed messages again.
        """
        _log.warning(
            "%s: the server does not answer in the resumed session; starting a new one", self._stream.boundjid.bare
        )
        await self._stream.disconnect(wait=1.0)
        await self._stream.drop()
        self._stream.event("session_end")  # slixmpp forgets the session and its counters
