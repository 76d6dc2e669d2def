"""Accounts that their owners have made on the embedded server, each with a token of the market's keeper.

The launcher gives tokens as it gives accounts, at every start; without one nobody registers anything. What was
registered is on disk before it is answered, as salted digests of the password. An account lives as long as the token
that it was made with is the one given for its name.
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
"""Of PBKDF2-HMAC-SHA-256: some milliseconds a log-in. Passwords that `ramp join` makes are random, and need none."""

PASSWORD_BYTES_MAX: Final = 1023
"""Longest password, in bytes of UTF-8 (RFC 4616 has no limit of its own; names have this one)."""

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
    """Tokens that may be used, and the accounts that were made with some of them.

    Args:
        path: where accounts are kept; there is no file before the first.

    Raises:
        ConfigurationError: if the file is damaged.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tokens: dict[str, AccountToken] = {}
        self._kept = self._load()

    def exists(self, name: str) -> bool:
        """Whether an account of exactly this name was registered, and stands."""
        return name in self._kept and name in self._tokens

    def is_password_of(self, name: str, password: str) -> bool:
        """Whether an account was registered with this name and password, and stands."""
        return self.exists(name) and self._kept[name].is_of(password)

    def give(self, name: str, token: AccountToken | None) -> bool:
        """Let a name be registered with a token and no other, or with none.

        Args:
            name: local name of an account.
            token: of which only the digest is known; None takes the name back.

        Returns:
            Whether an account of that name was there and is closed now: it was made with another token.

        Raises:
            OSError: if that cannot be written.
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
        """Whether there is a token that has not been used and has not ended."""
        return any(self._is_usable(name, token, now) for name, token in self._tokens.items())

    def name_for(self, token: str, now: Instant) -> str | None:
        """The name that a token lets register; None for one that is unknown, used or has ended.

        Every token is compared in full, so that the time that it takes tells nothing of any.
        """
        digest, found = token_digest(token), None
        for name, known in self._tokens.items():
            if _same(digest, known.digest) and self._is_usable(name, known, now):
                found = name
        return found

    def register(self, name: str, token: str, password: str) -> bool:
        """Make an account.

        Args:
            name: for which the token was accepted by `name_for`; that it has ended since does not matter (XEP-0445, 4).
            token: the token.
            password: not empty.

        Returns:
            Whether it is made; False where the token was used or taken back meanwhile.

        Raises:
            OSError: if it cannot be written; nothing is made then.
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
