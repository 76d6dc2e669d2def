"""Common parts of journal and archive as SQLite files: opening, format version, errors of broken files."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ramp.errors import StateDamaged, check_version
from ramp.runtime.storage_errors import storing

FROM_BACKUP: Final = "restore it from a backup while the market is down, then run `ramp up`"

_DAMAGED: Final = frozenset({sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT})


def connect(path: Path, what: str) -> sqlite3.Connection:
    """Open a file, created if missing, so that commits survive power loss.

    Args:
        path: the file.
        what: expected kind of file (`journal`) for the error.

    Raises:
        StorageFailed: the file cannot be opened.
        StateDamaged: the file is of another kind, or broken.
    """
    with storing(path):
        # a simulated market is asked from several threads, one at a time
        in_memory = str(path) == ":memory:"
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=not in_memory)
        try:
            with damage_named(path, f"invalid or damaged {what}"):
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute("PRAGMA synchronous=FULL")
        except BaseException:
            connection.close()
            raise
    return connection


@contextmanager
def damage_named(path: Path, finding: str) -> Iterator[None]:
    """Raise `StateDamaged` with advice for a file that SQLite cannot read; other errors pass."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED:
            raise StateDamaged(path, f"{finding} ({error})", FROM_BACKUP) from error
        raise


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run a transaction with the write lock from the start."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if connection.in_transaction:  # SQLite has rolled back by itself after some errors (lang_transaction, 3.1)
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def is_new(connection: sqlite3.Connection, path: Path, what: str, expected: int) -> bool:
    """Return whether a file is empty; check the format version (`user_version`) of any other.

    Raises:
        WrongVersion: the file has another version, or none.
    """
    # One statement, as another process may make the tables meanwhile.
    query = "SELECT user_version, (SELECT count(*) FROM sqlite_master) FROM pragma_user_version"
    version, tables = connection.execute(query).fetchone()
    if version or tables:
        check_version(path, what, version or None, expected)
    return not version
