"""Journals: a party's records in the order of writing, in SQLite or in memory.

A journal holds open and recent conversations; `archive` moves others to a second file (`ramp.runtime.archive`), which
no start needs. A journal of another version is refused.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ramp.errors import ConfigurationError, StateDamaged
from ramp.model.instant import Instant
from ramp.protocol.records import Record, reference_of
from ramp.runtime.archive import Archive, Row
from ramp.runtime.record_json import record_from_json, record_to_json
from ramp.runtime.sqlite_file import FROM_BACKUP, damage_named, open_file, transaction
from ramp.runtime.storage_errors import storing

JOURNAL_VERSION: Final = 1

REFERENCES_AT_ONCE: Final = 200
"""References archived in one step: with 15 kB each, at most 3 MB in memory."""

_SCHEMA: Final = (
    """
    CREATE TABLE journal (
        sequence  INTEGER PRIMARY KEY AUTOINCREMENT,
        reference TEXT NOT NULL,
        record    TEXT NOT NULL
    ) STRICT
    """,
    "CREATE INDEX journal_reference ON journal (reference)",
    "CREATE TABLE newest_archived (only INTEGER PRIMARY KEY CHECK (only = 1), at INTEGER NOT NULL) STRICT",
)

_OF_REFERENCES: Final = """
SELECT sequence, reference, record FROM journal
WHERE reference IN (SELECT value FROM json_each(?)) ORDER BY sequence
"""
_LET_GO: Final = "DELETE FROM journal WHERE sequence IN (SELECT value FROM json_each(?))"
_REMEMBER: Final = """
INSERT OR REPLACE INTO newest_archived
SELECT 1, max(at) FROM (
    SELECT at FROM newest_archived
    UNION ALL SELECT coalesce(json_extract(record, '$.at'), 0) FROM journal
    WHERE json_valid(record) AND sequence IN (SELECT value FROM json_each(?))
) HAVING count(*) > 0
"""
_NEWEST_AT: Final = """
SELECT coalesce(max(at), 0) FROM (
    SELECT at FROM newest_archived
    UNION ALL SELECT json_extract(record, '$.at') FROM journal WHERE sequence = (SELECT max(sequence) FROM journal)
)
"""


class SqliteJournal:
    """A journal file that survives `kill -9` and power loss.

    `synchronous=FULL` syncs the write-ahead log at every commit, so a record is on disk when `append` returns. That it
    can be written is tried when it is opened.

    Args:
        path: the file; made if it does not exist.
        archive: file of the archive; by default next to the journal.

    Raises:
        StorageFailed: if it cannot be opened or written.
        StateDamaged: if the file is no journal, or broken.
        WrongVersion: if it, or the archive, is of another version.
    """

    def __init__(self, path: Path, archive: Path | None = None) -> None:
        self.path = path
        self._archive = Archive(archive or path.with_suffix(".archive.sqlite"))
        self._archive.check()
        self._connection = open_file(path, "journal", JOURNAL_VERSION, _SCHEMA)

    def append(self, record: Record) -> None:
        """Add a record; it is durable when this returns.

        Raises:
            StorageFailed: the record cannot be written; the journal is unchanged.
        """
        row = reference_of(record), record_to_json(record)
        with storing(self.path):
            self._connection.execute("INSERT INTO journal (reference, record) VALUES (?, ?)", row)

    def records(self) -> Sequence[Record]:
        """Return all records that are not archived, in order of writing.

        Raises:
            StateDamaged: a record cannot be read.
            StorageFailed: the file cannot be read.
        """
        return self._read("SELECT sequence, record FROM journal ORDER BY sequence")

    def records_of(self, reference: str) -> Sequence[Record]:
        """Return the records of a reference that are not archived; errors as in `records`."""
        query = "SELECT sequence, record FROM journal WHERE reference = ? ORDER BY sequence"
        return self._read(query, reference)

    def newest(self) -> Instant:
        """Return the time of the newest record, archived or not; 0 without any."""
        with storing(self.path):
            (at,) = self._connection.execute(_NEWEST_AT).fetchone()
        return int(at)

    def mentions(self, agreement_id: str) -> bool:
        """Return whether any record, archived or not, names an agreement."""
        with storing(self.path):
            found = self._connection.execute("SELECT 1 FROM journal WHERE instr(record, ?) LIMIT 1", (agreement_id,))
            return found.fetchone() is not None or self._archive.mentions(agreement_id)

    def archive(self, references: Sequence[str]) -> None:
        """Move all records of these references to the archive.

        The archive has them on disk before the journal deletes them. After a crash in between, the party continues from
        the journal and they are archived once more.

        Raises:
            StorageFailed: archive or journal cannot be written; records moved so far are in the archive.
        """
        for first in range(0, len(references), REFERENCES_AT_ONCE):
            given = json.dumps(references[first : first + REFERENCES_AT_ONCE])
            with storing(self.path):
                rows = [Row(*row) for row in self._connection.execute(_OF_REFERENCES, (given,))]
            if rows:
                self._archive.add(rows)
                self._let_go(rows)

    def _let_go(self, rows: Sequence[Row]) -> None:
        sequences = json.dumps([row.sequence for row in rows])
        with storing(self.path), transaction(self._connection):
            self._connection.execute(_REMEMBER, (sequences,))
            self._connection.execute(_LET_GO, (sequences,))

    def close(self) -> None:
        self._connection.close()

    def _read(self, query: str, *parameters: str) -> Sequence[Record]:
        found: list[Record] = []
        with storing(self.path), damage_named(self.path, "the journal is broken"):
            for row, text in self._connection.execute(query, parameters):
                try:
                    found.append(record_from_json(text))
                except ConfigurationError as error:
                    raise self._unreadable(row, error.reason) from error.__cause__
        return tuple(found)

    def _unreadable(self, row: int, reason: str) -> StateDamaged:
        without = "to go on without that record, forgetting what it promised, delete that row of the table journal"
        return StateDamaged(self.path, f"row {row} of the journal: {reason}", f"{FROM_BACKUP}; {without}")


class MemoryJournal:
    """A journal in memory for simulations and tests; `archived` holds archived records in order."""

    def __init__(self) -> None:
        self._records: list[Record] = []
        self.archived: list[Record] = []

    def append(self, record: Record) -> None:
        self._records.append(record)

    def records(self) -> Sequence[Record]:
        return tuple(self._records)

    def records_of(self, reference: str) -> Sequence[Record]:
        return tuple(record for record in self._records if reference_of(record) == reference)

    def newest(self) -> Instant:
        return max((record.at for record in (*self._records, *self.archived)), default=0)

    def mentions(self, agreement_id: str) -> bool:
        return any(agreement_id in record_to_json(record) for record in (*self._records, *self.archived))

    def archive(self, references: Sequence[str]) -> None:
        gone = frozenset(references)
        self.archived += [record for record in self._records if reference_of(record) in gone]
        self._records = [record for record in self._records if reference_of(record) not in gone]
