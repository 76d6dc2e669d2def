"""Effect of a change of size on a job's time: after a pause, the remaining work runs at another speed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from simulation.machines.interface import GridMachine, Reallocation
from simulation.malleable.malleability import Malleability
from simulation.schedulers.interface import AdvanceReservation, RunningJob, Segment, SizeChanges
from simulation.schedulers.planner import placements_conflict


def changed(running: RunningJob, reallocation: Reallocation, malleability: Malleability, now: int) -> RunningJob:
    """Return the job after a change of size.

    What was left of its run time and of its request is what is left at the new speed. The job stands still for what
    the change costs, after what an earlier change still costs.

    Args:
        running: the job before.
        reallocation: its placements before and after.
        malleability: of the job.
        now: microseconds.
    """
    past = running.changes
    begin = past.segments[-1].end if past is not None and past.segments else running.start_time
    resumes = running.start_time if past is None else past.resumes
    run_left = running.job.run_time if past is None else past.run_left
    planned_left = running.job.planned_length if past is None else past.planned_left
    done = max(now - resumes, 0)
    before, after = reallocation.before.size, reallocation.after.size
    pause = malleability.suspension if before != after else 0
    segment = Segment(begin, now, reallocation.before)
    segments = () if past is None else past.segments
    changes = SizeChanges(
        segments=(*segments, segment) if segment.begin < now else segments,
        resumes=max(resumes, now) + pause,
        run_left=malleability.time_at(max(run_left - done, 0), before, after),
        planned_left=max(malleability.time_at(max(planned_left - done, 0), before, after), 1),
    )
    return RunningJob(running.job, reallocation.after, running.start_time, changes)


def completes_at(running: RunningJob) -> int:
    """Return when all work of the job is done if its size stays, microseconds."""
    if running.changes is None:
        return running.start_time + running.job.run_time - running.spared
    return running.changes.resumes + running.changes.run_left


def ends_at(running: RunningJob, *, keeps_overruns: bool) -> int:
    """Return the end of a job after a change of size: with its work, or with its request unless overruns are kept."""
    completes = completes_at(running)
    return completes if keeps_overruns else min(completes, running.planned_end)


def stays_clear(running: RunningJob, reservations: Sequence[AdvanceReservation], now: int) -> bool:
    """Return whether a running job touches nothing, until its request is over, that is reserved for later."""
    return not any(
        now < each.begin_time < running.planned_end and placements_conflict(running.placement, each.placement)
        for each in reservations
    )


def given_back(
    machine: GridMachine, running: Mapping[int, RunningJob], reservations: Sequence[AdvanceReservation], now: int
) -> dict[int, RunningJob]:
    """Return the grown running jobs as they would be after going back to their preferred size now.

    Left out is who would not keep a part of what it holds, or would then run on into what is reserved.

    Args:
        machine: with the running jobs allocated; not changed.
        running: its jobs.
        reservations: of the machine.
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
        if stays_clear(smaller, reservations, now):
            found[job.job.job_number] = smaller
    return found
