"""The records of an agent's finished conversations: rows of its journal that no start reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from ramp.runtime.journal import JOURNAL_VERSION
from ramp.runtime.sqlite_file import reading

_REQUESTS: Final = """
SELECT ended.reference, json_remove(json_extract(ended.record, '$.outcome'), '$.rounds'), (
    SELECT json_array_length(started.record, '$.request.units') FROM journal AS started
    WHERE started.archived AND started.kind = 'RequestStarted' AND started.reference = ended.reference
)
FROM journal AS ended WHERE ended.archived AND ended.kind = 'RequestConcluded' ORDER BY ended.sequence
"""


class Archive:
    """The archived records of a journal file, read without changes whether its agent runs or not.

    All methods raise `StateDamaged` if the file is broken.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def of_reference(self, reference: str) -> Iterator[dict[str, Any]]:
        """Yield the records of a reference in the order of writing, as JSON objects."""
        query = "SELECT record FROM journal WHERE archived AND reference = ? ORDER BY sequence"
        yield from (json.loads(text) for (text,) in self._rows(query, reference))

    def of_kind(self, kind: str) -> Iterator[dict[str, Any]]:
        """Yield the records of a class in the order of writing, as JSON objects."""
        query = "SELECT record FROM journal WHERE archived AND kind = ? ORDER BY sequence"
        yield from (json.loads(text) for (text,) in self._rows(query, kind))

    def requests(self) -> list[dict[str, Any]]:
        """Return every request of a user, oldest first: `request_id`, `units`, and `outcome` without rounds."""
        return [
            {"request_id": request_id, "units": units or 0, "outcome": json.loads(outcome)}
            for request_id, outcome, units in self._rows(_REQUESTS)
        ]

    def request_count(self) -> int:
        counted = self._rows("SELECT count(*) FROM journal WHERE archived AND kind = 'RequestConcluded'")
        return sum(count for (count,) in counted)

    def _rows(self, query: str, *parameters: str) -> Iterator[Any]:
        if not self.path.exists():
            return
        with reading(self.path, "journal", JOURNAL_VERSION) as connection:
            yield from () if connection is None else connection.execute(query, parameters).fetchall()
