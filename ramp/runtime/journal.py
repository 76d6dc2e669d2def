"""Journals: a party's records in the order of writing, in SQLite or in memory.

`archive` marks the records of finished conversations, which no start reads; `Archive` reads them. A journal of another
version is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar, get_args

import cattrs

from ramp.errors import ConfigurationError, StateDamaged
from ramp.model.instant import Instant
from ramp.protocol.outcome import RequestOutcome
from ramp.protocol.records import Record, reference_of
from ramp.runtime.model_json import TYPE_TAG, model_converter
from ramp.runtime.sqlite_file import FROM_BACKUP, damage_named, open_file, reading
from ramp.runtime.storage_errors import storing

JOURNAL_VERSION: Final = 1

_R = TypeVar("_R", bound=Record)

_SCHEMA: Final = (
    """
    CREATE TABLE journal (
        sequence  INTEGER PRIMARY KEY,
        reference TEXT NOT NULL,
        kind      TEXT NOT NULL,
        record    TEXT NOT NULL,
        archived  INTEGER NOT NULL DEFAULT 0
    ) STRICT
    """,
    "CREATE INDEX journal_reference ON journal (reference)",
    "CREATE INDEX open_records ON journal (sequence) WHERE NOT archived",
    "CREATE INDEX archived_kind ON journal (kind, reference) WHERE archived",
)

_ARCHIVE: Final = """
UPDATE journal SET archived = 1 WHERE NOT archived AND reference IN (SELECT value FROM json_each(?))
"""
_NEWEST_AT: Final = "SELECT json_extract(record, '$.at') FROM journal ORDER BY sequence DESC LIMIT 1"


_REQUESTS: Final = """
SELECT json_set(json_extract(ended.record, '$.outcome'), '$.rounds', json('[]'), '$.others', json('[]')), (
    SELECT json_array_length(started.record, '$.request.units') FROM journal AS started
    WHERE started.archived AND started.kind = 'RequestStarted' AND started.reference = ended.reference
)
FROM journal AS ended WHERE ended.archived AND ended.kind = 'RequestConcluded' AND NOT EXISTS (
    SELECT 1 FROM journal AS later
    WHERE later.archived AND later.kind = 'RequestConcluded' AND later.reference = ended.reference
    AND later.sequence > ended.sequence
) ORDER BY ended.sequence
"""


class SqliteJournal:
    """A journal file that survives `kill -9` and power loss.

    `synchronous=FULL` syncs the write-ahead log at every commit, so a record is on disk when `append` returns. That it
    can be written is tried when it is opened.

    Raises:
        StorageFailed: if it cannot be opened or written.
        StateDamaged: if the file is no journal, or broken.
        WrongVersion: if it is of another version.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection = open_file(path, "journal", JOURNAL_VERSION, _SCHEMA)

    def append(self, record: Record) -> None:
        """Add a record; it is durable when this returns.

        Raises:
            StorageFailed: the record cannot be written; the journal is unchanged.
        """
        row = reference_of(record), type(record).__name__, record_to_json(record)
        with storing(self.path):
            self._connection.execute("INSERT INTO journal (reference, kind, record) VALUES (?, ?, ?)", row)

    def records(self) -> Sequence[Record]:
        """Return all records that are not archived, in order of writing.

        Raises:
            StateDamaged: a record cannot be read.
            StorageFailed: the file cannot be read.
        """
        return self._read("SELECT sequence, record FROM journal WHERE NOT archived ORDER BY sequence")

    def records_of(self, reference: str) -> Sequence[Record]:
        """Return the records of a reference that are not archived; errors as in `records`."""
        query = "SELECT sequence, record FROM journal WHERE NOT archived AND reference = ? ORDER BY sequence"
        return self._read(query, reference)

    def newest(self) -> Instant:
        """Return the time of the newest record, archived or not; 0 without any."""
        with storing(self.path):
            found = self._connection.execute(_NEWEST_AT).fetchone()
        return 0 if found is None else int(found[0])

    def mentions(self, agreement_id: str) -> bool:
        """Return whether any record, archived or not, names an agreement."""
        with storing(self.path):
            found = self._connection.execute("SELECT 1 FROM journal WHERE instr(record, ?) LIMIT 1", (agreement_id,))
            return found.fetchone() is not None

    def archive(self, references: Sequence[str]) -> None:
        """Archive all records of these references; they are on disk as before.

        Raises:
            StorageFailed: the file cannot be written; the journal is unchanged.
        """
        with storing(self.path):
            self._connection.execute(_ARCHIVE, (json.dumps(references),))

    def close(self) -> None:
        self._connection.close()

    def _read(self, query: str, *parameters: str) -> Sequence[Record]:
        with storing(self.path), damage_named(self.path, "the journal is broken"):
            return tuple(_parsed(self.path, self._connection.execute(query, parameters)))


