"""The plug-in `steady`: a machine whose own users always take the same share, for trials without a workload log.

Its capacity for the market is what that share leaves; holds and reservations count exactly. No log is read, so it suits
protocol studies and first trials; studies of prices want `fake_qstat`, which replays a real log.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np

from ramp.model.instant import Instant
from ramp.model.slot import Reservation
from ramp.options import Bounds, read_options, takes
from ramp.plugins.interface import PluginSettings
from simulation.resource.booked_machine import BookedMachine
from simulation.resource.machine_clock import FAR, MachineClock
from simulation.workload.profile import CoreProfile

NAME: Final = "steady"


@dataclass(frozen=True, slots=True)
class SteadyOptions:
    """What the configuration says about such a machine.

    Attributes:
        load: share of the cores that the machine's own users take.
    """

    load: Annotated[float, Bounds(0, 1)] = 0.3


class SteadyMachine(BookedMachine):
    """One machine with a constant load of its own."""

    def __init__(self, resource: str, cores: int, load: float, state_dir: Path | None = None) -> None:
        """Open the machine.

        Args:
            resource: the resource's name, part of the reservation ids.
            cores: cores of the machine.
            load: share of them always taken by the machine's own users, 0 to 1.
            state_dir: folder for durable state, None keeps it in memory.
        """
        super().__init__(
            plugin=NAME,
            source="synthetic",
            resource=resource,
            cores=cores,
            clock=MachineClock(0, 0),
            state_dir=state_dir,
        )
        self._background = min(cores, round(cores * load))
        self._profile: tuple[tuple[Reservation, ...], CoreProfile] | None = None

    def profile(self, now: Instant, until: int) -> CoreProfile:
        """Return the machine's own share and all live reservations; see `BookedMachine.profile`."""
        live = self.reservations(now)
        if self._profile is None or self._profile[0] is not live or now < self._profile[1].times[0]:  # a clock set back
            windows = self.reserved_windows(now)
            intervals = np.array(
                [(now, FAR, self._background), *((each.start, each.end, each.cores) for each in windows)],
                dtype=np.int64,
            )
            profile = CoreProfile.of_intervals(self.capacity, now, intervals[:, 0], intervals[:, 1], intervals[:, 2])
            self._profile = (live, profile)
        return self._profile[1]

    def jobs(self, now: Instant) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return none: the machine's own users are a share, not jobs."""
        return [], []


@takes(SteadyOptions)
def open_plugin(settings: PluginSettings) -> SteadyMachine:
    """Open a `SteadyMachine`: the entry point `steady` of the group `ramp.resource_plugins`.

    Raises:
        ConfigurationError: an option is unknown, or the load is no share.
    """
    load = read_options(settings.options, SteadyOptions, within=settings.resource).load
    return SteadyMachine(settings.resource, settings.cores, load, settings.state_dir)
