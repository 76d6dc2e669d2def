"""Sales of the market over time in an SQLite file of the state folder, limited in size.

A sale is what an agreement was paid, without its buyer; all users see it. Other parts of RAMP do not depend on the
file: if it cannot be written, only charts and estimates are incomplete.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ramp.errors import RampError
from ramp.model.instant import HOUR, Duration, Instant
from ramp.model.money import MINOR_UNITS_PER_CREDIT
from ramp.protocol.outcome import RequestOutcome, RequestStatus
from ramp.runtime.sqlite_file import open_file, transaction
from ramp.runtime.storage_errors import STORAGE_ERRORS, storing

SALES_MAX: Final = 100_000
"""Stored sales; the oldest are deleted."""

TRIM_EVERY: Final = 1000
"""Sales added between two checks of the limit."""

SHOWN_MAX: Final = 5000
"""Latest sales that a page reads."""

SALES_VERSION: Final = 1
"""Version of the file format."""

_SCHEMA: Final = (
    """
    CREATE TABLE sales (
        agreement_id TEXT PRIMARY KEY,
        at           INTEGER NOT NULL,
        resource     TEXT NOT NULL,
        cores        INTEGER NOT NULL,
        duration     INTEGER NOT NULL,
        cost         INTEGER NOT NULL
    ) STRICT
    """,
    """
    CREATE INDEX latest ON sales (at)
    """,
)


@dataclass(frozen=True, slots=True)
class Sale:
    """A slot that was sold.

    Attributes:
        agreement_id: of its agreement.
        at: when it was paid.
        resource: who sold it.
        cores: charged for.
        duration: of the slot.
        cost: minor units.
    """

    agreement_id: str
    at: Instant
    resource: str
    cores: int
    duration: Duration
    cost: int

    @property
    def core_hours(self) -> float:
        """Volume, for charts only."""
        return self.cores * self.duration / HOUR

    @property
    def price(self) -> float:
        """Credits per core-hour charged, for charts only."""
        return mean_price((self,))


def mean_price(sales: Iterable[Sale]) -> float:
    """Return the mean price of sales weighted by volume, credits per core-hour; for charts and estimates only."""
    cost = volume = 0
    for each in sales:
        cost += each.cost
        volume += each.cores * each.duration
    return cost * HOUR / (MINOR_UNITS_PER_CREDIT * volume) if volume else 0.0


def sales_of(outcome: RequestOutcome) -> list[Sale]:
    """Return the sales of a request; none unless it was committed."""
    if outcome.status is not RequestStatus.COMMITTED:
        return []
    at = outcome.started_at + outcome.duration
    return [
        Sale(each.agreement_id, at, each.offer.resource, each.offer.cores, each.offer.end - each.offer.start, each.cost)
        for each in outcome.units
        if each.agreement_id and each.offer.end > each.offer.start
    ]


class SaleHistory:
    """The sales.

    Args:
        path: of the file; made if it does not exist, readable by its owner only.
        most: sales that are kept, give or take `TRIM_EVERY`.

    Raises:
        StorageFailed: if the file cannot be opened.
        StateDamaged: if it is something else.
        WrongVersion: if it is of another version.
    """

    def __init__(self, path: Path, most: int = SALES_MAX) -> None:
        with storing(path):
            path.touch(mode=0o600)
        self._most = most
        self._added = 0
        self._told = False
        self._file = open_file(path, "file of sales", SALES_VERSION, _SCHEMA)
        self._file.execute("PRAGMA synchronous=NORMAL")  # the last seconds before a power cut may be missing

    def close(self) -> None:
        self._file.close()

    def sold(self, sales: Iterable[Sale]) -> bool:
        """Store sales; returns whether any was new."""
        rows = [(each.agreement_id, each.at, each.resource, each.cores, each.duration, each.cost) for each in sales]
        if not rows:
            return False
        try:
            with transaction(self._file):
                before = self._file.total_changes
                self._file.executemany("INSERT OR IGNORE INTO sales VALUES (?, ?, ?, ?, ?, ?)", rows)
                new = self._file.total_changes - before
                self._added += new
                if self._added >= TRIM_EVERY:
                    self._added = 0
                    self._file.execute(
                        "DELETE FROM sales WHERE at < (SELECT at FROM sales ORDER BY at DESC LIMIT 1 OFFSET ?)",
                        (self._most - 1,),
                    )
        except (*STORAGE_ERRORS, RampError) as error:
            self._failed(error)
            return False
        self._told = False
        return new > 0

    def since(self, begin: Instant) -> tuple[Sale, ...]:
        """Return the sales from an instant on, by time; at most the latest `SHOWN_MAX`."""
        try:
            rows = self._file.execute(
                "SELECT * FROM sales WHERE at >= ? ORDER BY at DESC, agreement_id LIMIT ?", (begin, SHOWN_MAX)
            ).fetchall()
        except STORAGE_ERRORS as error:
            self._failed(error)
            return ()
        return tuple(Sale(*row) for row in reversed(rows))

    def _failed(self, error: Exception) -> None:
        if not self._told:
            logging.getLogger(__name__).warning("cannot read or store sales: %s", error)
        self._told = True
