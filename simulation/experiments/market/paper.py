"""What the RAMP paper says in numbers (its sections 10 to 12), to be put beside ours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ramp.model.instant import HOUR, MINUTE, Duration


@dataclass(frozen=True, slots=True)
class Workload:
    """One line of Table 3: cores, time until the start, price in credits per core hour."""

    name: str
    cores: int
    lead: Duration
    price: int


TABLE3: Final = (
    Workload("exp1", 16, 5 * MINUTE, 70),
    Workload("exp2", 16, 60 * MINUTE, 55),
    Workload("exp3", 16, 12 * HOUR, 35),
    Workload("exp4", 256, 5 * MINUTE, 50),
    Workload("exp5", 256, 60 * MINUTE, 30),
    Workload("exp6", 256, 12 * HOUR, 25),
    Workload("exp7", 1024, 60 * MINUTE, 55),
    Workload("exp8", 1024, 12 * HOUR, 35),
    Workload("exp9", 4096, 60 * MINUTE, 55),
    Workload("exp10", 4096, 12 * HOUR, 35),
    Workload("exp11", 20480, 5 * MINUTE, 80),
    Workload("exp12", 20480, 60 * MINUTE, 55),
    Workload("exp13", 20480, 12 * HOUR, 35),
)

TABLE4: Final = {
    1: (66.00, 18.81),
    2: (60.00, 31.91),
    3: (51.83, 46.19),
    4: (41.83, 61.15),
    5: (37.40, 76.18),
    6: (35.40, 91.18),
    7: (37.83, 106.21),
    8: (37.83, 121.24),
    9: (34.75, 136.26),
    10: (36.50, 151.26),
}
"""Mean sale price in credits per core hour and mean duration in seconds by number of rounds."""

TABLE4_SALES: Final = {3: 6, 4: 6, 5: 5, 6: 5, 7: 6, 8: 6, 9: 4}
"""Sales that the decimals of a mean of whole prices allow (51.83 = 311/6, 37.40 = 187/5, 34.75 = 139/4), by rounds."""

ROUNDS: Final = 3
"""Rounds of bidding in section 10."""

REPETITIONS: Final = 3
MEDIAN_OFFER_PERCENT: Final = 71.1
"""Median offer price over request price."""

WINNERS: Final = 5
"""Resources that won all of the jobs."""

FLAT_FROM_ROUNDS: Final = 5
"""Section 11.1: the price falls with the rounds, with a tail-off at five."""
