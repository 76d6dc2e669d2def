"""Backfilling on a machine of cabled lines while nothing is reserved: two states say all.

What runs holds the machine now, and until the promised time of the first waiting job nothing else does. So a job that
ends by then needs a place clear of what is taken now, and any other one a place clear of the promised place as well.
The promise rests on what is left when running jobs leave in the order of their expected ends: that only shrinks, so
the first end after which the job fits is found by halving.

numba keeps compiled functions until their own file changes: after a change of simulation/machines/bluegene/search.py,
touch this file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from simulation.compiling import compiled
from simulation.machines.bluegene.machine import BlueGene, StateVector
from simulation.machines.bluegene.search import Tables, first_fit
from simulation.machines.interface import JobRequest, Placement

_FIRST_ROOM = 64


@compiled
def promised_place(
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    masks: NDArray[np.uint64],
    slots: NDArray[np.int64],
    now: int,
    out: NDArray[np.uint64],
    tables: Tables,
    kinds: NDArray[np.int64],
    times: NDArray[np.int64],
    answer: NDArray[np.int64],
) -> bool:
    """Find the first expected end after which a request fits.

    Args:
        starts: of the running jobs, microseconds, shape (room,).
        lengths: run times asked for, microseconds, at least 1, shape (room,).
        masks: what they hold, shape (room, words).
        slots: which of the rows are in use.
        now: microseconds.
        out: what is out of service.
        tables: of the machine.
        kinds: kinds of the request, in order.
        times: out: the end found, and the first one of all; shape (2,).
        answer: out: as of `first_fit`.

    Returns:
        False where it does not fit even when nothing runs.
    """
    count = slots.shape[0]
    ends = np.empty(count, np.int64)
    for index in range(count):
        slot = slots[index]
        length = lengths[slot]
        while starts[slot] + length <= now:
            length *= 2  # what outruns its request is expected to run as long again
        ends[index] = starts[slot] + length
    order = np.argsort(ends)
    # left[index]: what is out of service or held by jobs from order[index] on
    left = np.empty((count + 1, out.shape[0]), np.uint64)
    for word in range(out.shape[0]):
        left[count, word] = out[word]
    for index in range(count - 1, -1, -1):
        slot = slots[order[index]]
        for word in range(out.shape[0]):
            left[index, word] = left[index + 1, word] | masks[slot, word]
    low = 0
    high = count
    times[1] = ends[order[0]] if count else now
    while low < high:  # whether it fits once the job order[middle], and those that end with it, have left
        middle = (low + high) // 2
        after = middle + 1
        while after < count and ends[order[after]] == ends[order[middle]]:
            after += 1
        found = first_fit(left[after], kinds, tables, answer)
        if found < 0:
            low = after
        else:
            high = middle
    if low == count:
        return False
    after = low + 1
    while after < count and ends[order[after]] == ends[order[low]]:
        after += 1
    times[0] = ends[order[low]]
    first_fit(left[after], kinds, tables, answer)
    return True


@compiled
def first_fit_beside(
    busy: NDArray[np.uint64],
    beside: NDArray[np.uint64],
    clear: NDArray[np.bool_],
    kinds: NDArray[np.int64],
    tables: Tables,
    answer: NDArray[np.int64],
) -> int:
    """Find the first kind that has a place, where each kind says which of two states it heeds.

    Args:
        busy: what is taken now.
        beside: that and the promised place.
        clear: whether the kind's place must be clear of the promised place too, shape (kinds,).
        kinds: kinds to try, in order.
        tables: of the machine.
        answer: out: as of `first_fit`.

    Returns:
        Index into `kinds`, or -1.
    """
    for index in range(kinds.shape[0]):
        found = first_fit(beside if clear[index] else busy, kinds[index : index + 1], tables, answer)
        if found >= 0:
            return index
    return -1


class CabledBackfill:
    """What runs on a machine of cabled lines until when, and where waiting jobs fit beside a promise.

    Args:
        machine: the machine as it changes; never changed here.
    """

    def __init__(self, machine: BlueGene) -> None:
        self._machine = machine
        self._slots: dict[int, tuple[int, object]] = {}
        self._unused = list(range(_FIRST_ROOM))
        self._starts: NDArray[np.int64] = np.zeros(_FIRST_ROOM, np.int64)
        self._lengths: NDArray[np.int64] = np.ones(_FIRST_ROOM, np.int64)
        self._masks: NDArray[np.uint64] = np.zeros((_FIRST_ROOM, machine.catalogue.state_words), np.uint64)
        self._times: NDArray[np.int64] = np.zeros(2, np.int64)
        self._answer: NDArray[np.int64] = np.zeros(1 + 2 * len(machine.extents), np.int64)
        self._beside: StateVector = machine.state_vector()
        self._promised: StateVector = np.zeros_like(self._beside)

    def add(self, number: int, run: object, start: int, length: int, placement: Placement) -> None:
        """Take note of a running job.

        Args:
            number: the job's.
            run: its present run.
            start: microseconds.
            length: run time that it asked for, microseconds, at least 1.
            placement: where it runs.
        """
        if not self._unused:
            room = len(self._starts)
            self._unused = list(range(room, 2 * room))
            self._starts = np.pad(self._starts, (0, room))
            self._lengths = np.pad(self._lengths, (0, room), constant_values=1)
            self._masks = np.pad(self._masks, ((0, room), (0, 0)))
        slot = self._unused.pop()
        self._slots[number] = (slot, run)
        self._starts[slot], self._lengths[slot] = start, length
        self._masks[slot] = self._machine.mask_of(placement)

    def missing(self, running: Mapping[int, object]) -> list[int]:
        """Forget the runs that are over, also of requeued jobs; numbers of those that run and have not been noted."""
        for number in [number for number, (_, run) in self._slots.items() if running.get(number) is not run]:
            self._unused.append(self._slots.pop(number)[0])
        return [number for number in running if number not in self._slots] if len(running) > len(self._slots) else []

    def promise(self, request: JobRequest, now: int) -> tuple[int, int, Placement] | None:
        """Return when and where a request that does not fit now will fit.

        Args:
            request: what is asked of the machine.
            now: microseconds.

        Returns:
            The expected end after which it fits, the first expected end of all (until then the promise rests on
            nothing new), and the place; None where it does not fit even when nothing runs.
        """
        catalogue = self._machine.catalogue
        kinds = catalogue.kinds_of(request)
        slots = np.fromiter((slot for slot, _ in self._slots.values()), np.int64, len(self._slots))
        out = self._machine.out_of_service()
        found = promised_place(
            self._starts, self._lengths, self._masks, slots, now, out, catalogue.tables, kinds, self._times,
            self._answer,
        )  # fmt: skip
        if not found:
            return None
        shadow, first_end = self._times.tolist()
        return shadow, first_end, catalogue.placement(self._answer, request.job_id)

    def keep_clear(self, promised: Placement | None) -> None:
        """Say which place those must keep clear of who are to."""
        self._promised = np.zeros_like(self._beside) if promised is None else self._machine.mask_of(promised)

    def place_first(self, wishes: Sequence[tuple[JobRequest, bool]]) -> tuple[int, Placement] | None:
        """Index and placement of the first request that fits now.

        Args:
            wishes: requests in order, and whether each must keep clear of the promised place.
        """
        numbers_of = self._machine.catalogue.numbers_of
        numbers = [numbers_of(request) for request, _ in wishes]
        kinds = [kind for each in numbers for kind in each]
        clear = [keeps_clear for each, (_, keeps_clear) in zip(numbers, wishes, strict=True) for _ in each]
        busy = self._machine.state_vector()
        np.bitwise_or(busy, self._promised, out=self._beside)
        tables = self._machine.catalogue.tables
        found: int = first_fit_beside(
            busy, self._beside, np.array(clear, np.bool_), np.array(kinds, np.int64), tables, self._answer
        )
        if found < 0:
            return None
        index = 0
        while found >= len(numbers[index]):
            found -= len(numbers[index])
            index += 1
        return index, self._machine.catalogue.placement(self._answer, wishes[index][0].job_id)
