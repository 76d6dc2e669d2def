"""The accounts of the embedded server: given by whoever starts it, over a private line, and kept in memory only.

Nobody else can make one, but with a token that was given for its name (`ramp.servers.registered_accounts`). As the
launcher gives all of them anew at every start, none is ever lost, and none outlives the market that it was made for.
The line is the server's standard input: JSON objects, one a text line, each answered by a line once what it gives
holds. Under the name of an account stands its password, or the token to register it with, `{"digest": .., "ends_at":
..}`, or null where there is to be none any more.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import hmac
import json
import logging
import os
import secrets
import socket
import stat
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from ramp.errors import ConfigurationError
from ramp.runtime.joining.account_tokens import AccountToken
from ramp.runtime.storage_errors import reason_of
from ramp.servers.registered_accounts import RegisteredAccounts
from ramp.xmpp.address import account_problem
from ramp.xmpp.quotas import Complaints

DONE: Final = b"ok\n"
"""The answer to a line whose accounts are in place."""

_LINE_MAX_BYTES: Final = 64_000_000

_log = logging.getLogger(__name__)


def check_accounts(accounts: Mapping[str, str], domain: str, path: Path | None = None) -> None:
    """Refuse accounts that no server may have.

    Args:
        accounts: passwords by local name.
        domain: of the server.
        path: the file that asks for them, for the error.

    Raises:
        ConfigurationError: for a name that is not canonical, or an empty password.
    """
    for name, password in accounts.items():
        problem = account_problem(name, domain)
        if problem:
            raise ConfigurationError(
                f"{name!a} at {domain!a} can be no account: {problem}; right would be a name in its prepared form, "
                "such as lower-case letters, digits, dots, hyphens and underscores",
                path=path,
                key="name",
            )
        if not password:
            raise ConfigurationError(f"the account {name!r} needs a password", path=path, key="passwords")


class Accounts:
    """Who may log in, and with what.

    Args:
        domain: of the server.
        registered: those that were made with tokens.

    Attributes:
        registered: the same.
        closed: called with the name of every account that is closed.
    """

    def __init__(self, domain: str, registered: RegisteredAccounts) -> None:
        self.registered = registered
        self.closed: Callable[[str], None] = lambda _: None
        self._domain = domain
        self._key = secrets.token_bytes(32)  # passwords themselves are not kept
        self._digests: dict[str, bytes] = {}
        self._complaints = Complaints()

    def add(self, accounts: Mapping[str, str]) -> None:
        """Make accounts, and give those that exist the password stated.

        Raises:
            ConfigurationError: for a name that is not canonical, or an empty password; none has been made then.
        """
        check_accounts(accounts, self._domain)
        for name in accounts:
            self._give_token(name, None)
        self._digests.update({name: self._digest(password) for name, password in accounts.items()})

    def give_tokens(self, tokens: Mapping[str, AccountToken | None]) -> None:
        """Let accounts be registered with these tokens, and with no other; None closes the account.

        Raises:
            ConfigurationError: for a name that is not canonical; nothing has been given then.
        """
        check_accounts(dict.fromkeys(tokens, "made by its owner"), self._domain)
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
        """Whether there is an account of exactly this name."""
        return name in self._digests or self.registered.exists(name)

    def log_in(self, mechanism: str | None, response: str | None) -> str | None:
        """Check an answer of a client that logs in (SASL PLAIN, RFC 4616).

        Args:
            mechanism: that the client has chosen.
            response: base64 of `[authzid] NUL name NUL password`.

        Returns:
            The name, exactly that of an account; None where the log-in is refused.
        """
        name = "?"
        with contextlib.suppress(ValueError, binascii.Error):
            acting_as, name, password = base64.b64decode(response or "", validate=True).decode("utf-8").split("\0")
            right = mechanism == "PLAIN" and acting_as in ("", f"{name}@{self._domain}")
            if right and self._is_password_of(name, password):
                return name
        if self._complaints.is_due("log-in", name, time.monotonic_ns() // 1000):
            _log.warning("log-in as %a refused", name[:100])
        return None

    def _is_password_of(self, name: str, password: str) -> bool:
        given = self._digests.get(name)
        if given is not None:
            return hmac.compare_digest(self._digest(password), given)
        return self.registered.is_password_of(name, password)

    def _digest(self, password: str) -> bytes:
        return hmac.digest(self._key, password.encode("utf-8"), "sha256")


class AccountLine:
    """The server's end of the line to its launcher.

    Args:
        accounts: what the line fills.
        descriptor: standard input: a socket of the launcher, or a file with one line.
    """

    def __init__(self, accounts: Accounts, descriptor: int = 0) -> None:
        self._accounts = accounts
        self._descriptor = descriptor
        self._answers = stat.S_ISSOCK(os.fstat(descriptor).st_mode)
        self._pending = b""

    def take_first(self) -> None:
        """Take the accounts that there are from the start; nobody can log in before.

        Raises:
            ConfigurationError: for accounts that no server may have.
        """
        while b"\n" not in self._pending and (read := os.read(self._descriptor, 65_536)):
            self._pending += read
        if not self._answers and self._pending and not self._pending.endswith(b"\n"):
            self._pending += b"\n"  # a file's last line
        self._take_whole_lines()

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Take accounts that come later, for as long as the launcher lives."""
        if self._answers:
            loop.add_reader(self._descriptor, self._readable, loop)

    def _readable(self, loop: asyncio.AbstractEventLoop) -> None:
        read = os.read(self._descriptor, 65_536)
        self._pending += read
        if not read or len(self._pending) > _LINE_MAX_BYTES:
            loop.remove_reader(self._descriptor)
            return
        try:
            self._take_whole_lines()
        except ConfigurationError as error:
            _log.error("%s", error)
            os.write(self._descriptor, f"{error}\n".encode())

    def _take_whole_lines(self) -> None:
        while b"\n" in self._pending:
            line, _, self._pending = self._pending.partition(b"\n")
            try:
                given = json.loads(line)
            except ValueError:
                given = None
            passwords, tokens = _read_given(given)
            self._accounts.add(passwords)
            self._accounts.give_tokens(tokens)
            if self._answers:
                os.write(self._descriptor, DONE)


def _read_given(given: object) -> tuple[dict[str, str], dict[str, AccountToken | None]]:
    """Passwords and tokens of a line, by name.

    Raises:
        ConfigurationError: if it is none; without the line itself, which may hold passwords.
    """
    found: dict[str, Any] = given if isinstance(given, dict) else {"": 0}  # which is no password and no token either
    passwords = {name: value for name, value in found.items() if isinstance(value, str)}
    try:
        tokens = {
            name: None if value is None else AccountToken(str(value["digest"]), int(value["ends_at"]))
            for name, value in found.items()
            if name not in passwords
        }
    except (TypeError, KeyError, ValueError):
        right = '{"name": "password"}, or with {"digest": .., "ends_at": ..} or null in place of a password'
        raise ConfigurationError(f"the accounts given are no JSON object {right}", key="accounts") from None
    return passwords, tokens


class AccountGiver:
    """The launcher's end of the line.

    Attributes:
        child: the server's end; to be closed here once the server has it.
    """

    def __init__(self, limit_s: float) -> None:
        self._own, self.child = socket.socketpair()
        self._own.settimeout(limit_s)

    def give(self, accounts: Mapping[str, str], tokens: Mapping[str, AccountToken | None]) -> str:
        """Give accounts and tokens to the server and wait until it has them; returns what went wrong, if anything."""
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
        """Close both ends."""
        self.child.close()
        self._own.close()
