"""The textbook situations of each scheduler, worked out by hand on a machine of 10 processors."""

import pytest

from ramp.errors import ConfigurationError
from simulation.machines.flat import FlatMachine
from simulation.machines.interface import JobRequest
from simulation.queueing.queue_simulation import QueueSimulation
from simulation.schedulers.declaration import make_scheduler
from simulation.schedulers.interface import Job

# Submission, run time, requested time, size. Job 1 leaves 4 processors until 100. Job 2 needs 8 and waits for it.
# Job 3 (4 wide, 80 long) ends before 100. Job 4 (2 wide, 500 long) runs past 100 in the 2 that job 2 leaves over.
# Job 5 (2 wide, 500 long) would then delay job 2.
SITUATION = ((0, 100, 100, 6), (1, 50, 50, 8), (2, 80, 80, 4), (3, 500, 500, 2), (4, 500, 500, 2))


def starts(name: str) -> list[int]:
    found: dict[int, int] = {}
    simulation = QueueSimulation(
        FlatMachine(10),
        make_scheduler(name),
        on_end=lambda ended: found.__setitem__(ended.job.job_number, ended.start_time),
    )
    for number, (submit, run, requested, size) in enumerate(SITUATION, start=1):
        simulation.submit(Job(number, submit, run, requested, JobRequest(number, size)))
    simulation.run()
    return [found[number] for number in sorted(found)]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # job 2 waits for 100; job 3 does not fit beside it, and jobs 4 and 5 stay behind job 3
        ("fcfs", [0, 100, 150, 150, 150]),
        # when job 3 ends, jobs 4 and 5 take its processors; job 2 waits until they are done
        ("first-fit", [0, 582, 2, 82, 82]),
        # job 3 ends by the shadow time 100; job 4 takes the extra 2 nodes once job 3 is gone; job 5 waits for job 2
        ("easy", [0, 100, 2, 82, 150]),
        # here as EASY: job 5's promise is behind job 2
        ("conservative", [0, 100, 2, 82, 150]),
    ],
)
def test_who_may_overtake(name: str, expected: list[int]) -> None:
    assert starts(name) == expected


def test_unknown_names_and_windows_are_refused() -> None:
    """The error names what there is."""
    with pytest.raises(ConfigurationError, match="fcfs"):
        make_scheduler("backfill")
    with pytest.raises(ConfigurationError, match=r"window-first-fit\.window: got 0, expected a whole number from 1"):
        make_scheduler("window-first-fit", {"window": 0})
    with pytest.raises(ConfigurationError, match="easy: has no option 'window'; available for window-first-fit"):
        make_scheduler("easy", {"window": 4})
