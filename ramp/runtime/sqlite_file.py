"""What journal and archive have in common as SQLite files: opening, format version, what is said when broken."""

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
    """Open a file, made if it does not exist, so that what is committed survives power loss.

    Args:
        path: the file.
        what: it should be (`journal`), for the message.

    Raises:
        StorageFailed: if it cannot be opened.
        StateDamaged: if it is something else, or broken.
    """
    with storing(path):
        connection = sqlite3.connect(path, isolation_level=None)
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
    """Say of a file that SQLite cannot read what is to be done; other errors pass.

    Raises:
        StateDamaged: if it is broken.
    """
    try:
        yield
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED:
            raise StateDamaged(path, f"{finding} ({error})", FROM_BACKUP) from error
        raise


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Do all or nothing, with the write lock from the start."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if connection.in_transaction:  # SQLite has rolled back by itself after some errors (lang_transaction, 3.1)
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def is_new(connection: sqlite3.Connection, path: Path, what: str, expected: int) -> bool:
    """Whether a file is empty; one that is not must state the expected version of its format, as `user_version`.

    Raises:
        WrongVersion: if it states another version, or none.
    """
    # One statement, as another process may make the tables meanwhile.
    query = "SELECT user_version, (SELECT count(*) FROM sqlite_master) FROM pragma_user_version"
    version, tables = connection.execute(query).fetchone()
    if version or tables:
        check_version(path, what, version or None, expected)
    return not version
