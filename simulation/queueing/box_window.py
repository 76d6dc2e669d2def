"""Window first-fit on a torus of boxes as one compiled loop: the sweeps of the Angara study in minutes.

The same decisions as `simulation.queueing.queue_simulation` with `WindowFirstFit` and an `AngaraMachine` whose nodes
are all in service. There are no reservations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ramp.errors import MachineError
from simulation.compiling import compiled
from simulation.machines.boxes.policy import Choice
from simulation.machines.boxes.ranked import RankedBoxes
from simulation.machines.boxes.search import BoxArrays, choose, keep_free, list_free
from simulation.machines.interface import JobRequest
from simulation.schedulers.policies.window_first_fit import WindowCounts
from simulation.workload.metrics import Schedule

Int64Array = NDArray[np.int64]
_NEVER = np.iinfo(np.int64).max


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
    counts: WindowCounts = WindowCounts.INDICES,
) -> BoxRun:
    """Run jobs of any shape through an empty torus.

    Args:
        boxes: the torus and its allocator.
        submit_time: ascending, microseconds, shape (jobs,).
        run_time: microseconds, shape (jobs,).
        size: nodes asked for, shape (jobs,).
        window: of the scheduler.
        counts: what the window counts.

    Raises:
        MachineError: the allocator has a choice of its own, which is not compiled.
    """
    if boxes.policy.choice is Choice.OWN:
        raise MachineError(f"{type(boxes.policy).__name__} has its own choice; use the event simulation")
    sizes, kind = np.unique(size, return_inverse=True)
    wanted = np.stack([boxes.wanted(JobRequest(1, int(one))) for one in sizes])
    fits = np.any(wanted[:, 0], axis=1).reshape(-1)[kind]
    started, box = _run(
        boxes.arrays,
        int(boxes.policy.choice),
        wanted,
        kind[fits].astype(np.int64),
        submit_time[fits],
        run_time[fits],
        window,
        counts is WindowCounts.WAITING,
    )
    held = boxes.arrays.box_volumes[box]
    schedule = Schedule(submit_time[fits], started, started + run_time[fits], size[fits], held, boxes.table.grid.size)
    return BoxRun(schedule, box, int((~fits).sum()))


# numba keeps these on disk until this file changes; after a change of machines/boxes, touch this file
@compiled
def _give_back(
    arrays: BoxArrays,
    busy: NDArray[np.uint64],
    ends: Int64Array,
    box: Int64Array,
    running: Int64Array,
    running_count: int,
    now: int,
) -> int:
    """Release the boxes of the jobs that end now; returns how many jobs go on."""
    index = 0
    while index < running_count:
        job = running[index]
        if ends[job] == now:
            for word in range(busy.shape[0]):
                busy[word] ^= arrays.box_masks[box[job], word]
            running_count -= 1
            running[index] = running[running_count]
        else:
            index += 1
    return running_count


@compiled
def _run(
    arrays: BoxArrays,
    choice: int,
    wanted: NDArray[np.bool_],
    kind: Int64Array,
    submit_time: Int64Array,
    run_time: Int64Array,
    window: int,
    by_waiting: bool,
) -> tuple[Int64Array, Int64Array]:
    jobs = kind.shape[0]
    nodes = arrays.coordinates.shape[0]
    start = np.full(jobs, -1, np.int64)
    ends = np.full(jobs, _NEVER, np.int64)
    box = np.full(jobs, -1, np.int64)
    busy = np.zeros(arrays.masks.shape[1], np.uint64)
    free = np.empty(arrays.masks.shape[0], np.int64)
    dead = np.zeros(arrays.masks.shape[0], np.bool_)
    count = list_free(arrays.masks, dead, busy, free)
    failed = np.zeros(wanted.shape[0], np.bool_)
    running = np.empty(nodes, np.int64)
    running_count = 0
    arrived = 0
    oldest = 0
    while oldest < jobs:
        now = submit_time[arrived] if arrived < jobs else _NEVER
        for index in range(running_count):
            now = min(now, ends[running[index]])
        left = _give_back(arrays, busy, ends, box, running, running_count, now)
        if left < running_count:
            running_count = left
            count = list_free(arrays.masks, dead, busy, free)
            failed.fill(False)
        while arrived < jobs and submit_time[arrived] == now:
            arrived += 1
        job = oldest
        position = 0
        while job < arrived and (position if by_waiting else job - oldest) < window:
            if start[job] < 0:
                row = -1
                if not failed[kind[job]]:
                    row = choose(arrays, wanted[kind[job]], free, count, busy, choice)
                if row < 0:
                    failed[kind[job]] = True
                    position += 1
                else:
                    start[job] = now
                    ends[job] = now + run_time[job]
                    box[job] = arrays.box_of[row]
                    running[running_count] = job
                    running_count += 1
                    for word in range(busy.shape[0]):
                        busy[word] |= arrays.masks[row, word]
                    count = keep_free(arrays.masks, busy, free, count)
                    while oldest < arrived and start[oldest] >= 0:
                        oldest += 1
            job += 1
    return start, box
