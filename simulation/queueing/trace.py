"""What happened to each job, as lines of a trace and as a workload log."""

from __future__ import annotations

from typing import Any

import numpy as np

from ramp.model.instant import SECOND
from simulation.machines.interface import GridMachine, Machine, NodeState, Placement, has_cables, has_places
from simulation.machines.view import TRACE_VERSION
from simulation.queueing.outages import Outage
from simulation.queueing.queue_simulation import EndedJob, EndReason
from simulation.queueing.whole_log import LogRun
from simulation.schedulers.interface import AdvanceReservation
from simulation.workload.swf import FIELD_NAMES, SwfLog

_COMPLETED = 1
_ENDED_BY_THE_SYSTEM = 0


def header_line(machine: Machine, name: str, **facts: str) -> dict[str, Any]:
    """Return a trace's first line: its version, its machine and what is out of service from the beginning.

    Args:
        machine: the machine.
        name: name or file by which it is loaded.
        facts: more about the run.
    """
    out = {}
    if has_places(machine):
        states = [machine.node_state(unit) for unit in range(machine.grid.size)]
        for key, state in (("drained", NodeState.DRAINED), ("down", NodeState.DOWN)):
            out[key] = machine.hostlist(sum(1 << unit for unit, each in enumerate(states) if each is state))
    return {"trace": TRACE_VERSION, "machine": name, "extents": list(machine.extents), **out, **facts}


def outage_line(outage: Outage, machine: GridMachine) -> dict[str, Any]:
    """Return the trace's fields of units that were out of service: `out` is `down` or `drain`."""
    end = None if outage.end is None else _seconds(outage.end)
    times = {"start_time": _seconds(outage.begin), "end_time": end}
    return {"out": str(outage.state), "nodes": machine.hostlist(outage.units), **times, "reason": outage.reason}


def job_line(ended: EndedJob, machine: Machine) -> dict[str, Any]:
    """Return the trace's fields of a job.

    Fields: `job_number`; `submit_time`, `start_time`, `end_time` in seconds of log time; `shape`, `origin`,
    `connection`, `nodes` (hostlist) and `links` as the machine describes them. Of a job whose size changed these are
    its last; `segments` has them all, with `start_time` and `end_time` of each. Where blocks take time, `boot_time`,
    `ready_time` and `done_time`: the block boots from the first to the second, and is deallocated from the third on. A
    run that a failure ended has `ended`; its job has another line, submitted when it was requeued.
    """
    named = {"job_number": ended.job.job_number, "submit_time": _seconds(ended.job.submit_time)}
    line = _line(named, ended.start_time, ended.end_time, ended.placement, machine)
    if ended.reason is EndReason.UNIT_FAILED:
        line["ended"] = str(ended.reason)
    if has_cables(machine) and (times := machine.layout.block_times):
        size, listed, failed = ended.placement.size, machine.layout.blocks, ended.reason is EndReason.UNIT_FAILED
        freeing = 0 if listed else times.deallocate_s  # after the job; a listed block stays booted
        startup = (machine.layout.around_s(size) - freeing) * SECOND - ended.spared
        ready = ended.start_time + startup
        begin = max(ready - times.boot_s(size) * SECOND, ended.start_time)
        done = ended.end_time - (0 if failed else freeing * SECOND)
        for key, time in (("boot_time", begin), ("ready_time", ready), ("done_time", done)):
            line[key] = _seconds(min(time, ended.end_time))
    if ended.earlier:
        line["segments"] = [_line({}, each.begin, each.end, each.placement, machine) for each in ended.segments]
    return line


def reservation_line(name: str, granted: AdvanceReservation, machine: Machine) -> dict[str, Any]:
    """Return the trace's fields of a reservation, its name under `reservation` in place of a job's own fields."""
    return _line({"reservation": name}, granted.begin_time, granted.end_time, granted.placement, machine)


def _line(named: dict[str, Any], start: int, end: int, placement: Placement, machine: Machine) -> dict[str, Any]:
    return {**named, "start_time": _seconds(start), "end_time": _seconds(end), **machine.describe(placement)}


def _seconds(microseconds: int) -> int | float:
    whole, rest = divmod(microseconds, SECOND)
    return whole if rest == 0 else microseconds / SECOND


def schedule_as_swf(log: SwfLog, run: LogRun, *notes: str) -> SwfLog:
    """Return the log as it would read had this machine and scheduler run it.

    Submission, wait, run time and processors are the simulation's; all other fields are the log's, but for the status
    of a job that was ended at its request (failed) or whose status the log does not know (completed). Times are rounded
    to whole seconds, as the format has no fractions. Units of the machine count as processors. The header counts the
    jobs that are here. The format has one size a job: where a size changed it is the mean over the run, rounded, and
    the header says of how many jobs.

    Args:
        log: the log the jobs come from.
        run: what came out.
        notes: put into the header, a `Note` line each.
    """
    columns = np.array(log.columns[:, run.jobs.line], dtype=np.int64)
    schedule = run.schedule
    submit, start, end = (
        np.rint(times / SECOND).astype(np.int64)
        for times in (schedule.submit_time, schedule.start_time, schedule.end_time)
    )
    known = columns[FIELD_NAMES.index("status")]
    new = {
        "submit_time": submit,
        "wait_time": start - submit,
        "run_time": end - start,
        "allocated_processors": schedule.held,
        "requested_processors": schedule.size,
        "status": np.where(run.cut, _ENDED_BY_THE_SYSTEM, np.where(known < 0, _COMPLETED, known)),
    }
    for name, values in new.items():
        columns[FIELD_NAMES.index(name)] = values
    counted = {"MaxJobs": len(schedule), "MaxRecords": len(schedule), "MaxProcs": schedule.capacity}
    said = [f" Note: {note}" for note in notes]
    if schedule.pieces is not None:
        jobs = len(np.unique(schedule.pieces.job))
        said.append(f" Note: the sizes of {jobs} jobs changed while they ran; processors are the mean, rounded")
    comments = (*_with_counts(log.comments, counted), *said)
    return SwfLog(columns, comments)


def _with_counts(comments: tuple[str, ...], counted: dict[str, int]) -> list[str]:
    """Return header comments with these values: in place where they are stated, else at the end; without `MaxNodes`."""
    missing = dict(counted)
    result = []
    for comment in comments:
        key = comment.split(":")[0].strip()
        if key in missing:
            result.append(f" {key}: {missing.pop(key)}")
        elif key not in counted and key != "MaxNodes":
            result.append(comment)
    return [*result, *(f" {key}: {value}" for key, value in missing.items())]
