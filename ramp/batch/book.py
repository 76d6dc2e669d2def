"""The plug-in's own record of its holds on a batch system, written before any command is run.

Systems forget reservations (Slurm those of its last five seconds when it is killed), make reservations that they
reported as failed, and know no deadlines. So this book records every promise, and `ramp.batch.reconciling` makes the
system agree with it. It is a SQLite file with one row of JSON per key that survives `kill -9` and power loss.
`user_version` holds the version of its format; a file of another version is refused.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from cattrs import BaseValidationError

from ramp.batch.system import Parts
from ramp.errors import StorageFailed
from ramp.model.instant import Instant
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.slot import Reservation, Slot
from ramp.runtime.model_json import model_converter
from ramp.runtime.sqlite_file import open_file, reading, transaction
from ramp.runtime.storage_errors import storing

BOOK_VERSION: Final = 1
_SCHEMA: Final = (
    "CREATE TABLE hold (number INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, entry TEXT NOT NULL) STRICT"
)
_WHAT: Final = "book of holds"

NO_SLOT: Final = Slot(0, 0, 0, 0.0)
"""The slot of a key that was released before it was ever held."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The record of one key.

    Attributes:
        key: the caller's key, an offer's id.
        name: the reservation's name on the system.
        reservation_id: what jobs say to run in it; empty until the system has made it.
        unit: number of the request's unit.
        slot: `NO_SLOT` for a key that was released before it was ever held.
        parts: cores of each node.
        held_until: deadline of a hold; None once firm.
        firm: whether it was confirmed.
        account: the local account to which it was handed over; empty before.
        made: whether the system was seen to have it.
        released: whether it was given back.
        removed: whether the system was seen without it after that.
        started: when the job of the slot started; None before, and for reserved slots.
        moved_at: when it last moved to other cores; None if never. It grows with every move.
        step: number of the last change of its size, from 1; 0 before the first.
        shaped: whether the buyer asked for nodes or a torus; otherwise any nodes may have the cores.
    """

    key: str
    name: str
    reservation_id: str = ""
    unit: int = 0
    slot: Slot = NO_SLOT
    parts: Parts = ()
    held_until: Instant | None = None
    firm: bool = False
    account: str = ""
    made: bool = False
    released: bool = False
    removed: bool = False
    started: Instant | None = None
    moved_at: Instant | None = None
    step: int = 0
    shaped: bool = False

    def stands(self, now: Instant) -> bool:
        """Whether it is firm, even after its slot's end, or a hold within its deadline."""
        if self.released:
            return False
        return self.firm or (self.held_until is not None and now < self.held_until)

    def live(self, now: Instant) -> bool:
        """Whether it stands and takes cores, now or later."""
        return self.stands(now) and self.slot.end > now

    def moving(self, now: Instant) -> Instant:
        """Return the time to record for a move made now: later than the last move, whatever the clock says."""
        return now if self.moved_at is None else max(now, self.moved_at + 1)

    def reservation(self) -> Reservation:
        """Return it as the callers of the plug-in see it."""
        until = None if self.firm else self.held_until
        return Reservation(self.key, self.reservation_id or self.name, self.slot, self.firm, until, self.started)


_converter: Final = model_converter()


