"""The accounts of the embedded server: those of its launcher, and those that their owners have registered with tokens.

The launcher sends the passwords of its accounts, and the tokens for registering further ones, over a private channel at
each start. So no account is lost and none outlives its market. Passwords of the launcher's accounts are kept in memory
only. A registered account is on disk, with a salted digest of its password, before the server answers. It exists as
long as its token is the current one for its name.

The channel is the server's standard input. Each line is a JSON object. The server answers it with a line when the
accounts are in place. The object maps the name of an account to its password, to the token to register it with
(`{"digest": .., "ends_at": ..}`), or to null to close the account.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import hashlib
import hmac
import json
import logging
import secrets
import socket
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from ramp.errors import ConfigurationError, check_version
from ramp.model.instant import Instant
from ramp.runtime.atomic_writes import write_whole
from ramp.runtime.joining.account_tokens import TOKEN_CHARACTERS_MAX, Account, AccountToken, token_digest
from ramp.runtime.storage_errors import reason_of
from ramp.xmpp.quotas import Complaints

FEATURE: Final = "<register xmlns='urn:xmpp:ibr-token:0'/>"
"""Stream feature that announces the registration (XEP-0445, 3)."""

REFUSALS_MAX: Final = 3
"""Number of refusals that ends a connection, so that guessing a token needs many encrypted connections."""

VERSION: Final = 1
"""Of the file of registered accounts."""

DONE: Final = b"ok\n"
"""Answer to a line whose accounts are in place."""

ITERATIONS: Final = 10_000
"""Iterations of PBKDF2-HMAC-SHA-256, some milliseconds per log-in; random passwords of `ramp join` would need none."""

PASSWORD_BYTES_MAX: Final = 1023
"""Maximum password in bytes of UTF-8; RFC 4616 sets no limit, so it has that of names."""

_SALT_BYTES: Final = 16
_LINE_MAX_BYTES: Final = 64_000_000
_PREAUTH: Final = "{urn:xmpp:pars:0}preauth"
_REGISTER: Final = "{jabber:iq:register}"
_STANZAS: Final = "urn:ietf:params:xml:ns:xmpp-stanzas"

_complaints = Complaints()
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Registered:
    """One registered account; digests and salt in hexadecimal."""

    token_digest: str
    salt: str
    iterations: int
    password_digest: str

    def is_of(self, password: str) -> bool:
        derived = _derived(password, bytes.fromhex(self.salt), self.iterations)
        return hmac.compare_digest(derived, self.password_digest)


class Accounts:
    """The accounts that may log in, with their passwords, and the current tokens.

    Args:
        path: file of the registered accounts; created with the first one.

    Attributes:
        closed: called with the name of each closed account.

    Raises:
        ConfigurationError: the file is damaged.
    """

    def __init__(self, domain: str, path: Path) -> None:
        self.closed: Callable[[str], None] = lambda _: None
        self._domain = domain
        self._path = path
        self._key = secrets.token_bytes(32)  # only digests of the passwords are kept
        self._digests: dict[str, bytes] = {}
        self._tokens: dict[str, AccountToken] = {}
        self._kept = self._load()

    def give(self, accounts: Mapping[str, Account]) -> None:
        """Create accounts, set passwords of existing ones and the only valid tokens, or close accounts.

        The launcher has checked the names. An account registered with another token is closed.

        Raises:
            ConfigurationError: an account cannot be closed.
        """
        for name, account in accounts.items():
            token = account if isinstance(account, AccountToken) else None
            kept = self._kept.get(name)
            if kept is not None and (token is None or not hmac.compare_digest(kept.token_digest, token.digest)):
                try:
                    self._write({key: each for key, each in self._kept.items() if key != name})
                except OSError as error:
                    raise ConfigurationError(f"the account {name} cannot be closed: {reason_of(error)}") from error
                self.closed(name)
            self._tokens.pop(name, None)
            if token is not None:
                self._tokens[name] = token
            if isinstance(account, str):
                self._digests[name] = self._digest(account)
            elif self._digests.pop(name, None) is not None:
                self.closed(name)

    def exists(self, name: str) -> bool:
        """Return whether an account with exactly this name exists."""
        return name in self._digests or (name in self._kept and name in self._tokens)

    def is_password_of(self, name: str, password: str) -> bool:
        given = self._digests.get(name)
        if given is not None:
            return hmac.compare_digest(self._digest(password), given)
        return self.exists(name) and self._kept[name].is_of(password)

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
            if right and self.is_password_of(name, password):
                return name
        if _complaints.is_due("log-in", name, time.monotonic_ns() // 1000):
            _log.warning("refused a log-in as %a", name[:100])
        return None

    def is_open(self, now: Instant) -> bool:
        """Return whether any token is unused and not expired."""
        return any(self._is_usable(name, token, now) for name, token in self._tokens.items())

    def name_for(self, token: str, now: Instant) -> str | None:
        """Return the name that a token is for; None if the token is unknown, used or expired.

        Every known token is compared in full, so the duration reveals nothing about the tokens.
        """
        digest, found = token_digest(token), None
        for name, known in self._tokens.items():
            if hmac.compare_digest(digest, known.digest) and self._is_usable(name, known, now):
                found = name
        return found

    def register(self, name: str, token: str, password: str) -> bool:
        """Register an account.

        Args:
            name: name that `name_for` returned for the token; the token may have expired since (XEP-0445, 4).
            token: the token.
            password: not empty.

        Returns:
            Whether the account was registered; False if the token was used or revoked meanwhile.

        Raises:
            OSError: the account cannot be written; nothing was registered.
        """
        known, digest = self._tokens.get(name), token_digest(token)
        if known is None or name in self._kept or not hmac.compare_digest(known.digest, digest):
            return False
        salt = secrets.token_bytes(_SALT_BYTES)
        made = _Registered(digest, salt.hex(), ITERATIONS, _derived(password, salt, ITERATIONS))
        self._write({**self._kept, name: made})
        return True

    def _is_usable(self, name: str, token: AccountToken, now: Instant) -> bool:
        return name not in self._kept and now <= token.ends_at

    def _write(self, kept: dict[str, _Registered]) -> None:
        plain = {"version": VERSION, "accounts": {name: asdict(each) for name, each in kept.items()}}
        write_whole(self._path, (json.dumps(plain, indent=1) + "\n").encode(), private=True)
        self._kept = kept

    def _load(self) -> dict[str, _Registered]:
        if not self._path.exists():
            return {}
        try:
            plain = json.loads(self._path.read_text("utf-8"))
            check_version(self._path, "list of registered accounts", plain["version"], VERSION)
            return {str(name): _Registered(**each) for name, each in plain["accounts"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigurationError(
                f"the accounts that were registered cannot be read: {type(error).__name__}: {error}; restore the file "
                "from a backup: without it those who joined with a token cannot log in",
                path=self._path,
            ) from error

    def _digest(self, password: str) -> bytes:
        return hmac.digest(self._key, password.encode("utf-8"), "sha256")


def _derived(password: str, salt: bytes, iterations: int) -> str:
    return hashlib.pbkdf2_hmac("sha256", password.encode("utf-8", "surrogatepass"), salt, iterations).hex()


async def take_accounts(accounts: Accounts, descriptor: int = 0) -> Coroutine[Any, Any, None]:
    """Take the launcher's first line, before anyone can log in; return what takes later ones as long as it runs.

    Raises:
        ConfigurationError: the line is invalid.
    """
    line = socket.socket(fileno=descriptor)
    lines, answers = await asyncio.open_connection(sock=line, limit=_LINE_MAX_BYTES)
    accounts.give(_read_given(await lines.readline()))
    answers.write(DONE)

    async def later() -> None:
        while line := await lines.readline():
            try:
                accounts.give(_read_given(line))
                answers.write(DONE)
            except ConfigurationError as error:
                _log.error("%s", error)
                answers.write(f"{error}\n".encode())

    return later()


def _read_given(line: bytes) -> dict[str, Account]:
    """Return the accounts of a line by name. The error does not quote the line, which may contain passwords."""
    try:
        return {
            name: one if isinstance(one, str | None) else AccountToken(str(one["digest"]), int(one["ends_at"]))
            for name, one in json.loads(line).items()
        }
    except (AttributeError, TypeError, KeyError, ValueError):
        expected = 'a JSON object {"name": VALUE}; VALUE is a password, {"digest": .., "ends_at": ..} or null'
        raise ConfigurationError(f"invalid accounts: expected {expected}", key="accounts") from None


def accounts_text(accounts: Mapping[str, Account]) -> str:
    """Write accounts for a server as JSON: a password, the fields of a token, or null for each name."""
    return json.dumps({name: asdict(one) if isinstance(one, AccountToken) else one for name, one in accounts.items()})


class Registration:
    """Answers the requests of one client before its log-in (XEP-0445, XEP-0077).

    The client sends a token and then registers the account that the token is for; without a token it cannot register.
    """

    def __init__(self, accounts: Accounts, domain: str, now: Callable[[], Instant]) -> None:
        self._accounts = accounts
        self._domain = domain
        self._now = now
        self._accepted: tuple[str, str] | None = None
        self._refusals = 0

    def answer(self, asked: ElementTree.Element) -> tuple[bytes, bool]:
        """Answer an `iq` of a client before its log-in.

        Returns:
            The answer, and whether to disconnect the client because of too many refusals.
        """
        preauth, query = asked.find(_PREAUTH), asked.find(f"{_REGISTER}query")
        kind = asked.get("type")
        if preauth is not None and kind == "set":
            return self._take_token(asked, preauth.get("token") or "")
        if query is None or kind not in ("get", "set") or self._accepted is None:
            return self._refused(asked, "auth", "not-allowed", "registration needs a token")
        if kind == "get":
            return self._fields(asked, self._accepted[1]), False
        return self._register(asked, query, *self._accepted)

    def _take_token(self, asked: ElementTree.Element, token: str) -> tuple[bytes, bool]:
        name = self._accounts.name_for(token, self._now()) if 0 < len(token) <= TOKEN_CHARACTERS_MAX else None
        if name is None:
            self._accepted = None
            return self._refused(asked, "cancel", "item-not-found", "the token is unknown, used or expired")
        self._accepted = token, name
        return bytes(ElementTree.tostring(self._answer(asked, "result"))), False

    def _register(
        self, asked: ElementTree.Element, query: ElementTree.Element, token: str, name: str
    ) -> tuple[bytes, bool]:
        said = query.findtext(f"{_REGISTER}username")
        password = query.findtext(f"{_REGISTER}password") or ""
        if query.find(f"{_REGISTER}remove") is not None or said != name:
            return self._refused(asked, "modify", "not-acceptable", f"the token is for the account {name} only")
        if not 0 < len(password.encode("utf-8", "surrogatepass")) <= PASSWORD_BYTES_MAX or "\0" in password:
            text = f"the password must have 1 to {PASSWORD_BYTES_MAX} bytes and no NUL"
            return self._refused(asked, "modify", "not-acceptable", text)
        try:
            made = self._accounts.register(name, token, password)
        except OSError as error:
            _log.error("cannot store the account %s: %s", name, reason_of(error))
            return self._refused(asked, "wait", "internal-server-error", "it cannot be stored now; try again later")
        if not made:
            return self._refused(asked, "cancel", "conflict", "the token was used or revoked meanwhile")
        _log.warning("registered the account %s", name)
        return bytes(ElementTree.tostring(self._answer(asked, "result"))), False

    def _fields(self, asked: ElementTree.Element, name: str) -> bytes:
        answer = self._answer(asked, "result")
        query = ElementTree.SubElement(answer, f"{_REGISTER}query")
        ElementTree.SubElement(query, f"{_REGISTER}username").text = name
        ElementTree.SubElement(query, f"{_REGISTER}password")
        return bytes(ElementTree.tostring(answer))

    def _refused(self, asked: ElementTree.Element, kind: str, condition: str, text: str) -> tuple[bytes, bool]:
        self._refusals += 1
        if _complaints.is_due("registration", condition, time.monotonic_ns() // 1000):
            _log.warning("refused a registration: %s", text)
        answer = self._answer(asked, "error")
        error = ElementTree.SubElement(answer, "error", {"type": kind})
        ElementTree.SubElement(error, condition, {"xmlns": _STANZAS})
        ElementTree.SubElement(error, "text", {"xmlns": _STANZAS}).text = text
        return bytes(ElementTree.tostring(answer)), self._refusals >= REFUSALS_MAX

    def _answer(self, asked: ElementTree.Element, kind: str) -> ElementTree.Element:
        return ElementTree.Element("iq", {"type": kind, "id": asked.get("id") or "", "from": self._domain})