class Archive:
    """The archived records of a journal file, and its open ones, read without changes whether its agent runs or not.

    All methods raise `StateDamaged` if the file is broken.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def of_reference(self, reference: str) -> list[Record]:
        """Return the records of a reference in the order of writing."""
        query = "SELECT sequence, record FROM journal WHERE archived AND reference = ? ORDER BY sequence"
        return list(_parsed(self.path, self._rows(query, reference)))

    def of_kind(self, kind: type[_R]) -> Iterator[_R]:
        """Yield the records of a class in the order of writing."""
        query = "SELECT sequence, record FROM journal WHERE archived AND kind = ? ORDER BY sequence"
        yield from _parsed(self.path, self._rows(query, kind.__name__))  # type: ignore[misc]

    def open_records(self) -> tuple[Record, ...]:
        """Return the records that are not archived, in the order of writing."""
        query = "SELECT sequence, record FROM journal WHERE NOT archived ORDER BY sequence"
        return tuple(_parsed(self.path, self._rows(query)))

    def requests(self) -> list[tuple[RequestOutcome, int]]:
        """Return how every request of a user ended, oldest first, without rounds; with its number of units."""
        rows = self._rows(_REQUESTS)
        return [(_converter().structure(json.loads(text), RequestOutcome), units or 0) for text, units in rows]

    def request_count(self) -> int:
        """Return how many of a user's requests have ended."""
        counted = self._rows(
            "SELECT count(DISTINCT reference) FROM journal WHERE archived AND kind = 'RequestConcluded'"
        )
        return sum(count for (count,) in counted)

    def _rows(self, query: str, *parameters: str) -> Iterator[Any]:
        if not self.path.exists():
            return
        with reading(self.path, "journal", JOURNAL_VERSION) as connection:
            yield from () if connection is None else connection.execute(query, parameters).fetchall()


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


Journal = SqliteJournal | MemoryJournal
"""A party's durable memory, or its stand-in."""


# Records as JSON text

_KINDS = frozenset(each.__name__ for each in get_args(Record))


# Created at the first use: that takes as long as many imports, and most processes read no record.
_converter = cache(model_converter)


def _parsed(path: Path, rows: Iterable[tuple[int, str]]) -> Iterator[Record]:
    without = "to go on without that record, forgetting what it promised, delete that row of the table journal"
    for row, text in rows:
        try:
            yield record_from_json(text)
        except ConfigurationError as error:
            finding = f"row {row} of the journal: {error.reason}"
            raise StateDamaged(path, finding, f"{FROM_BACKUP}; {without}") from error.__cause__


def record_to_json(record: Record) -> str:
    """Write a record as one line of JSON."""
    return json.dumps(
        _converter().unstructure(record, unstructure_as=Record), separators=(",", ":"), ensure_ascii=False
    )


def record_from_json(text: str) -> Record:
    """Read a record.

    Raises:
        ConfigurationError: the text is no record of this version; the error quotes only its type.
    """
    try:
        plain = json.loads(text)
    except ValueError as error:
        raise ConfigurationError("this record is not JSON") from error
    try:
        record: Record = _converter().structure(plain, Record)  # type: ignore[arg-type]
    except (ValueError, KeyError, TypeError, AttributeError, cattrs.BaseValidationError) as error:
        kind = plain.get(TYPE_TAG) if isinstance(plain, dict) else None
        named = f"this {kind}" if isinstance(kind, str) and kind in _KINDS else "this, of no known type,"
        raise ConfigurationError(f"{named} cannot be read as a record") from error
    return record
