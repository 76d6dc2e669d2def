"""What every scheduler must do that is declared, here or by an installed package, on every sort of machine.

A scheduler joins by its declaration; nothing is listed here.
"""

import os
import random
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from simulation.lab import AS_WRITTEN
from simulation.machine_files import load_machine
from simulation.machines.description import build_machine
from simulation.machines.interface import Connection, JobRequest, Machine, has_places
from simulation.queueing.queue_simulation import EndedJob, EndReason, Overrun, QueueSimulation
from simulation.schedulers.declaration import SCHEDULERS, make_scheduler
from simulation.schedulers.interface import Job
from simulation.schedulers.planner import placements_conflict

OWN = Path(__file__).parents[2] / "examples" / "own_machine.py"
pytestmark = pytest.mark.loops

SECOND = 1_000_000
JOBS = 30
SCHEDULER_NAMES = SCHEDULERS.names()
MACHINES = {"flat": "flat:16", "cabled": "bgl-half", "boxes": "angara-4x4x2", "fat-tree": "", "dragonfly": ""}


@cache
def loaded(machine: str) -> Machine:
    if not MACHINES[machine]:
        kind = f"{OWN}:{machine.upper().replace('-', '_')}"
        own = {"kind": kind, "name": machine, "switches": 4, "nodes_per_switch": 4}
        return build_machine(own, source="test")
    return load_machine(MACHINES[machine])


def jobs_for(machine: Machine, seed: int) -> list[Job]:
    """Jobs that come in bursts, some with shapes, some that outrun their requests, some of no length."""
    draw = random.Random(seed)
    jobs = []
    submitted = 0
    for number in range(1, JOBS + 1):
        submitted += draw.choice((0, 0, 1, 7)) * SECOND
        length = draw.choice((0, 3, 20, 100)) * SECOND
        size = draw.choice((1, 1, 2, 4, 8, 16))
        connection = draw.choice((Connection.MESH, Connection.TORUS)) if has_places(machine) else Connection.MESH
        request = JobRequest(number, size, connection=connection)
        if machine.traits.exclusive_cables:
            shapes = {1: (1, 1, 1), 2: (2, 1, 1), 4: (2, 2, 1), 8: (2, 2, 2), 16: (4, 2, 2)}
            request = JobRequest(number, size, shapes[size], connection=connection)
        jobs.append(Job(number, submitted, length, max(0, length + draw.choice((-5, 0, 0, 30)) * SECOND), request))
    return jobs


def history(name: str, machine: str, overrun: Overrun = Overrun.CUT, *, reserve: bool = False) -> list[EndedJob]:
    """Run the jobs, looking at every moment."""
    ended: list[EndedJob] = []
    at = loaded(machine).copy()
    simulation = QueueSimulation(at, make_scheduler(name), overrun=overrun, on_end=ended.append)
    jobs = jobs_for(at, seed=7)
    if reserve:
        assert simulation.reserve(JobRequest(-1, at.capacity), 40 * SECOND, 50 * SECOND) is not None
    for job in jobs:
        simulation.submit(job)
    while simulation.step():
        waiting = [job.job_number for job in simulation.waiting]
        assert len(set(waiting)) == len(waiting)
        assert not set(waiting) & set(simulation.running)
        assert sum(each.placement.size for each in simulation.running.values()) <= at.capacity
    assert at.free == at.capacity
    return ended


known_history = cache(history)
"""The same, run once for all who look at it."""


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", SCHEDULER_NAMES)
@pytest.mark.parametrize("overrun", [Overrun.CUT, pytest.param(Overrun.KEEP, marks=pytest.mark.slow)])
def test_every_job_runs_once_and_not_before_it_comes(name: str, machine: str, overrun: Overrun) -> None:
    ended = known_history(name, machine, overrun)
    refused = {job.job_number for job in jobs_for(loaded(machine), 7) if not loaded(machine).fits_ever(job.request)}
    assert sorted([one.job.job_number for one in ended] + list(refused)) == list(range(1, JOBS + 1))
    assert all(one.start_time >= one.job.submit_time for one in ended)
    kept = [one for one in ended if one.end_time - one.start_time == one.job.run_time]
    assert len(kept) == len(ended) or overrun is Overrun.CUT


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", SCHEDULER_NAMES)
def test_the_same_jobs_give_the_same_schedule(name: str, machine: str) -> None:
    assert history(name, machine) == known_history(name, machine, Overrun.CUT)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", SCHEDULER_NAMES)
def test_nobody_runs_in_a_reservation_of_all(name: str, machine: str) -> None:
    for one in history(name, machine, reserve=True):
        assert one.end_time <= 40 * SECOND or one.start_time >= 90 * SECOND or one.end_time == one.start_time
        assert one.reason is not EndReason.RESERVATION_BEGAN


@pytest.mark.parametrize("machine", ["cabled", "boxes", "fat-tree", "dragonfly"])
@pytest.mark.parametrize("name", SCHEDULER_NAMES)
def test_no_two_jobs_share_a_unit_or_cable(name: str, machine: str) -> None:
    ended = known_history(name, machine, Overrun.CUT)
    for index, one in enumerate(ended):
        for other in ended[:index]:
            if one.start_time < other.end_time and other.start_time < one.end_time:
                assert not placements_conflict(one.placement, other.placement)


def test_names_are_found_without_the_compiler() -> None:
    code = (
        "import sys\nfrom simulation.schedulers.declaration import SCHEDULERS\n"
        "from simulation.machines.allocator_declaration import ALLOCATORS\n"
        "from simulation.machines.description import KINDS\n"
        "assert SCHEDULERS.names() and KINDS.listed() and ALLOCATORS.listed()\n"
        "assert 'numba' not in sys.modules and 'matplotlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], env=os.environ | {AS_WRITTEN: "0"}, check=True)
