"""Sales of the market over time, limited in number.

A sale is what an agreement was paid, without its buyer; all users see it. The users' agents keep the record of it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ramp.model.instant import HOUR, Duration, Instant
from ramp.model.money import MINOR_UNITS_PER_CREDIT
from ramp.protocol.outcome import RequestOutcome, RequestStatus

SALES_MAX: Final = 100_000
"""Sales in memory; the oldest are forgotten."""

SHOWN_MAX: Final = 5000
"""Latest sales that a page reads."""


@dataclass(frozen=True, slots=True)
class Sale:
    """A slot that was sold, at the time of its payment, with the cores charged and the cost in minor units."""

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
    """The sales; keeps the latest `most`."""

    def __init__(self, most: int = SALES_MAX) -> None:
        self._most = most
        self._sales: list[Sale] = []  # by time
        self._known: set[str] = set()

    def sold(self, sales: Iterable[Sale]) -> bool:
        """Add sales; returns whether any was new."""
        new = [each for each in sales if each.agreement_id not in self._known]
        for each in new:
            self._known.add(each.agreement_id)
            insort(self._sales, each, key=lambda sale: (sale.at, sale.agreement_id))
        self._known.difference_update(each.agreement_id for each in self._sales[: -self._most])
        del self._sales[: -self._most]
        return bool(new)

    def since(self, begin: Instant) -> tuple[Sale, ...]:
        """Return the sales from an instant on, by time; at most the latest `SHOWN_MAX`."""
        return tuple(self._sales[bisect_left(self._sales, begin, key=lambda sale: sale.at) :][-SHOWN_MAX:])
