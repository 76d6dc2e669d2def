"""A queue for trials of the plug-in `queue-bound`: local jobs drawn from a seed, run as those of a log are.

`simulation.resource.waiting.replayed_queue` runs them. Everything follows from the time that is asked for, so it runs
in real and in virtual time. Where a folder is given, the market's jobs survive a restart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Annotated

from ramp.model.instant import MINUTE
from ramp.options import Bounds, read_options, takes
from ramp.plugins.interface import PluginSettings
from simulation.machines.interface import JobRequest
from simulation.resource.background import Submission
from simulation.resource.machine_clock import MachineClock
from simulation.resource.waiting.replayed_queue import ReplayedQueue, jobs_path
from simulation.schedulers.interface import Job


@dataclass(frozen=True, slots=True)
class SimulatedQueueOptions:
    """What the configuration says about such a queue.

    Attributes:
        load: share of the cores that local jobs keep busy in the long run; 0 for no local jobs.
        length_min: minutes that local jobs run on average, drawn from an exponential distribution.
    """

    load: Annotated[float, Bounds(0, 2)] = 0.0
    length_min: Annotated[int, Bounds(1, 1440)] = 30


def _local_jobs(cores: int, options: SimulatedQueueOptions, random: Random) -> Iterator[Submission]:
    """Draw jobs of at most a quarter of the machine, enough for the load, that ask for twice their time."""
    if options.load == 0:
        return
    at, length = 0, options.length_min * MINUTE
    largest = max(cores // 4, 1)
    pause = length * (largest + 1) / 2 / (cores * options.load)
    for number in count(1):
        at += int(random.expovariate(1 / pause))
        run = max(int(random.expovariate(1 / length)), MINUTE)
        yield Submission(Job(number, at, run, 2 * run, JobRequest(number, random.randint(1, largest))), None)


@takes(SimulatedQueueOptions)
def open_queue(settings: PluginSettings) -> ReplayedQueue:
    """Open a queue: the entry point `simulated` of the group `ramp.job_queues`.

    Raises:
        ConfigurationError: an option is wrong.
    """
    options = read_options(settings.options, SimulatedQueueOptions, within=settings.resource)
    jobs = _local_jobs(settings.cores, options, Random(f"{settings.seed}/queue"))
    clock = MachineClock(settings.started_at, 0)
    return ReplayedQueue(settings.cores, jobs, "synthetic", clock, jobs_path(settings), name="simulated")
