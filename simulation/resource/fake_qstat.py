"""The plug-in `fake_qstat`: a workload log replayed as the live queue of a production machine (paper section 8).

`quote` and `snapshot` are the paper's fake_qstat: running and queued jobs at the machine's time, and whether the cores
are free over the whole window that a job needs. `hold` and `confirm` are its fake_qrstat: what is reserved counts in
every later answer.

Its options are those of `FakeQstatOptions`. Without a copy of the log a synthetic workload of the same length, fitted
to the machine, stands in, and `source` says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Final

from ramp.errors import ConfigurationError, WorkloadError
from ramp.model.instant import SECOND, Instant
from ramp.model.slot import Reservation
from ramp.options import Bounds, Wanted, read_options, takes
from ramp.plugins.interface import PluginSettings
from simulation.resource.booked_machine import BookedMachine
from simulation.resource.machine_clock import MachineClock
from simulation.workload.generators.lublin import DEFAULT_LOAD
from simulation.workload.profile import NEVER, CoreProfile, QueueProjection
from simulation.workload.replay import QueueState
from simulation.workload.replay_source import open_replay

NAME: Final = "fake_qstat"
_ABOVE_0: Final = Wanted("a number above 0", lambda value: 0 < value < math.inf)


@dataclass(frozen=True, slots=True)
class FakeQstatOptions:
    """What the configuration says about such a machine.

    Attributes:
        log: name or path of the log, or synthetic.
        base_time_s: where the log stands when the machine's clock begins, seconds from its first submission.
        speed: how many times faster than the wall clock the machine's clock runs.
        synthetic_load: offered load of a synthetic workload.
    """

    log: Annotated[str, Wanted("the name or path of a workload log, or 'synthetic'", bool)]
    base_time_s: Annotated[int, Bounds(0)] = 0
    speed: Annotated[Fraction, Bounds(1, 10**9)] = Fraction(1)
    synthetic_load: Annotated[float, _ABOVE_0] = DEFAULT_LOAD


class FakeQstat(BookedMachine):
    """A machine whose queue is the replay of a workload log."""

    def __init__(self, settings: PluginSettings) -> None:
        """Open the log and the book of reservations.

        Args:
            settings: the machine and the plug-in's options.

        Raises:
            ConfigurationError: an option is unknown, missing or out of range, or there is no such log.
            PluginError: the durable state cannot be read.
        """
        options = read_options(settings.options, FakeQstatOptions, within=settings.resource)
        try:
            opened = open_replay(options.log, settings.cores, seed=settings.seed, load=options.synthetic_load)
        except WorkloadError as error:
            raise ConfigurationError(str(error), key=f"{settings.resource}.log") from error
        super().__init__(
            plugin=NAME,
            source=opened.source,
            resource=settings.resource,
            cores=settings.cores,
            clock=MachineClock(settings.started_at, options.base_time_s * SECOND, options.speed),
            state_dir=settings.state_dir,
        )
        self._replay = opened.replay
        self._plan_key: tuple[int, tuple[Reservation, ...]] | None = None
        self._plan: tuple[QueueState, QueueProjection] | None = None

    def profile(self, now: Instant, until: int) -> CoreProfile:
        """Return the cores taken by running, waiting and reserved jobs; see `BookedMachine.profile`.

        The log's events fall on whole seconds, so all answers within one second of the log share one plan.
        """
        live = self._book.live(now)
        second = self.clock.log_time(now) // SECOND * SECOND
        if self._plan is None or self._plan_key is None or self._plan_key[0] != second or self._plan_key[1] is not live:
            state = self._replay.state_at(second)
            plan = QueueProjection(
                now=second,
                capacity=self.capacity,
                running=(self._replay.cores[state.running], self._replay.projected_ends(state.running, second)),
                queued=(self._replay.cores[state.queued], self._replay.requested[state.queued]),
                reserved=self.reserved_windows(now),
            )
            self._plan, self._plan_key = (state, plan), (second, live)
        return self._plan[1].profile(until)

    def jobs(self, now: Instant) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return running and queued jobs at an instant; see `BookedMachine.jobs`."""
        self.profile(now, NEVER)
        assert self._plan is not None, "the profile is of a plan"
        state, plan = self._plan
        replay = self._replay
        ends = replay.projected_ends(state.running, plan.now).tolist()
        running = zip(state.running.tolist(), ends, strict=True)
        queued = zip(state.queued.tolist(), plan.planned_starts, strict=True)
        return (
            [self._job(job, int(replay.started[job]), end) for job, end in running],
            [self._job(job, start, start + int(replay.requested[job])) for job, start in queued],
        )

    def _job(self, job: int, start: int, end: int) -> dict[str, Any]:
        replay, user = self._replay, int(self._replay.user_id[job])
        number, cores, submitted = int(replay.job_number[job]), int(replay.cores[job]), int(replay.submitted[job])
        return self.job_shown(number, cores, submitted, start, end, user if user >= 0 else None)


@takes(FakeQstatOptions)
def open_plugin(settings: PluginSettings) -> FakeQstat:
    """Open a `FakeQstat`: the entry point `fake_qstat` of the group `ramp.resource_plugins`."""
    return FakeQstat(settings)
