"""Accounts that their owners have registered on the embedded server with tokens of the market's keeper.

The launcher sends the tokens at each start, and there is no registration without one. An account is on disk, with a
salted digest of its password, before the server answers. It exists as long as its token is the current one for its
name.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from ramp.errors import ConfigurationError, check_version
from ramp.model.instant import Instant
from ramp.runtime.atomic_writes import write_whole
from ramp.runtime.joining.account_tokens import AccountToken, token_digest

VERSION: Final = 1
"""Of the file."""

ITERATIONS: Final = 10_000
"""Iterations of PBKDF2-HMAC-SHA-256, some milliseconds per log-in; random passwords of `ramp join` would need none."""

PASSWORD_BYTES_MAX: Final = 1023
"""Maximum password in bytes of UTF-8; RFC 4616 sets no limit, so it has that of names."""

_SALT_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class _Registered:
    """One account; digests and salt in hexadecimal."""

    token_digest: str
    salt: str
    iterations: int
    password_digest: str

    def is_of(self, password: str) -> bool:
        derived = _derived(password, bytes.fromhex(self.salt), self.iterations)
        return hmac.compare_digest(derived, self.password_digest)


class RegisteredAccounts:
    """Current tokens, and the accounts registered with them.

    Args:
        path: file of the accounts; created with the first one.

    Raises:
        ConfigurationError: the file is damaged.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tokens: dict[str, AccountToken] = {}
        self._kept = self._load()

    def exists(self, name: str) -> bool:
        """Return whether a registered account with exactly this name exists."""
        return name in self._kept and name in self._tokens

    def is_password_of(self, name: str, password: str) -> bool:
        return self.exists(name) and self._kept[name].is_of(password)

    def give(self, name: str, token: AccountToken | None) -> bool:
        """Set the only valid token for a name.

        Args:
            name: local name of an account.
            token: the token, with its digest only; None revokes the current one.

        Returns:
            Whether this has closed an account that was registered with another token.

        Raises:
            OSError: the change cannot be written.
        """
        kept = self._kept.get(name)
        closes = kept is not None and (token is None or not _same(kept.token_digest, token.digest))
        if token is None:
            self._tokens.pop(name, None)
        else:
            self._tokens[name] = token
        if closes:
            self._write({key: each for key, each in self._kept.items() if key != name})
        return closes

    def is_open(self, now: Instant) -> bool:
        """Return whether any token is unused and not expired."""
        return any(self._is_usable(name, token, now) for name, token in self._tokens.items())

    def name_for(self, token: str, now: Instant) -> str | None:
        """Return the name that a token is for; None if the token is unknown, used or expired.

        Every known token is compared in full, so the duration reveals nothing about the tokens.
        """
        digest, found = token_digest(token), None
        for name, known in self._tokens.items():
            if _same(digest, known.digest) and self._is_usable(name, known, now):
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
        if known is None or name in self._kept or not _same(known.digest, digest):
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


def _derived(password: str, salt: bytes, iterations: int) -> str:
    return hashlib.pbkdf2_hmac("sha256", password.encode("utf-8", "surrogatepass"), salt, iterations).hex()


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one, other)
