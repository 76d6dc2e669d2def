"""Journals: a party's records in the order of writing, in SQLite or in memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from ramp.errors import ConfigurationError
from ramp.protocol.records import Record
from ramp.runtime.record_json import record_from_json, record_to_json

_SCHEMA = """
CREATE TABLE IF NOT EXISTS journal (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    record   TEXT NOT NULL
) STRICT;
"""


class SqliteJournal:
    """A journal file that survives `kill -9` and power loss.

    `synchronous=FULL` syncs the write-ahead log at every commit, so a record is on disk when `append` returns.

    Args:
        path: the file; made if it does not exist.

    Raises:
        ConfigurationError: if the file cannot be opened or is no journal.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._connection = sqlite3.connect(path, isolation_level=None)
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=FULL")
            self._connection.executescript(_SCHEMA)
        except sqlite3.Error as error:
            raise ConfigurationError(f"the journal cannot be opened: {error}", path=path) from error

    def append(self, record: Record) -> None:
        """Add a record; it is durable when this returns."""
        self._connection.execute("INSERT INTO journal (record) VALUES (?)", (record_to_json(record),))

    def records(self) -> Sequence[Record]:
        """All records in the order of writing."""
        rows = self._connection.execute("SELECT record FROM journal ORDER BY sequence")
        return tuple(record_from_json(text) for (text,) in rows)

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
