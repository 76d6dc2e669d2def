"""The order of events of one instant, by hand on a machine of 10 processors and against pyss; names and options."""

import os
from pathlib import Path

import numpy as np
import pytest

from ramp.errors import ConfigurationError
from simulation.machine_files import load_machine
from simulation.machines.flat import FlatMachine
from simulation.machines.interface import JobRequest
from simulation.queueing.job_table import JobTable, jobs_of_log
from simulation.queueing.queue_simulation import Overrun
from simulation.queueing.whole_log import EventOrder, ReservationRequest, SchedulerOptions, run_log
from simulation.schedulers.declaration import make_scheduler
from simulation.workload.swf import read_swf

pytestmark = pytest.mark.loops

SECOND = 1_000_000
PYSS = SchedulerOptions("easy", event_order=EventOrder.PYSS)


def starts(rows: list[tuple[int, int, int, int]], order: EventOrder) -> list[int]:
    """Starts of jobs given as submission, run time, requested time and size."""
    submit, run, requested, size = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    numbers = np.arange(1, len(rows) + 1)
    jobs = JobTable(numbers, submit, run, requested, size, numbers - 1)
    return run_log(FlatMachine(10), jobs, SchedulerOptions("easy", event_order=order)).schedule.start_time.tolist()


@pytest.mark.parametrize(
    ("rows", "batch", "pyss"),
    [
        # The third comes as the first ends early. Ends first: the second starts. Submissions first: the third has its
        # place before anybody knows of the end, and runs beside it.
        ([(0, 50, 100, 6), (1, 20, 20, 10), (50, 40, 40, 4)], [0, 50, 70], [0, 90, 50]),
        # The first two end together, the first one early, beside a long one. Decided after that end alone: the second
        # one's expected end has come, so the fourth starts with 4 of their 6, and the fifth is the head; the sixth
        # would delay it. Did the 3 not count as free, the fourth would be the head still, which the sixth delays not.
        (
            [(0, 50, 100, 3), (0, 50, 50, 3), (0, 200, 200, 4), (1, 20, 20, 4), (2, 20, 20, 5), (3, 100, 100, 2)],
            [0, 0, 0, 50, 70, 90],
            [0, 0, 0, 50, 70, 90],
        ),
        # The first outruns its request and is cut at 50. pyss plans with its run time: the shadow time is 100, so the
        # third, which ends at 62, may overtake the second.
        ([(0, 100, 50, 6), (1, 20, 20, 10), (2, 60, 60, 4)], [0, 50, 70], [0, 62, 2]),
        # The second and third end early together. Decided after both, the fourth gets their 4; decided after each, the
        # fifth takes the first 2.
        (
            [(0, 200, 200, 6), (0, 50, 100, 2), (0, 50, 100, 2), (1, 20, 20, 4), (2, 40, 40, 2)],
            [0, 0, 0, 50, 70],
            [0, 0, 0, 90, 50],
        ),
    ],
)
def test_order_of_one_instant(rows: list[tuple[int, int, int, int]], batch: list[int], pyss: list[int]) -> None:
    assert starts(rows, EventOrder.BATCH) == batch
    assert starts(rows, EventOrder.PYSS) == pyss


@pytest.mark.slow  # whole logs
@pytest.mark.logs
@pytest.mark.parametrize(("name", "processors", "jobs"), [("CTC-SP2", 338, 77_199), ("SDSC-SP2", 128, 54_006)])
def test_every_start_that_pyss_has_published_is_reproduced(name: str, processors: int, jobs: int) -> None:
    """The EASY schedules in the repository predictsim: job lists as pyss read them, with the waits that it gave."""
    path = Path(os.environ.get("RAMP_LOGS", "nowhere")) / "pyss-easy" / f"{name}.swf.gz"
    if not path.is_file():
        pytest.skip(f"RAMP_LOGS names no folder that holds pyss-easy/{path.name}, the schedule that pyss published")
    log = read_swf(path)
    log = log.select(np.argsort(log.job_number))  # it lists them as they end
    run = run_log(FlatMachine(processors), jobs_of_log(log), PYSS)
    assert len(run.schedule) == jobs
    published = dict(zip(log.job_number.tolist(), (log.submit_time + log.wait_time).tolist(), strict=True))
    found = dict(zip(run.jobs.job_number.tolist(), (run.schedule.start_time // SECOND).tolist(), strict=True))
    assert found == published


def test_the_order_of_pyss_is_for_what_pyss_does() -> None:
    """Its other schedulers have not been compared, and it knows neither places nor reservations nor overruns."""
    one = np.ones(1, np.int64)
    jobs = JobTable(one, one, one, one, one, one - 1)
    reservation = ReservationRequest(JobRequest(-1, 1), 5, 5)
    with pytest.raises(ConfigurationError, match="scheduler easy on a flat machine, got fcfs on flat:10"):
        run_log(FlatMachine(10), jobs, SchedulerOptions("fcfs", event_order=EventOrder.PYSS))
    with pytest.raises(ConfigurationError, match="got easy on bgl"):
        run_log(load_machine("bgl"), jobs, PYSS)
    with pytest.raises(ConfigurationError, match="remove --overrun keep"):
        run_log(FlatMachine(10), jobs, SchedulerOptions("easy", overrun=Overrun.KEEP, event_order=EventOrder.PYSS))
    with pytest.raises(ConfigurationError, match="remove the reservations"):
        run_log(FlatMachine(10), jobs, PYSS, reservations=[reservation])


def test_unknown_names_and_windows_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="fcfs"):
        make_scheduler("backfill")
    with pytest.raises(ConfigurationError, match=r"window-first-fit\.window: got 0, expected a whole number from 1"):
        make_scheduler("window-first-fit", {"window": 0})
    with pytest.raises(ConfigurationError, match="easy: has no option 'window'; available for window-first-fit"):
        make_scheduler("easy", {"window": 4})
