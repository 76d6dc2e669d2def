"""The options of the plug-in `modelled`, checked."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from ramp.errors import ConfigurationError
from ramp.model.instant import SECOND, Duration
from ramp.plugins.interface import PluginSettings
from simulation.queueing.simulation import Overrun
from simulation.resource.background import Workload
from simulation.resource.live_machine import SCHEDULER_DEFAULT
from simulation.schedulers.registry import SCHEDULER_NAMES
from simulation.workload.replay_source import SYNTHETIC

NAME: Final = "modelled"
KNOWN: Final = (
    "machine", "allocator", "log", "load", "size_divisor", "fat", "torus", "scheduler", "overrun", "base_time_s",
    "speed", "load_of",
)  # fmt: skip
OF_CORES: Final = "cores"
OF_CORES_AND_LINKS: Final = "cores-and-links"


@dataclass(frozen=True, slots=True)
class ModelledOptions:
    """What the configuration says about a live machine.

    Attributes:
        machine: name or file of the machine.
        allocator: overrules the machine's file, or None.
        workload: of its own users.
        scheduler: name of the scheduler.
        overrun: what happens to jobs that outrun their request.
        base_time: machine time at which the machine's clock begins; its users' jobs have run since 0.
        speed: machine time that passes in a unit of wall time.
        load_with_links: whether the load that decides the price is the larger of the shares of cores and of cables of
            the kind needed.
    """

    machine: str
    allocator: str | None
    workload: Workload
    scheduler: str
    overrun: Overrun
    base_time: Duration
    speed: Fraction
    load_with_links: bool


def read_options(settings: PluginSettings) -> ModelledOptions:
    """Check and read the options.

    Raises:
        ConfigurationError: an option is unknown, missing or out of range.
    """
    reader = _Reader(settings.resource, settings.options)
    # machines of one swarm get different workloads though the swarm has one seed
    digest = hashlib.sha256(f"{settings.seed}/{settings.resource}".encode()).digest()
    load = reader.number("load", None, 0, 10)
    workload = Workload(
        log=reader.text("log", SYNTHETIC),
        load=load,
        size_divisor=reader.whole("size_divisor", 1, 1),
        fat_probability=reader.number("fat", 0.0, 0, 1) or 0.0,
        torus_probability=reader.number("torus", 0.0, 0, 1) or 0.0,
        seed=int.from_bytes(digest[:6], "big"),
    )
    if load == 0 and workload.log != SYNTHETIC:
        raise reader.wrong("load", load, "a number above 0, as a log has jobs")
    speed = reader.number("speed", 1, 1, 1e9) or 1
    return ModelledOptions(
        machine=reader.text("machine", None),
        allocator=reader.text("allocator", "") or None,
        workload=workload,
        scheduler=reader.choice("scheduler", SCHEDULER_DEFAULT, SCHEDULER_NAMES),
        overrun=Overrun(reader.choice("overrun", Overrun.CUT.value, [each.value for each in Overrun])),
        base_time=reader.whole("base_time_s", 0, 0) * SECOND,
        speed=Fraction(str(speed)),
        load_with_links=reader.choice("load_of", OF_CORES, (OF_CORES, OF_CORES_AND_LINKS)) == OF_CORES_AND_LINKS,
    )


class _Reader:
    def __init__(self, resource: str, options: Mapping[str, Any]) -> None:
        self._resource = resource
        self._options = options
        unknown = sorted(set(options) - set(KNOWN))
        if unknown:
            raise ConfigurationError(f"unknown; {NAME} knows {', '.join(KNOWN)}", key=f"{resource}.{unknown[0]}")

    def text(self, key: str, default: str | None) -> str:
        """A text that is not empty, or the default."""
        value = self._options.get(key, default)
        if not isinstance(value, str) or (not value and key in self._options):
            wanted = "the name or file of a machine with coordinates" if key == "machine" else "a text"
            raise self.wrong(key, value, f"{wanted} is wanted")
        return value

    def choice(self, key: str, default: str, known: Any) -> str:
        """One of the known words."""
        value = self._options.get(key, default)
        if value not in known:
            raise self.wrong(key, value, f"one of {', '.join(known)} is wanted")
        return str(value)

    def whole(self, key: str, default: int, least: int) -> int:
        """A whole number, at least `least`."""
        value = self._options.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= 10**12:
            raise self.wrong(key, value, f"a whole number from {least} is wanted")
        return value

    def number(self, key: str, default: float | None, least: float, most: float) -> float | None:
        """A number within two bounds, or the default."""
        value = self._options.get(key, default)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise self.wrong(key, value, f"a number from {least:g} to {most:g} is wanted")
        return value

    def wrong(self, key: str, value: object, wanted: str) -> ConfigurationError:
        """The error that names the option, its value and what is wanted."""
        return ConfigurationError(f"is {value!r}; {wanted}", key=f"{self._resource}.{key}")
