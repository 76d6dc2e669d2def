"""Quotes of the plug-in modelled on Blue Gene/L: how they grow with the queue and with the reservations.

The naive reference asks the machine itself about every window: for each time at which something ends, all that is
booked at any time of the window is put together, and the machine is asked for a place beside it.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from ramp.model.instant import DAY, HOUR, MINUTE, from_iso
from ramp.model.request import RequestUnit, TorusTerms, TotalCores
from ramp.model.slot import Slot
from ramp.plugins.interface import PluginSettings
from simulation.machines.bluegene.machine import BlueGene
from simulation.machines.interface import JobRequest, Placement
from simulation.planning.placers import placer_of
from simulation.planning.space_time import SpaceTime
from simulation.resource.modelled import ModelledMachine, open_plugin
from simulation.schedulers.interface import Job
from simulation.workload.swf import SwfLog, write_swf
from simulation.workload.swf_text import FIELD_COUNT, FIELD_NAMES

BEGIN = from_iso("2026-11-21T08:00:00Z")
MIDPLANE = 1024
QUEUES = (10, 100, 1000)
RESERVATIONS = (0, 100, 400)
REPEATS = 60
NAIVE_REPEATS = 3


def _machine(folder: Path, queued: int) -> ModelledMachine:
    """A machine whose users have submitted so many jobs more than fit, at once."""
    chosen = random.Random(queued)
    jobs = queued + 40
    columns = np.full((FIELD_COUNT, jobs), -1, dtype=np.int64)
    requested = [chosen.randrange(1, 12) * 3600 for _ in range(jobs)]
    for name, values in (
        ("job_number", range(1, jobs + 1)),
        ("submit_time", [0] * jobs),
        ("run_time", requested),
        ("requested_time", requested),
        ("allocated_processors", [chosen.choice((1, 2, 3, 4, 6, 8, 12, 16, 32)) for _ in range(jobs)]),
    ):
        columns[FIELD_NAMES.index(name)] = list(values)
    path = folder / f"queue{queued}.swf"
    write_swf(path, SwfLog(columns))
    options = {"machine": "bgl", "log": str(path), "torus": 0.3, "fat": 0.3, "base_time_s": 60}
    return open_plugin(PluginSettings("bgl1", 128 * MIDPLANE, 2, BEGIN, options))


def _unit(midplanes: int, days: int) -> RequestUnit:
    terms = TorusTerms(connection="torus")
    start = BEGIN + 10 * MINUTE
    return RequestUnit(1, 70, start + days * DAY, TotalCores(midplanes * MIDPLANE), start, 3 * HOUR, torus=terms)


def _quotes_ms(machine: ModelledMachine, days: int, repeats: int = REPEATS) -> list[float]:
    durations = []
    for number in range(repeats):
        unit = _unit((1, 2, 4, 8, 16, 32)[number % 6], days)
        begin = time.thread_time()
        machine.quote(unit, BEGIN)
        durations.append(1e3 * (time.thread_time() - begin))
    return durations


def _replan_ms(machine: ModelledMachine) -> float:
    """A quote that comes right after something has happened on the machine that moves the plan of its queue."""
    durations = []
    for _ in range(3):
        machine.live._outlook = None
        begin = time.thread_time()
        machine.quote(_unit(4, 60), BEGIN)
        durations.append(1e3 * (time.thread_time() - begin))
    return statistics.median(durations)


def _after_submission_ms(machine: ModelledMachine) -> float:
    """A quote that comes right after another job has joined the queue."""
    durations = []
    for number in range(3):
        request = JobRequest(10**6 + number, 16)
        machine.live.queue.submit(Job(request.job_id, machine.live.now, 10**9, 10**9, request))
        machine.live.advance(machine.live.now)
        begin = time.thread_time()
        machine.quote(_unit(4, 60), BEGIN)
        durations.append(1e3 * (time.thread_time() - begin))
    return statistics.median(durations)


def _bookings(machine: ModelledMachine) -> list[tuple[int, int, Placement]]:
    """Begin, end and place of all that runs and of all that waits, as planned."""
    live = machine.live
    bookings = [(live.now, each.expected_end(live.now), each.placement) for each in live.queue.running.values()]
    space_time = SpaceTime(placer_of(live.machine), live.now)
    space_time.book_all(bookings)
    for job in live.queue.waiting:
        found = space_time.earliest(job.request, job.planned_length, live.now)
        if found is not None:
            begin, placement = found
            bookings.append((begin, begin + job.planned_length, placement))
            space_time.book(*bookings[-1])
    return bookings


def _naive_ms(machine: ModelledMachine, days: int) -> float:
    bookings = _bookings(machine)
    torus = machine.machine
    assert isinstance(torus, BlueGene)
    durations = []
    for number in range(NAIVE_REPEATS):
        unit = _unit((4, 16, 32)[number % 3], days)
        request = machine._requests.translate(unit)
        assert isinstance(request, JobRequest)
        begin = time.thread_time()
        first = machine.clock.log_time(BEGIN + 10 * MINUTE)
        last = machine.clock.log_time(unit.deadline - 3 * HOUR)
        for moment in sorted({first} | {end for _, end, _ in bookings if first < end <= last}):
            taken = torus.out_of_service()
            for booked, end, placement in bookings:
                if booked < moment + 3 * HOUR and moment < end:
                    taken |= torus.mask_of(placement)
            if torus.place_within(taken, request) is not None:
                break
        durations.append(1e3 * (time.thread_time() - begin))
    return statistics.fmean(durations)


def run() -> list[tuple[str, float, str]]:
    """Measure; rows of name, value and unit."""
    rows: list[tuple[str, float, str]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        warm = _machine(folder, 5)
        _quotes_ms(warm, 60, 6)
        for queued in QUEUES:
            machine = _machine(folder, queued)
            rows.append(
                (f"quote, {queued} jobs waiting, after a job's end: all planned anew", _replan_ms(machine), "ms")
            )
            rows.append((f"quote, {queued} jobs waiting, after a submission", _after_submission_ms(machine), "ms"))
            durations = _quotes_ms(machine, 60)
            waiting = len(machine.live.queue.waiting)
            rows.append((f"quote, {waiting} jobs waiting, median", statistics.median(durations), "ms"))
            rows.append((f"quote, {waiting} jobs waiting, slowest of {REPEATS}", max(durations), "ms"))
        naive, ours = _naive_ms(machine, 60), statistics.fmean(_quotes_ms(machine, 60))
        rows.append((f"asking the machine about every window, {waiting} jobs waiting", naive, "ms"))
        rows.append(("modelled over asking about every window", naive / ours, "x"))
        for wanted in RESERVATIONS:
            machine = _machine(folder, 100)
            made = _reserve(machine, wanted)
            _replan_ms(machine)
            durations = _quotes_ms(machine, 60)
            rows.append((f"quote, 100 jobs waiting, {made} reservations, median", statistics.median(durations), "ms"))
    return rows


def _reserve(machine: ModelledMachine, wanted: int) -> int:
    """Make reservations all over the weeks to come; returns how many there are."""
    chosen = random.Random(wanted)
    made = 0
    while made < wanted:
        start = BEGIN + HOUR + chosen.randrange(30 * 24) * HOUR
        unit = RequestUnit(1, 70, start + 5 * DAY, TotalCores(chosen.choice((1, 4, 8)) * MIDPLANE), start, 4 * HOUR)
        slot = machine.quote(unit, BEGIN)
        if isinstance(slot, Slot):
            machine.hold(f"k{made}", unit, slot, BEGIN + HOUR, BEGIN)
            made += 1
    return made


if __name__ == "__main__":
    for label, value, measure in run():
        print(f"{label:<70} {value:>12.4g} {measure}")
