"""Prices over time in an SQLite file of the state folder, limited in size.

Start prices are visible to all users; an offer in an auction is visible to the user who asked only. Other parts of
RAMP do not depend on the file: if it cannot be written, only the chart is incomplete.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ramp.errors import RampError
from ramp.model.instant import MINUTE, Duration, Instant
from ramp.protocol.outcome import RequestOutcome, RoundRecord
from ramp.runtime.sqlite_file import open_file, transaction
from ramp.runtime.storage_errors import STORAGE_ERRORS, storing

POINTS_MAX: Final = 100_000
"""Stored points; the oldest are deleted."""

TRIM_EVERY: Final = 1000
"""Points added between two checks of the limit."""

SHOWN_MAX: Final = 5000
"""Latest points that a page shows."""

START_PRICE_EVERY: Final[Duration] = 5 * MINUTE
"""Interval at which an unchanged start price is stored again."""

PRICES_VERSION: Final = 1
"""Version of the file format."""

_SCHEMA: Final = (
    """
    CREATE TABLE points (
        number       INTEGER PRIMARY KEY AUTOINCREMENT,
        at           INTEGER NOT NULL,
        resource     TEXT NOT NULL,
        price        INTEGER NOT NULL,
        owner        TEXT NOT NULL,
        request_id   TEXT NOT NULL,
        round_number INTEGER NOT NULL,
        unit         INTEGER NOT NULL
    ) STRICT
    """,
    """
    CREATE UNIQUE INDEX offers ON points (owner, request_id, round_number, unit, resource) WHERE owner <> ''
    """,
    """
    CREATE INDEX latest ON points (at, number)
    """,  # a page asks for the last of them every few seconds
)


@dataclass(frozen=True, slots=True)
class PricePoint:
    """A price of a resource at a moment.

    Attributes:
        at: when.
        resource: who.
        price: credits per core-hour.
        request_id: the auction that it was offered in; empty for a start price.
        round_number: of that auction, from 1; 0 for a start price.
        unit: of the request; 0 for a start price.
    """

    at: Instant
    resource: str
    price: int
    request_id: str = ""
    round_number: int = 0
    unit: int = 0


def round_points(request_id: str, record: RoundRecord, at: Instant) -> list[PricePoint]:
    """Return the offers of a round."""
    return [
        PricePoint(at, each.resource, each.cpu_hour_cost, request_id, record.round_number, each.unit)
        for each in record.offers
    ]


def outcome_points(outcome: RequestOutcome) -> list[PricePoint]:
    """Return the offers of a finished request, with times derived from the durations of its rounds."""
    found = []
    at = outcome.started_at
    for record in outcome.rounds:
        at += record.duration
        found += round_points(outcome.request_id, record, at)
    return found


class PriceHistory:
    """The points.

    Args:
        path: of the file; made if it does not exist, readable by its owner only.
        most: points that are kept, give or take `TRIM_EVERY`.

    Raises:
        StorageFailed: if the file cannot be opened.
        StateDamaged: if it is something else.
        WrongVersion: if it is of another version.
    """

    def __init__(self, path: Path, most: int = POINTS_MAX) -> None:
        with storing(path):
            path.touch(mode=0o600)
        self._most = most
        self._added = 0
        self._told = False
        self._first: dict[str, tuple[int, Instant]] = {}
        self._file = open_file(path, "file of prices", PRICES_VERSION, _SCHEMA)
        self._file.execute("PRAGMA synchronous=NORMAL")  # the last seconds before a power cut may be missing

    def close(self) -> None:
        self._file.close()

    def offered(self, owner: str, points: Iterable[PricePoint]) -> None:
        """Store offers to a user, except those stored before."""
        self._add([(each, owner) for each in points])

    def start_prices(self, prices: Mapping[str, int], at: Instant) -> None:
        """Store start prices that changed or were not stored for `START_PRICE_EVERY`."""
        changed = []
        for resource, price in prices.items():
            last, then = self._first.get(resource, (None, 0))
            if last != price or at >= then + START_PRICE_EVERY:
                self._first[resource] = (price, at)
                changed.append((PricePoint(at, resource, price), ""))
        self._add(changed)

    def points(self, owner: str) -> tuple[PricePoint, ...]:
        """Return the latest points that a user may see, by time; the empty name sees start prices only."""
        try:
            rows = self._file.execute(
                "SELECT at, resource, price, request_id, round_number, unit FROM points"
                " WHERE owner IN ('', ?) ORDER BY at DESC, number DESC LIMIT ?",
                (owner, SHOWN_MAX),
            ).fetchall()
        except STORAGE_ERRORS as error:
            self._failed(error)
            return ()
        return tuple(PricePoint(*row) for row in reversed(rows))

    def _add(self, points: list[tuple[PricePoint, str]]) -> None:
        if not points:
            return
        rows = [
            (each.at, each.resource, each.price, owner, each.request_id, each.round_number, each.unit)
            for each, owner in points
        ]
        try:
            with transaction(self._file):
                self._file.executemany(
                    "INSERT OR IGNORE INTO points (at, resource, price, owner, request_id, round_number, unit)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?)",
                    rows,
                )
                self._added += len(rows)
                if self._added >= TRIM_EVERY:
                    self._added = 0
                    self._file.execute(
                        "DELETE FROM points WHERE number <= (SELECT max(number) FROM points) - ?", (self._most,)
                    )
        except (*STORAGE_ERRORS, RampError) as error:
            self._failed(error)
            return
        self._told = False

    def _failed(self, error: Exception) -> None:
        if not self._told:
            logging.getLogger(__name__).warning("cannot store prices: %s", error)
        self._told = True
