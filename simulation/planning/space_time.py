"""What is taken on a machine over time, and the earliest window in which a request has a place for its whole time.

The search is complete: a window is refused only if no place is free of all that is taken at any time of it, units and
cables alike.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Hashable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from simulation.machines.interface import JobRequest, Placement
from simulation.planning.placers import ALWAYS, Placer, StateVector
from simulation.planning.step_table import Steps, change, empty_steps, step_at, take_all, union_over, with_room


class Floors:
    """Begins before which jobs of a kind and length need not be looked for, while what is taken only grows.

    A longer job of a kind never fits earlier than a shorter one: the earliest begin that a job was found to need holds
    for all later ones of its kind that are no shorter.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, list[tuple[int, int]]] = {}  # length and begin, both ascending

    def floor(self, kind: Hashable, length: int, default: int, booked: int | None = None) -> int:
        """Return the first begin that is worth looking at.

        Args:
            kind: of the request.
            length: of the job.
            default: where nothing is known.
            booked: begin of a promise of the job's own. It may have been what stood in the way of the others from the
                begin on at which they would have met it.
        """
        floor = default
        for noted, begin in self._known.get(kind, ()):
            if noted > length:
                break
            floor = max(floor, begin if booked is None else min(begin, booked - noted + 1))
        return floor

    def note(self, kind: Hashable, length: int, begin: int) -> None:
        """Note that jobs of the kind and length begin no earlier; a longer job with an earlier begin adds nothing."""
        pairs = self._known.setdefault(kind, [])
        pairs[:] = [pair for pair in pairs if pair[0] < length or pair[1] > begin]
        insort(pairs, (length, begin))

    def clear(self) -> None:
        """Forget all, as something has been given back."""
        self._known.clear()


_FIRST_ROOM: Final = 64


class SpaceTime:
    """What is taken on one machine from a time on.

    Args:
        placer: of the machine.
        now: microseconds; nothing is booked or looked for earlier.
    """

    def __init__(self, placer: Placer, now: int) -> None:
        self.now = now
        self._placer = placer
        self._steps: Steps = empty_steps(_FIRST_ROOM, now, placer.out, placer.unit_words)
        self._count = 1

    def book(self, begin: int, end: int, placement: Placement) -> None:
        """Take what a placement holds during [begin, end); earlier parts are left out, and bookings may overlap."""
        self._change(begin, end, placement, True)

    def book_all(self, bookings: Sequence[tuple[int, int, Placement]]) -> None:
        """Take what many placements hold: begin, end and placement of each, as `book` takes them."""
        live = [(max(begin, self.now), end, placement) for begin, end, placement in bookings if end > self.now]
        live = [booking for booking in live if booking[0] < booking[1]]
        if live:
            self._make_room(len(live))
            self._count = take_all(
                self._steps,
                self._count,
                np.array([begin for begin, _, _ in live], np.int64),
                np.array([end for _, end, _ in live], np.int64),
                np.array([self._placer.mask(placement) for _, _, placement in live]),
            )

    def cancel(self, begin: int, end: int, placement: Placement) -> None:
        """Give back what a placement holds during [begin, end), which no other booking holds as well."""
        self._change(begin, end, placement, False)

    def _change(self, begin: int, end: int, placement: Placement, add: bool) -> None:
        begin = max(begin, self.now)
        if begin < end:
            self._make_room(1)
            self._count = change(self._steps, self._count, begin, end, self._placer.mask(placement), add)

    def earliest(
        self, request: JobRequest, length: int, not_before: int, latest: int = ALWAYS
    ) -> tuple[int, Placement] | None:
        """Return the earliest begin in [not_before, latest] of a window of `length` with a place, and the place.

        Args:
            request: what is asked of the machine.
            length: microseconds, at least 1.
            not_before: microseconds.
            latest: microseconds.
        """
        return self._placer.earliest(self._steps, self._count, request, length, max(not_before, self.now), latest)

    def plan(self, requests: Sequence[JobRequest], lengths: Sequence[int], floors: Floors) -> NDArray[np.int64]:
        """Plan requests one after the other, each at its earliest begin, and take their places.

        Args:
            requests: what is asked of the machine.
            lengths: microseconds, at least 1, one a request.
            floors: what planning has shown here before, and shows now.

        Returns:
            The begins, microseconds; -1 where nothing lets a request begin.
        """
        begins = np.full(len(requests), -1, np.int64)
        for job, (request, length) in enumerate(zip(requests, lengths, strict=True)):
            found = self.earliest(request, length, floors.floor(request.kind, length, self.now))
            if found is not None:
                begins[job] = begin = found[0]
                floors.note(request.kind, length, begin)
                self.book(begin, begin + length, found[1])
        return begins

    def taken_over(self, begin: int, end: int) -> StateVector:
        """Return all that is taken or out of service at any time of [begin, end)."""
        union = np.empty_like(self._placer.out)
        union_over(self._steps, self._count, step_at(self._steps.times, self._count, max(begin, self.now)), end, union)
        return union

    def levels(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return how many units are taken or out of service over time.

        Returns:
            Begin of each step in microseconds, and the units taken until the next one; both of shape (steps,).
        """
        return self._steps.times[: self._count].copy(), self._steps.taken[self._steps.order[: self._count]]

    def bits_over_time(self, first: int, last: int) -> NDArray[np.int64]:
        """Return how many bits of the words [first, last) of a state are taken or out of service in each step."""
        rows = self._steps.rows[self._steps.order[: self._count], first:last] | self._placer.out[first:last]
        counts: NDArray[np.int64] = np.bitwise_count(rows).sum(axis=1, dtype=np.int64)
        return counts

    def _make_room(self, bookings: int) -> None:
        needed = self._count + 2 * bookings
        if needed > len(self._steps.times):
            self._steps = with_room(self._steps, max(needed, 2 * len(self._steps.times)))
