"""Window first-fit on a torus of boxes as one compiled loop: the sweeps of the Angara study in minutes.

The same decisions as `simulation.queueing.simulation` with `WindowFirstFit` (with the allocator `room-ahead`:
`WindowRoomAhead`) and an `AngaraMachine` whose nodes are all in service. There are no reservations, and no job runs
longer than it asks for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from simulation.machines.box_policy import Choice
from simulation.machines.box_search import BoxArrays, choose, choose_room_ahead, keep_free, list_free, list_phases
from simulation.machines.interface import JobRequest
from simulation.machines.ranked_boxes import RankedBoxes
from simulation.schedulers.window_first_fit import WindowCounts
from simulation.workload.metrics import Schedule

Int64Array = NDArray[np.int64]
_NEVER = np.iinfo(np.int64).max
_ROOM_AHEAD = int(Choice.ROOM_AHEAD)


@dataclass(frozen=True, slots=True, eq=False)
class BoxRun:
    """What came out.

    Attributes:
        schedule: of the jobs that ran, in order of submission.
        box: number of the box each of them ran in, shape (jobs,).
        refused: jobs that would not fit the empty machine.
    """

    schedule: Schedule
    box: Int64Array
    refused: int


def run_window_first_fit(
    boxes: RankedBoxes,
    submit_time: Int64Array,
    run_time: Int64Array,
    size: Int64Array,
    *,
    window: int,
    requested_time: Int64Array | None = None,
    counts: WindowCounts = WindowCounts.INDICES,
) -> BoxRun:
    """Run jobs of any shape through an empty torus.

    Args:
        boxes: the torus and its allocator.
        submit_time: ascending, microseconds, shape (jobs,).
        run_time: microseconds, shape (jobs,).
        size: nodes asked for, shape (jobs,).
        window: of the scheduler.
        requested_time: microseconds, not below the run times, which are taken where it is None; shape (jobs,).
        counts: what the window counts.
    """
    sizes, kind = np.unique(size, return_inverse=True)
    wanted = np.stack([boxes.wanted(JobRequest(1, int(one))) for one in sizes])
    fits = np.any(wanted, axis=1).reshape(-1)[kind]
    started, box = _run(
        boxes.arrays,
        int(boxes.policy.choice),
        wanted,
        kind[fits].astype(np.int64),
        submit_time[fits],
        run_time[fits],
        (run_time if requested_time is None else requested_time)[fits],
        window,
        counts is WindowCounts.WAITING,
    )
    held = boxes.arrays.box_volumes[box]
    schedule = Schedule(submit_time[fits], started, started + run_time[fits], size[fits], held, boxes.table.grid.size)
    return BoxRun(schedule, box, int((~fits).sum()))


# numba keeps this on disk until this file changes; after a change of box_search.py alone, touch this file
@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _run(
    arrays: BoxArrays,
    choice: int,
    wanted: NDArray[np.bool_],
    kind: Int64Array,
    submit_time: Int64Array,
    run_time: Int64Array,
    requested_time: Int64Array,
    window: int,
    by_waiting: bool,
) -> tuple[Int64Array, Int64Array]:
    """Start and box of each job."""
    jobs = kind.shape[0]
    nodes = arrays.coordinates.shape[0]
    words = arrays.masks.shape[1]
    start = np.full(jobs, -1, np.int64)
    box = np.full(jobs, -1, np.int64)
    busy = np.zeros(words, np.uint64)
    free = np.empty(arrays.masks.shape[0], np.int64)
    dead = np.zeros(arrays.masks.shape[0], np.bool_)
    count = list_free(arrays.masks, dead, busy, free)
    failed = np.zeros(wanted.shape[0], np.bool_)
    most_phases = nodes + 1 if choice == _ROOM_AHEAD else 0
    phase_rows = np.empty((most_phases, arrays.masks.shape[0]), np.int64)
    phase_counts = np.zeros(most_phases, np.int64)
    phase_lengths = np.zeros(most_phases, np.int64)
    running = np.empty(nodes, np.int64)
    running_count = 0
    arrived = 0
    oldest = 0
    while oldest < jobs:
        now = submit_time[arrived] if arrived < jobs else _NEVER
        for index in range(running_count):
            job = running[index]
            now = min(now, start[job] + run_time[job])
        released = False
        index = 0
        while index < running_count:
            job = running[index]
            if start[job] + run_time[job] == now:
                for word in range(words):
                    busy[word] ^= arrays.box_masks[box[job], word]
                running_count -= 1
                running[index] = running[running_count]
                released = True
            else:
                index += 1
        if released:
            count = list_free(arrays.masks, dead, busy, free)
            failed[:] = False
        while arrived < jobs and submit_time[arrived] == now:
            arrived += 1
        job = oldest
        position = 0
        while job < arrived and (position if by_waiting else job - oldest) < window:
            if start[job] < 0:
                row = -1
                if failed[kind[job]]:
                    pass
                elif choice != _ROOM_AHEAD:
                    row = choose(arrays, wanted[kind[job]], free, count, busy, choice)
                elif choose(arrays, wanted[kind[job]], free, count, busy, 0) >= 0:
                    held = np.empty((running_count, words), np.uint64)
                    ends = np.empty(running_count, np.int64)
                    for index in range(running_count):
                        ends[index] = start[running[index]] + requested_time[running[index]]
                    order = np.argsort(ends)
                    for index in range(running_count):
                        held[index] = arrays.box_masks[box[running[order[index]]]]
                    end = now + requested_time[job]
                    phases = list_phases(
                        arrays, dead, busy, held, ends[order], now, end, phase_rows, phase_counts, phase_lengths
                    )
                    row = choose_room_ahead(
                        arrays, wanted[kind[job]], free, count, phases, phase_rows, phase_counts, phase_lengths
                    )
                if row < 0:
                    failed[kind[job]] = True
                    position += 1
                else:
                    start[job] = now
                    box[job] = arrays.box_of[row]
                    running[running_count] = job
                    running_count += 1
                    for word in range(words):
                        busy[word] |= arrays.masks[row, word]
                    count = keep_free(arrays.masks, busy, free, count)
                    while oldest < arrived and start[oldest] >= 0:
                        oldest += 1
            job += 1
    return start, box