class HoldBook:
    """All keys of one resource.

    Args:
        folder: where the file is, made if it is missing; None keeps the book in memory.
        resource: the resource's name.

    Raises:
        StorageFailed: if the file cannot be opened or written.
        StateDamaged: if it is no book, or broken.
        WrongVersion: if it is of another version.
    """

    def __init__(self, folder: Path | None, resource: str) -> None:
        self.path = Path(":memory:") if folder is None else book_path(folder, resource)
        if folder is not None:
            with storing(folder):
                folder.mkdir(parents=True, exist_ok=True)
        self._connection = open_file(self.path, _WHAT, BOOK_VERSION, (_SCHEMA,))

    def entry(self, key: str) -> Entry | None:
        rows = self._select("WHERE key = ?", key)
        return rows[0] if rows else None

    def live(self, now: Instant) -> tuple[Entry, ...]:
        """Return the entries that take cores now or later, by start."""
        found = [each for each in self._select("WHERE NOT json_extract(entry, '$.released')") if each.live(now)]
        return tuple(sorted(found, key=lambda each: (each.slot.start, each.slot.end, each.key)))

    def reservations(self, now: Instant) -> tuple[Reservation, ...]:
        """Return all holds and reservations that the system has, by start."""
        return tuple(each.reservation() for each in self.live(now) if each.made)

    def answer(self, key: str, now: Instant) -> Reservation | Refusal:
        """Return the hold or reservation of a key, or the refusal that explains its absence."""
        entry = self.entry(key)
        if entry is not None and entry.stands(now):
            return entry.reservation()
        if entry is not None and entry.released:
            return Refusal(entry.unit, RefusalCode.CANCELLED, detail=f"{key} was released")
        reason = "was never held" if entry is None else "is no longer held: its time ran out"
        return Refusal(0 if entry is None else entry.unit, RefusalCode.HOLD_EXPIRED, detail=f"{key} {reason}")

    def to_remove(self, now: Instant) -> tuple[Entry, ...]:
        """Return entries that were released, expired or ended and may still be on the system."""
        return tuple(
            each
            for each in self._select("WHERE NOT entry ->> 'removed' AND entry ->> 'name' <> ''")
            if not each.live(now)
        )

    def intend(self, entry: Entry) -> None:
        """Record a hold before the system is asked for it.

        Raises:
            StorageFailed: if it cannot be written, as for all changes.
        """
        self._write(entry)

    def change(self, key: str, **changes: Any) -> Entry:
        """Change fields of a key and return its new entry."""
        before = self.entry(key)
        assert before is not None, f"{key} is not in the book"
        after = replace(before, **changes)
        self._write(after)
        return after

    def release(self, key: str) -> Entry | None:
        """Release a key for good and return its entry; None for a key that was never held and now never can be."""
        if self.entry(key) is None:
            self._write(Entry(key, "", released=True, removed=True))
            return None
        return self.change(key, released=True)

    def drop(self, key: str) -> None:
        """Forget a hold that the system certainly has not made, so that its key can be held again."""
        self._execute("DELETE FROM hold WHERE key = ?", (key,))

    def forget(self, keys: Sequence[str], now: Instant) -> None:
        """Forget keys that are over; entries that are live or may still be on the system stay."""
        gone = []
        for key in keys:
            entry = self.entry(key)
            if entry is not None and not entry.live(now) and (entry.removed or not entry.name):
                gone.append(key)
        self._execute("DELETE FROM hold WHERE key IN (SELECT value FROM json_each(?))", (json.dumps(gone),))

    def _write(self, entry: Entry) -> None:
        text = json.dumps(_converter.unstructure(entry))
        self._execute(
            "INSERT INTO hold (key, entry) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET entry = excluded.entry",
            (entry.key, text),
        )

    def _execute(self, sql: str, values: Sequence[Any]) -> None:
        with storing(self.path), transaction(self._connection):
            self._connection.execute(sql, values)

    def _select(self, condition: str, *values: Any) -> list[Entry]:
        return _selected(self._connection, self.path, condition, *values)


def book_path(folder: Path, resource: str) -> Path:
    """The file of a resource's book in the folder of the reservations."""
    return folder / f"{resource}.holds.sqlite"


def read_book(path: Path) -> tuple[Entry, ...]:
    """Return all entries of a book without changing the file.

    Raises:
        StorageFailed: if it cannot be read.
        StateDamaged: if it is no book, or broken.
        WrongVersion: if it is of another version.
    """
    with reading(path, _WHAT, BOOK_VERSION) as connection:
        return () if connection is None else tuple(_selected(connection, path, ""))


def _selected(connection: sqlite3.Connection, path: Path, condition: str, *values: Any) -> list[Entry]:
    with storing(path):
        rows = connection.execute(f"SELECT entry FROM hold {condition} ORDER BY number", values).fetchall()  # noqa: S608
    try:
        return [_converter.structure(json.loads(text), Entry) for (text,) in rows]
    except (ValueError, TypeError, KeyError, BaseValidationError) as error:
        raise StorageFailed(f"a row of the book of holds cannot be read: {error}", path=path) from error
