"""The archive of one agent: the records of finished conversations, in a file that no start needs.

Records come from the journal with their order and numbers. They are durable here before they leave the journal. After a
crash in between they are in both and are archived again, but not written twice.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from ramp.runtime.sqlite_file import damage_named, open_file, reading, transaction
from ramp.runtime.storage_errors import storing

ARCHIVE_VERSION: Final = 1

_SCHEMA: Final = (
    """
    CREATE TABLE archived (
        number    INTEGER PRIMARY KEY,
        sequence  INTEGER NOT NULL,
        reference TEXT NOT NULL,
        kind      TEXT NOT NULL,
        record    TEXT NOT NULL
    ) STRICT
    """,
    "CREATE INDEX archived_reference ON archived (reference, sequence)",
    "CREATE INDEX archived_kind ON archived (kind, reference)",
)

# A journal restored from a backup continues from an older number, so the number alone does not identify a record.
_INSERT: Final = """
INSERT INTO archived (sequence, reference, kind, record)
SELECT :sequence, :reference, iif(json_valid(:record), coalesce(json_extract(:record, '$.type'), ''), ''), :record
WHERE NOT EXISTS (
    SELECT 1 FROM archived WHERE reference = :reference AND sequence = :sequence AND record = :record
)
"""

_REQUESTS: Final = """
SELECT ended.reference, json_remove(json_extract(ended.record, '$.outcome'), '$.rounds'), (
    SELECT json_array_length(started.record, '$.request.units') FROM archived AS started
    WHERE started.reference = ended.reference AND started.kind = 'RequestStarted'
)
FROM archived AS ended WHERE ended.kind = 'RequestConcluded' ORDER BY ended.number
"""


@dataclass(frozen=True, slots=True)
class Row:
    """A record from the journal.

    Attributes:
        sequence: its number in the journal.
        reference: its conversation (`reference_of`).
        record: the record as JSON text.
    """

    sequence: int
    reference: str
    record: str


class Archive:
    """An agent's archive, opened for each use and created at the first."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def check(self) -> None:
        """Check that the file, if it exists, can be extended.

        Raises:
            WrongVersion: the file has another version.
            StateDamaged: the file is no archive, or broken.
            StorageFailed: the file cannot be opened.
        """
        if self.path.exists():
            self._open().close()

    def add(self, rows: Iterable[Row]) -> None:
        """Add records that are not in the archive yet; all are durable when this returns.

        Raises:
            StorageFailed: the records cannot be written; the archive is unchanged.
            StateDamaged: the file is no archive, or broken.
        """
        with storing(self.path):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with (
                closing(self._open()) as connection,
                damage_named(self.path, "the archive is broken"),
                transaction(connection),
            ):
                connection.executemany(_INSERT, [asdict(row) for row in rows])

    def of_reference(self, reference: str) -> Iterator[dict[str, Any]]:
        """Yield the records of a reference in the order of writing, as JSON objects; `StateDamaged` if it is broken."""
        where = "SELECT record FROM archived WHERE reference = ? ORDER BY sequence, number"
        yield from (json.loads(text) for (text,) in self._rows(where, reference))

    def of_kind(self, kind: str) -> Iterator[dict[str, Any]]:
        """Yield the records of a class, oldest first, as JSON objects; `StateDamaged` if it is broken."""
        where = "SELECT record FROM archived WHERE kind = ? ORDER BY number"
        yield from (json.loads(text) for (text,) in self._rows(where, kind))

    def mentions(self, agreement_id: str) -> bool:
        return any(self._rows("SELECT 1 FROM archived WHERE instr(record, ?) LIMIT 1", agreement_id))

    def requests(self) -> list[dict[str, Any]]:
        """Return every request of a user's archive, oldest first: `request_id`, `units`, and `outcome` without rounds.

        Raises:
            StateDamaged: the file is broken.
        """
        return [
            {"request_id": request_id, "units": units or 0, "outcome": json.loads(outcome)}
            for request_id, outcome, units in self._rows(_REQUESTS)
        ]

    def request_count(self) -> int:
        counted = self._rows("SELECT count(*) FROM archived WHERE kind = 'RequestConcluded'")
        return sum(count for (count,) in counted)

    def _rows(self, query: str, *parameters: str) -> Iterator[Any]:
        if not self.path.exists():
            return
        with reading(self.path, "archive", ARCHIVE_VERSION) as connection:
            yield from () if connection is None else connection.execute(query, parameters).fetchall()

    def _open(self) -> sqlite3.Connection:
        return open_file(self.path, "archive", ARCHIVE_VERSION, _SCHEMA)
