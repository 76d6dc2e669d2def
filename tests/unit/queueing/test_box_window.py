"""The compiled sweep loop against the event simulation, job by job."""

import numpy as np
import pytest

from simulation.machines.allocator_declaration import make_policy
from simulation.machines.angara import AngaraMachine, TorusLayout
from simulation.machines.boxes.policy import BoxPolicy
from simulation.machines.boxes.ranked import RankedBoxes
from simulation.machines.interface import JobRequest
from simulation.queueing.box_window import run_window_first_fit
from simulation.schedulers.declaration import make_scheduler
from simulation.schedulers.interface import Job
from simulation.schedulers.policies.window_first_fit import WindowCounts
from simulation.workload.generators.angara_workload import Recipe, Workload, make_workload
from tests.queue_runs import ended_jobs

pytestmark = pytest.mark.slow  # this loop alone is compiled for seconds

JOBS = 250
EXTENTS = (4, 3, 3)


def workload(seed: int) -> Workload:
    """A crowded start of a study's workload, with some arrivals and ends that coincide."""
    full = make_workload(Recipe(36, 1.5), seed)
    hour = 3_600_000_000
    return Workload(
        full.submit_time[:JOBS] // hour * hour, np.maximum(full.run_time[:JOBS] // hour, 1) * hour, full.size[:JOBS]
    )


@pytest.mark.parametrize("counts", list(WindowCounts))
@pytest.mark.parametrize("window", [1, 3, 40])
@pytest.mark.parametrize("allocator", ["base", "base-no-wrap", "base-ring", "find-systems", "find-systems-mss"])
def test_the_compiled_loop_makes_the_same_schedule(allocator: str, window: int, counts: WindowCounts) -> None:
    jobs = workload(seed=window)
    boxes = RankedBoxes(EXTENTS, make_policy(allocator, {}, BoxPolicy))
    machine = AngaraMachine(TorusLayout("t", "t", ("x", "y", "z"), EXTENTS), boxes)
    columns = zip(jobs.submit_time.tolist(), jobs.run_time.tolist(), jobs.size.tolist(), strict=True)
    submitted = [
        Job(number, submit, run, run, JobRequest(number, size)) for number, (submit, run, size) in enumerate(columns)
    ]
    scheduler = make_scheduler("window-first-fit", {"window": window, "window_counts": counts})
    ended = {one.job.job_number: one for one in ended_jobs(machine, scheduler, submitted)}
    fast = run_window_first_fit(boxes, jobs.submit_time, jobs.run_time, jobs.size, window=window, counts=counts)
    assert fast.refused == 0
    assert fast.schedule.start_time.tolist() == [ended[number].start_time for number in range(JOBS)]
    assert fast.schedule.held.tolist() == [ended[number].placement.size for number in range(JOBS)]
    nodes = [boxes.table.units_of(box) for box in fast.box.tolist()]
    assert nodes == [ended[number].placement.nodes for number in range(JOBS)]


def test_jobs_without_a_box_are_refused() -> None:
    boxes = RankedBoxes(EXTENTS, make_policy("find-systems", {}, BoxPolicy))
    sizes = np.array([4, 37, 2], np.int64)
    times = np.array([0, 1, 2], np.int64)
    run = run_window_first_fit(boxes, times, times + 5, sizes, window=1)
    assert run.refused == 1
    assert run.schedule.size.tolist() == [4, 2]
