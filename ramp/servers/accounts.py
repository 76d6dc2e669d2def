"""The accounts of the embedded server: those of its launcher, and those that their owners have registered with tokens.

The launcher writes its accounts, with their passwords, and the tokens for registering further ones, to a file that only
its own account can read. So no account is lost and none outlives its market. The server reads the file when it has
changed. A registered account is in a second file, with a salted digest of its password, before the server answers. It
exists as long as its token is the current one for its name.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import hmac
import json
import logging
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from ramp.errors import ConfigurationError, check_version
from ramp.file_versions import CachedFile
from ramp.model.instant import Instant
from ramp.runtime.atomic_writes import write_whole
from ramp.runtime.joining.account_tokens import AccountToken, token_digest
from ramp.runtime.storage_errors import storing
from ramp.xmpp.quotas import Complaints

GIVEN: Final = "accounts.json"
"""File of what the launcher gives, in the server's folder."""

VERSION: Final = 1
"""Of the file of registered accounts."""

ITERATIONS: Final = 10_000
"""Iterations of PBKDF2-HMAC-SHA-256, some milliseconds per log-in; random passwords of `ramp join` would need none."""

PASSWORD_BYTES_MAX: Final = 1023
"""Maximum password in bytes of UTF-8; RFC 4616 sets no limit, so it has that of names."""

_SALT_BYTES: Final = 16

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


Given = Mapping[str, str | AccountToken]
"""The launcher's accounts by name: the password of each, or the only valid token for registering it."""


class Accounts:
    """The accounts that may log in, and the current tokens.

    Args:
        domain: domain of the server.
        given: file that `give` has written.
        registered: file of the registered accounts; created with the first one.

    Attributes:
        closed: called with the name of each closed account.

    Raises:
        ConfigurationError: a file is damaged.
    """

    def __init__(self, domain: str, given: Path, registered: Path) -> None:
        self.closed: Callable[[str], None] = lambda _: None
        self._domain = domain
        self._file = CachedFile(given, _read_given)
        self._given: Given = {}
        self._path = registered
        self._kept = self._load()
        self._complaints = Complaints()
        self.look()

    def look(self) -> Given:
        """Return what the launcher gives now, and close the accounts that it gives no longer."""
        given = self._file.content() or {}
        if given is not self._given:
            before, self._given = self._given, given
            for name, was in before.items():
                if _made_by(given.get(name)) != _made_by(was):
                    self.closed(name)
        return self._given

    def exists(self, name: str) -> bool:
        """Return whether an account with exactly this name exists."""
        given, kept = self.look().get(name), self._kept.get(name)
        if isinstance(given, AccountToken):
            return kept is not None and _same(kept.token_digest, given.digest)
        return given is not None

    def is_password_of(self, name: str, password: str) -> bool:
        given = self.look().get(name)
        if isinstance(given, str):
            return _same(given, password)
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
        if self._complaints.is_due("log-in", name, time.monotonic_ns() // 1000):
            _log.warning("refused a log-in as %a", name[:100])
        return None

    def is_open(self, now: Instant) -> bool:
        """Return whether any token is unused and not expired."""
        return bool(self._usable_tokens(now))

    def name_for(self, token: str, now: Instant) -> str | None:
        """Return the name that a token is for; None if the token is unknown, used or expired.

        Every known token is compared in full, so the duration reveals nothing about the tokens.
        """
        digest = token_digest(token)
        found = [name for name, known in self._usable_tokens(now).items() if _same(digest, known.digest)]
        return found[0] if found else None

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
        known, digest = self.look().get(name), token_digest(token)
        if not isinstance(known, AccountToken) or self.exists(name) or not _same(known.digest, digest):
            return False
        salt = secrets.token_bytes(_SALT_BYTES)
        made = _Registered(digest, salt.hex(), ITERATIONS, _derived(password, salt, ITERATIONS))
        self._write({**self._kept, name: made})
        return True

    def _usable_tokens(self, now: Instant) -> dict[str, AccountToken]:
        return {
            name: token
            for name, token in self.look().items()
            if isinstance(token, AccountToken) and now <= token.ends_at and not self.exists(name)
        }

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


def _derived(password: str, salt: bytes, iterations: int) -> str:
    return hashlib.pbkdf2_hmac("sha256", password.encode("utf-8", "surrogatepass"), salt, iterations).hex()


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "surrogatepass"), other.encode("utf-8", "surrogatepass"))


def _made_by(given: str | AccountToken | None) -> str | None:
    """Return the token's digest of an account; empty for one of the launcher's, None for no account."""
    return given.digest if isinstance(given, AccountToken) else None if given is None else ""


def give(path: Path, accounts: Mapping[str, str], tokens: Mapping[str, AccountToken | None]) -> None:
    """Write all accounts and tokens for the server; a token of None is none.

    Raises:
        StorageFailed: the file cannot be written.
    """
    plain = {name: asdict(token) for name, token in tokens.items() if token is not None}
    with storing(path):
        write_whole(path, json.dumps({**plain, **accounts}).encode(), private=True)


def _read_given(path: Path) -> Given:
    try:
        found = json.loads(path.read_text("utf-8"))
        return {name: each if isinstance(each, str) else AccountToken(**each) for name, each in found.items()}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise ConfigurationError(f"the launcher's accounts cannot be read: {error}", path=path) from error
