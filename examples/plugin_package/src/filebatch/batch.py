"""The imaginary batch system: jobs of the site's own people and reservations, in one SQLite file.

It stands for what Slurm or Grid Engine would be asked. Times are microseconds since 1970, UTC.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

TABLES = """
CREATE TABLE IF NOT EXISTS jobs (name TEXT PRIMARY KEY, cores INTEGER, begins INTEGER, ends INTEGER);
CREATE TABLE IF NOT EXISTS reservations (
    number INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT UNIQUE, state TEXT, cores INTEGER, begins INTEGER, ends INTEGER,
    load REAL, held_until INTEGER
);
"""


@dataclass(frozen=True)
class Window:
    """Cores that are taken from one instant to another."""

    begins: int
    ends: int
    cores: int


class Batch:
    """The file, opened."""

    def __init__(self, file: Path) -> None:
        # Every transaction is on the disk when it ends: what was promised must be there after a crash.
        self._rows = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
        self._rows.row_factory = sqlite3.Row
        self._rows.executescript(f"PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; {TABLES}")

    @contextmanager
    def changing(self) -> Iterator[None]:
        """One change at a time, whole or not at all."""
        self._rows.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._rows.execute("ROLLBACK")
            raise
        self._rows.execute("COMMIT")

    def add_job(self, name: str, window: Window) -> None:
        """Let one of the site's own jobs run."""
        self._rows.execute("INSERT INTO jobs VALUES (?, ?, ?, ?)", (name, window.cores, window.begins, window.ends))

    def jobs(self, now: int) -> list[sqlite3.Row]:
        """Jobs that run or wait, by start."""
        return self._rows.execute("SELECT * FROM jobs WHERE ends > ? ORDER BY begins", (now,)).fetchall()

    def reservations(self, now: int) -> list[sqlite3.Row]:
        """Holds and reservations that have not ended, by start."""
        found = self._rows.execute(
            "SELECT * FROM reservations WHERE ends > ? AND (state = 'firm' OR state = 'held' AND held_until > ?)"
            " ORDER BY begins, number",
            (now, now),
        )
        return found.fetchall()

    def reservation(self, key: str) -> sqlite3.Row | None:
        """What was ever made under a key."""
        found: sqlite3.Row | None = self._rows.execute("SELECT * FROM reservations WHERE key = ?", (key,)).fetchone()
        return found

    def taken(self, now: int) -> list[Window]:
        """All that is taken from now on."""
        rows = [*self.jobs(now), *self.reservations(now)]
        return [Window(row["begins"], row["ends"], row["cores"]) for row in rows]

    def add_reservation(self, key: str, window: Window, load: float, held_until: int) -> None:
        """Set cores aside until a deadline."""
        values = (key, window.cores, window.begins, window.ends, load, held_until)
        self._rows.execute(
            "INSERT INTO reservations (key, state, cores, begins, ends, load, held_until)"
            " VALUES (?, 'held', ?, ?, ?, ?, ?)",
            values,
        )

    def make_firm(self, key: str) -> None:
        """A hold is a reservation now."""
        self._rows.execute("UPDATE reservations SET state = 'firm', held_until = NULL WHERE key = ?", (key,))

    def release(self, key: str) -> None:
        """Give a key's cores back, for good, whether there were any or not."""
        self._rows.execute(
            "INSERT INTO reservations (key, state, cores, begins, ends, load) VALUES (?, 'released', 0, 0, 0, 0)"
            " ON CONFLICT (key) DO UPDATE SET state = 'released'",
            (key,),
        )


def cores_taken(windows: list[Window], begins: int, ends: int) -> int:
    """Most cores that are taken at any time of [begins, ends)."""
    moments = [begins, *(each.begins for each in windows if begins < each.begins < ends)]
    return max(sum(each.cores for each in windows if each.begins <= moment < each.ends) for moment in moments)


def mean_taken(windows: list[Window], begins: int, ends: int) -> float:
    """Cores taken in the time-mean of [begins, ends)."""
    parts = (each.cores * max(0, min(each.ends, ends) - max(each.begins, begins)) for each in windows)
    return sum(parts) / (ends - begins)
