"""Files of a format in SQLite: opening, tables, format version, errors of broken files."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from ramp.errors import StateDamaged, check_version
from ramp.runtime.storage_errors import storing

FROM_BACKUP: Final = "restore it from a backup while the market is down, then run `ramp up`"

_DAMAGED: Final = frozenset({sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT})


def open_file(path: Path, what: str, version: int, schema: Sequence[str]) -> sqlite3.Connection:
    """Open a file, created with the tables of its schema if missing, so that commits survive power loss.

    The path is `:memory:` for none; `what` is the kind of file (`journal`) for errors.

    Raises:
        StorageFailed: the file cannot be opened or written.
        StateDamaged: the file is of another kind, or broken.
        WrongVersion: the file has another version.
    """
    with storing(path):
        # a simulated market is asked from several threads, one at a time
        in_memory = str(path) == ":memory:"
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=not in_memory)
        try:
            with damage_named(path, f"invalid or damaged {what}"):
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute("PRAGMA synchronous=FULL")
                with transaction(connection):
                    if _is_new(connection, path, what, version):
                        for statement in schema:
                            connection.execute(statement)
                    connection.execute(f"PRAGMA user_version={version:d}")  # a write in any case
        except BaseException:
            connection.close()
            raise
    return connection


@contextmanager
def reading(path: Path, what: str, version: int) -> Iterator[sqlite3.Connection | None]:
    """Open a file to read it without changes; None if it is empty. The arguments are those of `open_file`.

    Raises:
        StorageFailed: the file cannot be read.
        StateDamaged: the file is of another kind, or broken.
        WrongVersion: the file has another version.
    """
    with (
        storing(path),
        damage_named(path, f"invalid or damaged {what}"),
        closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection,
    ):
        yield None if _is_new(connection, path, what, version) else connection


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


def _is_new(connection: sqlite3.Connection, path: Path, what: str, expected: int) -> bool:
    """Return whether a file is empty; check the format version (`user_version`) of any other."""
    query = "SELECT user_version, (SELECT count(*) FROM sqlite_master) FROM pragma_user_version"
    version, tables = connection.execute(query).fetchone()
    if version or tables:
        check_version(path, what, version or None, expected)
    return not version
