"""The plug-in `mirrored`: a simulated machine whose queue is what a command shows in the words of Grid Engine's qstat.

The other way round of `ramp fake-qstat`: that command, or the real one of a site whose queue may be looked at but not
reserved, drives the machine as a workload log drives `fake_qstat`. Waiting jobs are planned as there. Nothing is sent
to the queue, so its reservations are the market's own and simulated.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final

import numpy as np

from ramp.batch.commands import CommandRunner, ask
from ramp.batch.gridengine.questions import QUEUES
from ramp.batch.gridengine.records import BatchJob, QueueReport
from ramp.errors import BatchSystemError, ConfigurationError, PluginError
from ramp.model.instant import SECOND, Instant
from ramp.model.slot import Reservation
from ramp.options import Bounds, Wanted, read_options, takes
from ramp.plugins.interface import PluginSettings
from simulation.resource.booked_machine import BookedMachine
from simulation.resource.machine_clock import FAR, MachineClock
from simulation.workload.profile import CoreProfile, QueueProjection

NAME: Final = "mirrored"
_OUT_OF_ORDER: Final = frozenset("duEsSDCco")
_COMMAND: Final = Wanted('a command, word by word, as ["ramp", "fake-qstat", "curie3"]', bool)


@dataclass(frozen=True, slots=True)
class MirroredOptions:
    """What the configuration says about such a machine.

    Attributes:
        qstat: the command that shows the queue; it is given `-f -r -xml -u *`.
        environment: variables for it, as SGE_ROOT.
        snapshot_age_s: seconds for which one look at the queue serves all buyers.
    """

    qstat: Annotated[tuple[str, ...], _COMMAND]
    environment: Mapping[str, str] = field(default_factory=dict)
    snapshot_age_s: Annotated[float, Bounds(0, 3600)] = 3.0


class MirroredQueue(BookedMachine):
    """A machine whose queue is shown by a command."""

    def __init__(self, settings: PluginSettings) -> None:
        """Look at the queue and open the book of reservations.

        Args:
            settings: the machine and the plug-in's options.

        Raises:
            ConfigurationError: an option is wrong, or the queue has not as many slots as the machine is to have cores.
            PluginError: the command does not show a queue, or the durable state cannot be read.
        """
        self._options = read_options(settings.options, MirroredOptions, within=settings.resource)
        self._run = CommandRunner(self._options.environment)
        self._seen: tuple[float, QueueReport] | None = None
        self._drawn: tuple[object, QueueProjection] | None = None
        slots = sum(each.slots_total for each in self._report().instances)
        if slots != settings.cores:
            raise ConfigurationError(
                f"must be the number of slots that {self._options.qstat[0]} shows: expected {slots}, got "
                f"{settings.cores}",
                key=f"{settings.resource}.cores",
            )
        super().__init__(
            plugin=NAME,
            source="live",
            resource=settings.resource,
            cores=settings.cores,
            clock=MachineClock(0, 0),
            state_dir=settings.state_dir,
        )

    def profile(self, now: Instant, until: int) -> CoreProfile:
        """Return the slots taken by jobs, reservations and queues out of order; see `BookedMachine.profile`."""
        return self._plan(now).profile(until)

    def jobs(self, now: Instant) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return running and queued jobs; see `BookedMachine.jobs`."""
        report, plan = self._report(), self._plan(now)
        plan.profile()
        waiting = [job for job in report.jobs if self._waits(job)]
        running = [self._shown(job, job.started or now, _end(job, now)) for job in report.jobs if job.running]
        queued = [
            self._shown(job, start, start + _length(job))
            for job, start in zip(waiting, plan.planned_starts, strict=True)
        ]
        return running, queued

    def _shown(self, job: BatchJob, start: Instant, end: Instant) -> dict[str, Any]:
        submitted = start if job.submitted is None else job.submitted
        return self.job_shown(job.number, job.slots, submitted, start, end, job.owner)

    def _report(self) -> QueueReport:
        """Return the queue, at most as old as the options say.

        Raises:
            PluginError: the command does not show one.
        """
        at = time.monotonic()
        if self._seen is None or not 0 <= at - self._seen[0] < self._options.snapshot_age_s:
            try:
                report = ask(replace(QUEUES, argv=(*self._options.qstat, *QUEUES.argv[1:])), self._run)
            except BatchSystemError as error:
                raise PluginError(NAME, error.reason, transient=error.transient) from error
            self._seen = at, report
        return self._seen[1]

    def _plan(self, now: Instant) -> QueueProjection:
        report, live = self._report(), self._book.live(now)
        mark = (id(report), live, now // SECOND)
        if self._drawn is None or self._drawn[0] != mark:
            self._drawn = mark, self._planned(report, live, now)
        return self._drawn[1]

    def _planned(self, report: QueueReport, live: tuple[Reservation, ...], now: Instant) -> QueueProjection:
        running = [job for job in report.jobs if job.running]
        waiting = [job for job in report.jobs if self._waits(job)]
        taken = [(job.slots, _end(job, now)) for job in running]
        free = self.capacity - sum(slots for slots, _ in taken)
        out = sum(each.slots_total - each.slots_used for each in report.instances if _OUT_OF_ORDER & set(each.states))
        taken.append((max(0, min(out, free)), FAR))
        return QueueProjection(
            now=now,
            capacity=self.capacity,
            running=_columns(taken),
            queued=_columns([(job.slots, _length(job)) for job in waiting]),
            reserved=self.reserved_windows(now) if live else (),
        )

    def _waits(self, job: BatchJob) -> bool:
        """Return whether a job waits for slots, and ever can have them."""
        held = any(letter in job.state for letter in "hE")
        return not job.running and not held and job.slots <= self.capacity


def _columns(pairs: list[tuple[int, int]]) -> tuple[Any, Any]:
    table = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def _length(job: BatchJob) -> int:
    """Return how long a waiting job is planned for; a year where it asked for no limit."""
    return job.run_limit or 365 * 24 * 3600 * SECOND


def _end(job: BatchJob, now: Instant) -> Instant:
    """Return when a running job's slots are free again; one past its limit is about to end."""
    assert job.started is not None
    return max(job.started + _length(job), now + SECOND)


@takes(MirroredOptions)
def open_plugin(settings: PluginSettings) -> MirroredQueue:
    """Open a `MirroredQueue`: the entry point `mirrored` of the group `ramp.resource_plugins`."""
    return MirroredQueue(settings)
