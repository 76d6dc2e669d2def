"""A simulated machine that is asked without a market: the paper's scripts fake_qstat and fake_qrstat (section 8).

The paper's scripts read a configuration file that names the log, the offset in it and the system's start. Here that is
a resource of a market's configuration (`table2:curie3`), a workload log, or a machine's file. The plug-in of a Resource
Agent answers, so both give the same answers. A folder keeps what was reserved, and the start of the machine's clock.
"""

from __future__ import annotations

import re
import secrets
import tomllib
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from math import prod
from pathlib import Path
from typing import Any, Final

from ramp.errors import ConfigurationError, WorkloadError
from ramp.model.instant import HOUR, SECOND, Duration, Instant, from_iso, iso
from ramp.model.offer import Refusal
from ramp.model.request import RequestUnit, TotalCores
from ramp.model.slot import Reservation, Slot
from ramp.plugins.interface import PluginSettings, ResourcePlugin
from ramp.runtime.atomic_writes import write_whole
from ramp.runtime.clock import SystemClock
from ramp.runtime.configuration.file import load_config
from ramp.runtime.configuration.values import PLUGIN_GROUP, entry_point, plugin_settings
from ramp.shipped_files import find_config
from simulation.machine_files import load_machine, machine_path
from simulation.resource import fake_qstat, modelled_options
from simulation.workload.logs import find_log
from simulation.workload.swf import read_swf

HELD_FOR: Final = HOUR
"""How long a slot is held before it is confirmed, which follows at once."""

_SIMULATED: Final = "simulation."
_STARTED: Final = "system-start"
_NO_NAME: Final = re.compile(r"[^A-Za-z0-9.-]+")


def open_without_market(
    name: str, folder: Path, system_start: Instant | None, base_time: Duration | None, now: Instant
) -> ResourcePlugin:
    """Open the plug-in of a simulated machine.

    Args:
        name: `CONFIG:RESOURCE` or `CONFIG` with a single resource, the name or file of a workload log, or of a machine.
        folder: keeps reservations and start of each machine, in a folder of its own.
        system_start: start of the machine's clock, when its log stands at the base time; by default the kept one, which
            is at first the present.
        base_time: where a log or a machine's own workload stands then, microseconds, whole seconds; a market's
            configuration says it itself.
        now: the present.

    Raises:
        ConfigurationError: there is nothing of that name, or it is no simulated machine.
        WorkloadError: the log cannot be read.
        PluginError: what was reserved cannot be read.
    """
    plugin, settings = _found(name, base_time)
    entry = entry_point(PLUGIN_GROUP, plugin)
    if not entry.value.startswith(_SIMULATED):
        raise ConfigurationError(f"{name}: {plugin} is no simulated machine; ask it in its market, as ramp qstat does")
    kept = folder / _NO_NAME.sub("_", name)
    start = _start(kept / _STARTED, system_start, now)
    opened: ResourcePlugin = entry.load()(settings(start, kept))
    return opened


def answer(
    name: str,
    folder: Path,
    *,
    cores: int,
    start: Instant | None,
    walltime: Duration | None,
    system_start: Instant | None,
    base_time: Duration | None,
    reserves: bool,
) -> dict[str, Any]:
    """Ask a machine about a job that starts at an exact time; return what `--json` prints.

    Args:
        name: as of `open_without_market`, like `folder`, `system_start` and `base_time`.
        folder: keeps reservations.
        cores: of the job.
        start: of the job; None for now.
        walltime: of the job, microseconds; None for an hour.
        system_start: start of the machine's clock.
        base_time: of its workload.
        reserves: whether the job's slot is set aside, for good; it counts in every later answer.
    """
    now = SystemClock().now()
    machine = open_without_market(name, folder, system_start, base_time, now)
    begins, length = start or now, walltime or HOUR
    job = RequestUnit(1, 1, begins + length, TotalCores(cores), not_before=begins, wall_time=length)
    slot = machine.quote(job, now)
    found: Slot | Refusal | Reservation = slot
    if reserves and isinstance(slot, Slot):
        key = f"job-{secrets.token_hex(8)}"
        found = machine.hold(key, job, slot, now + HELD_FOR, now)
        found = found if isinstance(found, Refusal) else machine.confirm(key, now)
    return {
        "machine": name,
        "source": machine.source,
        "start": iso(begins),
        "cores": cores,
        "load_percent": round(100 * slot.load, 1) if isinstance(slot, Slot) else None,
        "reservation_id": found.reservation_id if isinstance(found, Reservation) else None,
        "refusal": asdict(found) if isinstance(found, Refusal) else None,
    }


def _found(name: str, base_time: Duration | None) -> tuple[str, Callable[[Instant, Path], PluginSettings]]:
    """Return the name of a machine's plug-in, and what makes its settings of the clock's start and the folder."""
    options: dict[str, Any] = {} if base_time is None else {"base_time_s": base_time // SECOND}
    path = None if name.endswith(".toml") else find_log(name)
    if path is not None:
        log = read_swf(path)
        cores = log.header_integer("MaxProcs") or log.header_integer("MaxNodes")
        if not cores:
            raise WorkloadError("its header has no MaxProcs, expected the machine's processors", path=path)
        return fake_qstat.NAME, _settings(name, cores, {"log": name, **options})
    if machine_path(name).is_file() and _is_machine(machine_path(name)):
        machine = load_machine(name)
        cores = prod(machine.extents) * max(machine.traits.processors, 1)
        return modelled_options.NAME, _settings(name, cores, {"machine": name, **options})
    if options:
        raise ConfigurationError(f"{name}: a resource's base time stands in its configuration, got another one")
    config, _, resource = name.partition(":")
    loaded = load_config(find_config(config))
    if not resource and len(loaded.resources) != 1:
        names = ", ".join(each.name for each in loaded.resources)
        raise ConfigurationError(f"{config} has several resources, expected {config}:RESOURCE, one of {names}")
    named = loaded.resource(resource or loaded.resources[0].name)
    return named.plugin, partial(plugin_settings, named)


def _settings(name: str, cores: int, options: dict[str, Any]) -> Callable[[Instant, Path], PluginSettings]:
    return lambda start, folder: PluginSettings(Path(name).name, cores, 1, start, options, folder)


def _is_machine(path: Path) -> bool:
    """Whether a TOML file describes a machine, not a market."""
    try:
        return "kind" in tomllib.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"cannot be read: {error}", path=path) from error


def _start(path: Path, given: Instant | None, now: Instant) -> Instant:
    """Return the start of a machine's clock, and keep it."""
    if given is None and path.is_file():
        try:
            return from_iso(path.read_text().strip())
        except ValueError as error:
            raise ConfigurationError(f"holds no time: {error}; give --system-start", path=path) from error
    start = now if given is None else given
    write_whole(path, f"{iso(start)}\n".encode(), private=False)
    return start
