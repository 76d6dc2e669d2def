"""The cores of a flat machine over time as bars: running and waiting jobs, and reservations. Pure.

Cores of a flat machine have no coordinates, so each bar is placed as low as possible, in pieces if no gap fits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from ramp.client.machine_state import MachineState

BARS_MAX: Final = 600
"""Maximum number of bars."""


@dataclass(frozen=True, slots=True)
class Bar:
    """Cores that are occupied for a while.

    Attributes:
        name: of the job or reservation.
        kind: `running`, `waiting`, `sold` or `held`; of a simulation's past and future further ones.
        first_core: the lowest core of this piece, from 0.
        cores: of this piece.
        cores_in_all: of all its pieces.
        start: when it begins.
        end: when it is expected to end.
    """

    name: str
    kind: str
    first_core: int
    cores: int
    cores_in_all: int
    start: datetime
    end: datetime


class Taken(NamedTuple):
    """An occupation: its name, kind, number of cores, start and end."""

    name: str
    kind: str
    cores: int
    start: datetime
    end: datetime


def lowest_bars(taken: Iterable[Taken], cores: int, begin: datetime, until: datetime) -> tuple[Bar, ...]:
    """Return the bars of occupations between two times, each as low as possible.

    Args:
        taken: in the order in which places are given.
        cores: of the machine; those above are left out.
        begin: left end of the picture.
        until: right end of the picture.
    """
    found: list[Bar] = []
    for each in taken:
        first, last = max(each.start, begin), min(each.end, until)
        wanted = each.cores if first < last else 0
        for low, high in _gaps(found, cores, first, last):
            if wanted <= 0 or len(found) == BARS_MAX:
                break
            piece = min(high - low, wanted)
            found.append(Bar(each.name, each.kind, low, piece, each.cores, first, last))
            wanted -= piece
    return tuple(found)


def taken_in(state: MachineState) -> Iterator[Taken]:
    """Return the occupations of a machine's snapshot, the lowest first: running jobs, reservations, waiting jobs."""
    for running in state.running:
        yield Taken(str(running.job), "running", running.cores, running.start, running.end)
    for booked in sorted(state.reservations, key=lambda each: each.start):
        kind = "sold" if booked.firm else "held"
        yield Taken(booked.reservation_id, kind, booked.cores, booked.start, booked.end)
    for waiting in sorted(state.queued, key=lambda each: each.start):
        yield Taken(str(waiting.job), "waiting", waiting.cores, waiting.start, waiting.end)


def _gaps(bars: list[Bar], cores: int, start: datetime, end: datetime) -> list[tuple[int, int]]:
    """Return the ranges of cores that are free between two times, the lowest first."""
    free = []
    low = 0
    for each in sorted(
        (each for each in bars if each.start < end and start < each.end), key=lambda bar: bar.first_core
    ):
        if each.first_core > low:
            free.append((low, each.first_core))
        low = max(low, each.first_core + each.cores)
    if low < cores:
        free.append((low, cores))
    return free
