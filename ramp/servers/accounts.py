"""The accounts of the embedded server: given by whoever starts it, over a private line, and kept in memory only.

Nobody else can make one. As the launcher gives them anew at every start, none is ever lost, and none outlives the
market that it was made for. The line is the server's standard input: JSON objects `{"name": "password"}`, one a text
line, each answered by a line once its accounts can be logged into.
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
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ramp.errors import ConfigurationError
from ramp.xmpp.address import account_problem
from ramp.xmpp.complaints import Complaints

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
    """

    def __init__(self, domain: str) -> None:
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
        self._digests.update({name: self._digest(password) for name, password in accounts.items()})

    def exists(self, name: str) -> bool:
        """Whether there is an account of exactly this name."""
        return name in self._digests

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
            expected = self._digests.get(name, b"")
            if (
                mechanism == "PLAIN"
                and acting_as in ("", f"{name}@{self._domain}")
                and hmac.compare_digest(self._digest(password), expected)
            ):
                return name
        if self._complaints.is_due("log-in", name, time.monotonic_ns() // 1000):
            _log.warning("log-in as %a refused", name[:100])
        return None

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
            if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
                # without the line itself, which may hold passwords
                raise ConfigurationError('the accounts given are no JSON object {"name": "password"}', key="accounts")
            self._accounts.add(given)
            if self._answers:
                os.write(self._descriptor, DONE)


class AccountGiver:
    """The launcher's end of the line.

    Attributes:
        child: the server's end; to be closed here once the server has it.
    """

    def __init__(self, limit_s: float) -> None:
        self._own, self.child = socket.socketpair()
        self._own.settimeout(limit_s)

    def give(self, accounts: Mapping[str, str]) -> str:
        """Give accounts to the server and wait until they are in place; returns what went wrong, empty if nothing."""
        try:
            self._own.sendall(json.dumps(dict(accounts)).encode() + b"\n")
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
