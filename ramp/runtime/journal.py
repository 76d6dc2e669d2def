"""Journals: a party's records in the order of writing, in SQLite or in memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from ramp.errors import ConfigurationError, StateDamaged
from ramp.protocol.records import Record
from ramp.runtime.record_json import record_from_json, record_to_json
from ramp.runtime.storage_errors import storing

_DAMAGED = frozenset({sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT})

FROM_BACKUP = "put back a copy of it from a backup while the market is down, then `ramp up`"

_SCHEMA = """
CREATE TABLE IF NOT EXISTS journal (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    record   TEXT NOT NULL
) STRICT;
"""


class SqliteJournal:
    """A journal file that survives `kill -9` and power loss.

    `synchronous=FULL` syncs the write-ahead log at every commit, so a record is on disk when `append` returns. That it
    can be written is tried when it is opened.

    Args:
        path: the file; made if it does not exist.

    Raises:
        StorageFailed: if it cannot be opened or written.
        StateDamaged: if the file is no journal, or broken.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with storing(path):
            self._connection = sqlite3.connect(path, isolation_level=None)
            try:
                self._connection.execute("PRAGMA journal_mode=WAL")
                self._connection.execute("PRAGMA synchronous=FULL")
                self._connection.executescript(_SCHEMA)
                (version,) = self._connection.execute("PRAGMA user_version").fetchone()
                self._connection.execute(f"PRAGMA user_version={version:d}")  # a write that changes nothing
            except sqlite3.DatabaseError as error:
                self._connection.close()
                if error.sqlite_errorcode & 0xFF in _DAMAGED:
                    raise StateDamaged(path, f"this is no journal, or it is broken ({error})", FROM_BACKUP) from error
                raise

    def append(self, record: Record) -> None:
        """Add a record; it is durable when this returns.

        Raises:
            StorageFailed: if it cannot be written; nothing of it has been.
        """
        with storing(self.path):
            self._connection.execute("INSERT INTO journal (record) VALUES (?)", (record_to_json(record),))

    def records(self) -> Sequence[Record]:
        """All records in the order of writing.

        Raises:
            StateDamaged: if one cannot be read.
            StorageFailed: if the file cannot be.
        """
        found: list[Record] = []
        with storing(self.path):
            try:
                for row, text in self._connection.execute("SELECT sequence, record FROM journal ORDER BY sequence"):
                    try:
                        found.append(record_from_json(text))
                    except ConfigurationError as error:
                        raise self._unreadable(row, error.reason) from error.__cause__
            except sqlite3.DatabaseError as error:
                if error.sqlite_errorcode & 0xFF in _DAMAGED:
                    raise StateDamaged(self.path, f"the journal is broken ({error})", FROM_BACKUP) from error
                raise
        return tuple(found)

    def _unreadable(self, row: int, reason: str) -> StateDamaged:
        without = "to go on without that record, forgetting what it promised, delete that row of the table journal"
        return StateDamaged(self.path, f"row {row} of the journal: {reason}", f"{FROM_BACKUP}; {without}")

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


class MemoryJournal:
    """A journal that lasts as long as the process: for the simulator, where crashes are simulated too."""

    def __init__(self) -> None:
        self._records: list[Record] = []

    def append(self, record: Record) -> None:
        """Add a record."""
        self._records.append(record)

    def records(self) -> Sequence[Record]:
        """All records in the order of writing."""
        return tuple(self._records)
