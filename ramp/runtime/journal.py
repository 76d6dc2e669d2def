"""Journals: a party's records in the order of writing, in SQLite or in memory.

A journal holds what is open or has ended lately; `archive` moves the rest to a second file (`ramp.runtime.archive`),
which no start reads. One of an older version is brought to this one when it is opened, in one transaction; one of a
newer version is refused.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ramp.errors import ConfigurationError, StateDamaged
from ramp.protocol.records import Record, reference_of
from ramp.runtime.archive import Archive, Row
from ramp.runtime.record_json import record_from_json, record_to_json
from ramp.runtime.sqlite_file import FROM_BACKUP, connect, damage_named, format_version, transaction
from ramp.runtime.storage_errors import storing

JOURNAL_VERSION: Final = 2
"""Of the file's format. Version 1 had neither a version's number nor references, and nothing ever left it."""

REFERENCES_AT_ONCE: Final = 200
"""Archived in one step: with 15 kB each, 3 MB in memory at a time, however much there is."""

_SCHEMA: Final = """
CREATE TABLE journal (
    sequence  INTEGER PRIMARY KEY AUTOINCREMENT,
    reference TEXT NOT NULL,
    record    TEXT NOT NULL
) STRICT
"""
_INDEX: Final = "CREATE INDEX journal_reference ON journal (reference)"
_FROM_VERSION_1: Final = (
    "ALTER TABLE journal ADD COLUMN reference TEXT NOT NULL DEFAULT ''",
    # what `reference_of` says, from the text: as Python objects, a large journal's records would take minutes
    """
    UPDATE journal SET reference = coalesce(
        json_extract(record, '$.request_id'),
        json_extract(record, '$.offer_id'),
        json_extract(record, '$.offer.offer_id'),
        json_extract(record, '$.cancellation.agreement_id'),
        json_extract(record, '$.failed.agreement_id'),
        json_extract(record, '$.outcome.agreement_id'),
        json_extract(record, '$.amendment.agreement_id'),
        json_extract(record, '$.agreement_id'),
        ''
    ) WHERE json_valid(record)
    """,
    _INDEX,
)

_OF_REFERENCES: Final = """
SELECT sequence, reference, record FROM journal
WHERE reference IN (SELECT value FROM json_each(?)) ORDER BY sequence
"""
_LET_GO: Final = "DELETE FROM journal WHERE sequence IN (SELECT value FROM json_each(?))"


class SqliteJournal:
    """A journal file that survives `kill -9` and power loss.

    `synchronous=FULL` syncs the write-ahead log at every commit, so a record is on disk when `append` returns. That it
    can be written is tried when it is opened.

    Args:
        path: the file; made if it does not exist.
        archive: file of what is over; by default beside it.

    Raises:
        StorageFailed: if it cannot be opened or written.
        StateDamaged: if the file is no journal, or broken.
        VersionTooNew: if it, or the archive, is of a later version.
    """

    def __init__(self, path: Path, archive: Path | None = None) -> None:
        self.path = path
        self._archive = Archive(archive or path.with_suffix(".archive.sqlite"))
        self._archive.check()
        self._connection = connect(path, "journal")
        try:
            with storing(path), damage_named(path, "this is no journal, or it is broken"):
                version = format_version(self._connection, path, "journal", JOURNAL_VERSION)
                with transaction(self._connection):
                    self._bring_up_to_date(version)
        except BaseException:
            self._connection.close()
            raise

    def append(self, record: Record) -> None:
        """Add a record; it is durable when this returns.

        Raises:
            StorageFailed: if it cannot be written; nothing of it has been.
        """
        row = reference_of(record), record_to_json(record)
        with storing(self.path):
            self._connection.execute("INSERT INTO journal (reference, record) VALUES (?, ?)", row)

    def records(self) -> Sequence[Record]:
        """All records in the order of writing that are not archived.

        Raises:
            StateDamaged: if one cannot be read.
            StorageFailed: if the file cannot be.
        """
        return self._read("SELECT sequence, record FROM journal ORDER BY sequence")

    def records_of(self, reference: str) -> Sequence[Record]:
        """The records of one reference that are not archived.

        Raises:
            StateDamaged: if one cannot be read.
            StorageFailed: if the file cannot be.
        """
        query = "SELECT sequence, record FROM journal WHERE reference = ? ORDER BY sequence"
        return self._read(query, reference)

    def archive(self, references: Sequence[str]) -> None:
        """Move all records of these references to the archive.

        The archive has them, synced, before the journal lets them go. A crash in between leaves them in both: the party
        takes them up again from the journal, and they are archived once more.

        Raises:
            StorageFailed: if archive or journal cannot be written; what has been moved so far is in the archive.
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
            self._connection.execute(_LET_GO, (sequences,))

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _bring_up_to_date(self, version: int) -> None:
        """Make the table, or give an older one what it lacks."""
        has_table = self._connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'journal'").fetchone()
        if not has_table:
            self._connection.execute(_SCHEMA)
            self._connection.execute(_INDEX)
        elif version < JOURNAL_VERSION:
            self._migrate_from_version_1()
        self._connection.execute(f"PRAGMA user_version={JOURNAL_VERSION:d}")  # a write, also where it changes nothing

    def _migrate_from_version_1(self) -> None:
        """Note of every record what it is about; one that cannot be read is told of by `records`."""
        for statement in _FROM_VERSION_1:
            self._connection.execute(statement)

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
    """A journal that lasts as long as the process: for the simulator, where crashes are simulated too.

    Attributes:
        archived: what is over, in the order of archiving.
    """

    def __init__(self) -> None:
        self._records: list[Record] = []
        self.archived: list[Record] = []

    def append(self, record: Record) -> None:
        """Add a record."""
        self._records.append(record)

    def records(self) -> Sequence[Record]:
        """All records in the order of writing that are not archived."""
        return tuple(self._records)

    def records_of(self, reference: str) -> Sequence[Record]:
        """The records of one reference that are not archived."""
        return tuple(record for record in self._records if reference_of(record) == reference)

    def archive(self, references: Sequence[str]) -> None:
        """Move all records of these references to the archive."""
        gone = frozenset(references)
        self.archived += [record for record in self._records if reference_of(record) in gone]
        self._records = [record for record in self._records if reference_of(record) not in gone]
