"""The options of the plug-in `modelled`."""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated, Any, Final

from ramp.errors import ConfigurationError
from ramp.model.instant import SECOND, Duration
from ramp.options import Bounds, Wanted
from ramp.plugins.interface import PluginSettings
from simulation.machine_files import load_machine
from simulation.machines.interface import GridMachine, has_places
from simulation.queueing.queue_simulation import Overrun
from simulation.resource.background import Workload
from simulation.resource.live_machine import SCHEDULER_DEFAULT
from simulation.schedulers.declaration import make_scheduler
from simulation.schedulers.interface import Scheduler
from simulation.workload.replay_source import SYNTHETIC

NAME: Final = "modelled"
_Share = Annotated[float, Bounds(0, 1)]


class LoadOf(enum.StrEnum):
    """What the load that decides the price is a share of."""

    CORES = "cores"
    CORES_AND_LINKS = "cores-and-links"
    """The larger of the shares of cores and of cables of the kind needed."""


@dataclass(frozen=True, slots=True)
class ModelledOptions:
    """What the configuration says about a live machine.

    Attributes:
        machine: name or file of the machine.
        allocator: overrules the machine's file.
        allocator_options: of the allocator.
        log: name or path of the log of its own users, or synthetic.
        load: offered load, share of the machine; a log's own by default.
        size_divisor: processors of the log that make one unit of the machine.
        fat: share of jobs with at least two units in each dimension.
        torus: share of jobs that are tori.
        malleable_share: share of jobs that may change their size, from a quarter of it to four times it; they do under
            the scheduler `malleable`, beside what is sold.
        resize_cost_s: for how long such a job stands still when its size changes.
        scheduler: name or place of the scheduler.
        scheduler_options: of the scheduler.
        overrun: what happens to jobs that outrun their request.
        base_time_s: machine time at which the machine's clock begins; its users' jobs have run since 0.
        speed: machine time that passes in a unit of wall time.
        load_of: what the load that decides the price is a share of.
    """

    machine: Annotated[str, Wanted("the name or file of a machine with coordinates", bool)]
    allocator: str | None = None
    allocator_options: Mapping[str, Any] = field(default_factory=dict)
    log: Annotated[str, Wanted("the name or path of a workload log, or 'synthetic'", bool)] = SYNTHETIC
    load: Annotated[float, Bounds(0, 10)] | None = None
    size_divisor: Annotated[int, Bounds(1)] = 1
    fat: _Share = 0.0
    torus: _Share = 0.0
    malleable_share: _Share = 0.0
    resize_cost_s: Annotated[int, Bounds(0, 86_400)] = 0
    scheduler: str = SCHEDULER_DEFAULT
    scheduler_options: Mapping[str, Any] = field(default_factory=dict)
    overrun: Overrun = Overrun.CUT
    base_time_s: Annotated[int, Bounds(0, 10**12)] = 0
    speed: Annotated[Fraction, Bounds(1, 10**9)] = Fraction(1)
    load_of: LoadOf = LoadOf.CORES

    def __post_init__(self) -> None:
        if self.load == 0 and self.log != SYNTHETIC:
            raise ConfigurationError("must be above 0 for a log, got 0", key="load")

    @property
    def base_time(self) -> Duration:
        """Machine time at which the machine's clock begins, microseconds."""
        return self.base_time_s * SECOND

    def workload(self, settings: PluginSettings) -> Workload:
        """Return the workload of the machine's own users."""
        # machines of one swarm get different workloads though the swarm has one seed
        digest = hashlib.sha256(f"{settings.seed}/{settings.resource}".encode()).digest()
        return Workload(
            log=self.log,
            load=self.load,
            size_divisor=self.size_divisor,
            fat_probability=self.fat,
            torus_probability=self.torus,
            seed=int.from_bytes(digest[:6], "big"),
            malleable_share=self.malleable_share,
            resize_cost=self.resize_cost_s * SECOND,
        )

    def new_machine(self, resource: str) -> GridMachine:
        """Return the machine, idle.

        Args:
            resource: whose it is, for messages.

        Raises:
            ConfigurationError: there is no such machine, or it has no coordinates or no unit in service.
        """
        machine = load_machine(self.machine, allocator=self.allocator or None, allocator_options=self.allocator_options)
        if not has_places(machine):
            raise ConfigurationError(
                f"must have coordinates for {NAME}, got the flat machine {self.machine!r}; use fake_qstat or steady "
                f"for flat machines",
                key=f"{resource}.machine",
            )
        if machine.capacity == 0:
            raise ConfigurationError(f"{self.machine!r} has no unit in service", key=f"{resource}.machine")
        return machine

    def new_scheduler(self, resource: str) -> Scheduler:
        """Return the scheduler, with an empty queue.

        Raises:
            ConfigurationError: there is no such scheduler or option.
        """
        try:
            return make_scheduler(self.scheduler, self.scheduler_options)
        except ConfigurationError as error:
            raise ConfigurationError(str(error), key=f"{resource}.scheduler") from error
