"""The accounts of the embedded server, received from its launcher over a private channel and kept in memory only.

Other accounts need a token for their name (`ramp.servers.registered_accounts`). The launcher sends all accounts at each
start, so no account is lost and none outlives its market.

The channel is the server's standard input. Each line is a JSON object. The server answers it with a line when the
accounts are in place. The object maps the name of an account to its password, to the token to register it with
(`{"digest": .., "ends_at": ..}`), or to null to close the account.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import hmac
import json
import logging
import secrets
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, Final

from ramp.errors import ConfigurationError
from ramp.runtime.joining.account_tokens import AccountToken
from ramp.runtime.storage_errors import reason_of
from ramp.servers.registered_accounts import RegisteredAccounts
from ramp.xmpp.quotas import Complaints

DONE: Final = b"ok\n"
"""Answer to a line whose accounts are in place."""

_LINE_MAX_BYTES: Final = 64_000_000

_log = logging.getLogger(__name__)


class Accounts:
    """The accounts that may log in, with their passwords.

    Args:
        domain: domain of the server.
        registered: accounts registered with tokens.

    Attributes:
        registered: accounts registered with tokens.
        closed: called with the name of each closed account.
    """

    def __init__(self, domain: str, registered: RegisteredAccounts) -> None:
        self.registered = registered
        self.closed: Callable[[str], None] = lambda _: None
        self._domain = domain
        self._key = secrets.token_bytes(32)  # only digests of the passwords are kept
        self._digests: dict[str, bytes] = {}
        self._complaints = Complaints()

    def add(self, accounts: Mapping[str, str]) -> None:
        """Create accounts, and set the passwords of existing ones; the launcher has checked their names."""
        for name in accounts:
            self._give_token(name, None)
        self._digests.update({name: self._digest(password) for name, password in accounts.items()})

    def give_tokens(self, tokens: Mapping[str, AccountToken | None]) -> None:
        """Set the only valid tokens for registering accounts; None closes the account.

        Raises:
            ConfigurationError: an account cannot be closed.
        """
        for name, token in tokens.items():
            if self._digests.pop(name, None) is not None:
                self.closed(name)
            self._give_token(name, token)

    def _give_token(self, name: str, token: AccountToken | None) -> None:
        try:
            if self.registered.give(name, token):
                self.closed(name)
        except OSError as error:
            raise ConfigurationError(f"the account {name} cannot be closed: {reason_of(error)}") from error

    def exists(self, name: str) -> bool:
        """Return whether an account with exactly this name exists."""
        return name in self._digests or self.registered.exists(name)

    def log_in(self, mechanism: str | None, response: str | None) -> str | None:
        """Check a log-in with SASL PLAIN (RFC 4616).

        Args:
            mechanism: mechanism that the client has chosen.
            response: base64 of `[authzid] NUL name NUL password`.

        Returns:
            The name of the account; None if the log-in is refused.
        """
        name = "?"
        with contextlib.suppress(ValueError, binascii.Error):
            acting_as, name, password = base64.b64decode(response or "", validate=True).decode("utf-8").split("\0")
            right = mechanism == "PLAIN" and acting_as in ("", f"{name}@{self._domain}")
            if right and self._is_password_of(name, password):
                return name
        if self._complaints.is_due("log-in", name, time.monotonic_ns() // 1000):
            _log.warning("refused a log-in as %a", name[:100])
        return None

    def _is_password_of(self, name: str, password: str) -> bool:
        given = self._digests.get(name)
        if given is not None:
            return hmac.compare_digest(self._digest(password), given)
        return self.registered.is_password_of(name, password)

    def _digest(self, password: str) -> bytes:
        return hmac.digest(self._key, password.encode("utf-8"), "sha256")


class AccountLine:
    """The server's end of the channel to its launcher.

    Args:
        accounts: accounts to update.
        descriptor: standard input, a socket of the launcher.
    """

    def __init__(self, accounts: Accounts, descriptor: int = 0) -> None:
        self._accounts = accounts
        self._descriptor = descriptor

    async def open(self) -> asyncio.StreamReader:
        """Take the first line, before anyone can log in; return the reader of later ones.

        Raises:
            ConfigurationError: the line is invalid.
        """
        lines, self._answers = await asyncio.open_connection(
            sock=socket.socket(fileno=self._descriptor), limit=_LINE_MAX_BYTES
        )
        self._take(await lines.readline())
        return lines

    async def watch(self, lines: asyncio.StreamReader) -> None:
        """Take later lines for as long as the launcher runs."""
        while line := await lines.readline():
            try:
                self._take(line)
            except ConfigurationError as error:
                _log.error("%s", error)
                self._answers.write(f"{error}\n".encode())

    def _take(self, line: bytes) -> None:
        try:
            given = json.loads(line)
        except ValueError:
            given = None
        passwords, tokens = _read_given(given)
        self._accounts.add(passwords)
        self._accounts.give_tokens(tokens)
        self._answers.write(DONE)


def _read_given(given: object) -> tuple[dict[str, str], dict[str, AccountToken | None]]:
    """Return passwords and tokens of a line by name. The error does not quote the line, which may contain passwords."""
    found: dict[str, Any] = given if isinstance(given, dict) else {"": 0}  # invalid: neither a password nor a token
    passwords = {name: value for name, value in found.items() if isinstance(value, str)}
    try:
        tokens = {
            name: None if value is None else AccountToken(str(value["digest"]), int(value["ends_at"]))
            for name, value in found.items()
            if name not in passwords
        }
    except (TypeError, KeyError, ValueError):
        expected = 'a JSON object {"name": VALUE}; VALUE is a password, {"digest": .., "ends_at": ..} or null'
        raise ConfigurationError(f"invalid accounts: expected {expected}", key="accounts") from None
    return passwords, tokens


class AccountGiver:
    """The launcher's end of the channel.

    Args:
        limit_s: timeout of an answer in seconds.

    Attributes:
        child: the server's end; the launcher closes it once the server has inherited it.
    """

    def __init__(self, limit_s: float) -> None:
        self._own, self.child = socket.socketpair()
        self._own.settimeout(limit_s)

    def give(self, accounts: Mapping[str, str], tokens: Mapping[str, AccountToken | None]) -> str:
        """Send accounts and tokens to the server and wait for its answer; return the problem, empty if none."""
        plain = {name: None if token is None else asdict(token) for name, token in tokens.items()}
        try:
            self._own.sendall(json.dumps({**plain, **accounts}).encode() + b"\n")
            answer = b""
            while not answer.endswith(b"\n") and (read := self._own.recv(4096)):
                answer += read
        except OSError as error:
            return str(error)
        return "" if answer == DONE else answer.decode(errors="replace").strip() or "the server has ended"

    def close(self) -> None:
        self.child.close()
        self._own.close()
