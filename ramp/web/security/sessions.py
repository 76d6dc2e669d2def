"""Login links, sessions and users' warnings in an SQLite file of the state folder, so that they survive restarts.

Only digests of secrets are stored, so a reader of the file cannot sign in. Secrets have 256 random bits and cannot be
guessed.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ramp.errors import RampError
from ramp.model.instant import DAY, HOUR, MINUTE, Duration, Instant
from ramp.model.seal import Role
from ramp.runtime.clock import SystemClock
from ramp.runtime.sqlite_file import open_file, transaction
from ramp.runtime.storage_errors import storing

LINK_TIME: Final[Duration] = 15 * MINUTE
"""Lifetime of a login link: enough to reach a browser, too short to be useful in a log."""

IDLE_TIME: Final[Duration] = 12 * HOUR
"""A session ends after this time without use."""

SESSION_TIME: Final[Duration] = 7 * DAY
"""A session ends after this time in any case."""

SEEN_EVERY: Final[Duration] = MINUTE
"""Minimum interval between two updates of the last use."""

SESSIONS_VERSION: Final = 1
"""Version of the file format."""

_SCHEMA: Final = (
    """
    CREATE TABLE links (
        digest     BLOB PRIMARY KEY,
        name       TEXT NOT NULL,
        role       TEXT NOT NULL,
        expires_at INTEGER NOT NULL,
        used_at    INTEGER
    ) STRICT
    """,
    """
    CREATE TABLE sessions (
        digest   BLOB PRIMARY KEY,
        name     TEXT NOT NULL,
        role     TEXT NOT NULL,
        begun_at INTEGER NOT NULL,
        seen_at  INTEGER NOT NULL
    ) STRICT
    """,
    """
    CREATE TABLE warnings (
        name  TEXT PRIMARY KEY,
        below INTEGER NOT NULL
    ) STRICT
    """,
)


class LinkRefused(RampError):
    """A login link is unknown, used or expired."""

    exit_code = 1


@dataclass(frozen=True, slots=True)
class Session:
    """A session of a signed-in user.

    Attributes:
        key: names the session inside the server; not the secret.
        name: local name of the agent.
        role: user or keeper.
        ends_at: when it ends at the latest.
    """

    key: str
    name: str
    role: Role
    ends_at: Instant


class Sessions:
    """Login links and sessions.

    Args:
        path: of the file; made if it does not exist, readable by its owner only.

    Raises:
        StorageFailed: if the file cannot be opened.
        StateDamaged: if it is something else.
        WrongVersion: if it is of another version.
    """

    def __init__(self, path: Path, now: Callable[[], Instant] | None = None) -> None:
        self._path = path
        self._now = now or SystemClock().now
        with storing(path):
            path.touch(mode=0o600)
            path.chmod(0o600)
        self._file = open_file(path, "file of sessions", SESSIONS_VERSION, _SCHEMA)

    def close(self) -> None:
        self._file.close()

    def issue_link(self, name: str, role: Role) -> str:
        """Return a new secret that signs in once within `LINK_TIME`."""
        secret = secrets.token_urlsafe(32)
        now = self._now()
        with storing(self._path), transaction(self._file):
            self._file.execute("DELETE FROM links WHERE expires_at < ?", (now - DAY,))
            self._file.execute("DELETE FROM sessions WHERE begun_at < ?", (now - SESSION_TIME,))
            self._file.execute(
                "INSERT INTO links VALUES (?, ?, ?, ?, NULL)", (_digest(secret), name, role.value, now + LINK_TIME)
            )
        return secret

    def owner_of_link(self, secret: str) -> tuple[str, Role]:
        """Return name and role of a link without using it.

        Raises:
            LinkRefused: if it is unknown, used or expired.
        """
        row = self._file.execute(
            "SELECT name, role, expires_at, used_at FROM links WHERE digest = ?", (_digest(secret),)
        ).fetchone()
        if row is None:
            raise LinkRefused("This login link is unknown.")
        name, role, expires_at, used_at = row
        if used_at is not None:
            raise LinkRefused("This login link has been used. Each link works once.")
        if self._now() >= expires_at:
            raise LinkRefused("This login link has expired.")
        return str(name), Role(role)

    def redeem(self, secret: str) -> tuple[str, Session]:
        """Use a link; returns the secret of the new session, and the session.

        Raises:
            LinkRefused: if it is unknown, used or expired.
        """
        token = secrets.token_urlsafe(32)
        now = self._now()
        with storing(self._path), transaction(self._file):
            name, role = self.owner_of_link(secret)
            self._file.execute("UPDATE links SET used_at = ? WHERE digest = ?", (now, _digest(secret)))
            self._file.execute(
                "INSERT INTO sessions VALUES (?, ?, ?, ?, ?)", (_digest(token), name, role.value, now, now)
            )
        return token, Session(_digest(token).hex(), name, role, now + SESSION_TIME)

    def find(self, token: str) -> Session | None:
        """Return the session of a secret, or None if it has ended or is unknown."""
        digest = _digest(token)
        row = self._file.execute(
            "SELECT name, role, begun_at, seen_at FROM sessions WHERE digest = ?", (digest,)
        ).fetchone()
        if row is None:
            return None
        name, role, begun_at, seen_at = row
        now = self._now()
        if now >= begun_at + SESSION_TIME or now >= seen_at + IDLE_TIME:
            self.end(digest.hex())
            return None
        if now >= seen_at + SEEN_EVERY:
            with storing(self._path):
                self._file.execute("UPDATE sessions SET seen_at = ? WHERE digest = ?", (now, digest))
        return Session(digest.hex(), str(name), Role(role), begun_at + SESSION_TIME)

    def warning_of(self, name: str) -> int:
        """Return below which balance a user is warned, in minor units; 0 for never."""
        row = self._file.execute("SELECT below FROM warnings WHERE name = ?", (name,)).fetchone()
        return 0 if row is None else int(row[0])

    def warn_below(self, name: str, below: int) -> None:
        """Set the balance in minor units below which a user is warned; 0 for never."""
        with storing(self._path):
            self._file.execute("INSERT OR REPLACE INTO warnings VALUES (?, ?)", (name, below))

    def end(self, key: str) -> None:
        """End the session of this `Session.key`."""
        with storing(self._path):
            self._file.execute("DELETE FROM sessions WHERE digest = ?", (bytes.fromhex(key),))


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", errors="replace")).digest()
