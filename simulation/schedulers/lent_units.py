"""What malleable jobs of a machine's own users have grown beyond the size that they prefer: theirs until it is sold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from simulation.machines.interface import GridMachine
from simulation.schedulers.interface import AdvanceReservation, RunningJob
from simulation.schedulers.planner import placements_conflict
from simulation.schedulers.size_changes import changed


def given_back(
    machine: GridMachine, running: Mapping[int, RunningJob], reservations: Sequence[AdvanceReservation], now: int
) -> dict[int, RunningJob]:
    """The running jobs that have grown, as they would be if each went back now to the size that it prefers.

    Left out is who would not keep a part of what it holds, or would then run on into what is reserved.

    Args:
        machine: with everything allocated that runs; not changed.
        running: its jobs.
        reservations: what is set aside on it.
        now: microseconds.
    """
    grown = [job for job in running.values() if job.changes is not None and job.placement.size > job.job.request.size]
    found: dict[int, RunningJob] = {}
    tried = machine.copy() if grown else machine
    for job in grown:
        malleability, change = job.job.malleability, tried.reallocate(job.job.request)
        if malleability is None or change is None or change.after.nodes & ~job.placement.nodes:
            continue
        smaller = changed(job, change, malleability, now)
        if not any(
            now < each.begin_time < smaller.planned_end and placements_conflict(smaller.placement, each.placement)
            for each in reservations
        ):
            found[job.job.job_number] = smaller
    return found
