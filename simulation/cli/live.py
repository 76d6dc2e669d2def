"""What `ramp smap` needs of a running market: a machine's snapshot, as a view and as a line of projected load."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ramp.cli.connection import open_market
from ramp.cli.machines import ask_machine, check_registered
from ramp.cli.output import bar_text, duration_text, moment_text
from ramp.errors import ConfigurationError
from ramp.model.instant import HOUR, Duration, from_iso, seconds
from ramp.runtime.state_folder import StateFolder
from simulation.machine_files import load_machine
from simulation.machines.interface import GridMachine
from simulation.machines.view import MachineView
from simulation.resource.live_map import view_of_snapshot


@dataclass(frozen=True, slots=True)
class LiveMap:
    """A machine of a running market at a moment.

    Attributes:
        machine: what it is.
        view: what to draw.
        moment: when that was, ISO 8601.
        load: hours from now and projected share of the machine taken, in order of time.
        horizon: how far `load` reaches.
    """

    machine: GridMachine
    view: MachineView
    moment: str
    load: tuple[tuple[float, float], ...]
    horizon: Duration

    def as_json(self) -> dict[str, Any]:
        """What `ramp smap --json` says besides what it says of any machine."""
        return {"time": self.moment, "projected_load": [{"hours": hour, "load": share} for hour, share in self.load]}

    @property
    def load_line(self) -> str:
        """The projected load as a line of bars."""
        shares = [share for _, share in self.load]
        mean = sum(shares) / max(len(shares), 1)
        return f"projected load over {duration_text(self.horizon)}: {bar_text(shares)} (mean {mean:.1%})"


def ask_live_map(resource: str, state: StateFolder, user: str | None, horizon: Duration) -> LiveMap:
    """Ask a resource of the running market for its map.

    Raises:
        TransportError: no market is running there, or the resource does not answer.
        ConfigurationError: no resource of that name is registered, or its machine has no map.
    """
    market = open_market(state, user)
    check_registered(market, resource)
    return live_map_of(ask_machine(market, resource, horizon), horizon)


def live_map_of(snapshot: dict[str, Any], horizon: Duration) -> LiveMap:
    """The map in a snapshot; see `ask_live_map`."""
    name = str(snapshot["resource"])
    if "map" not in snapshot:
        raise ConfigurationError(
            f"{name} is a flat machine without a map; `ramp qstat {name}` shows its queue", key="machine"
        )
    machine = load_machine(snapshot["map"]["machine"])
    if not isinstance(machine, GridMachine):
        raise ConfigurationError(f"{name}: {machine.name} is a flat machine here and has no map", key="machine")
    now = from_iso(snapshot["time"])
    load = tuple((seconds(from_iso(part["time"]) - now) / seconds(HOUR), part["load"])
                 for part in snapshot["projected_load"])  # fmt: skip
    view = replace(view_of_snapshot(machine, snapshot), machine=name)
    return LiveMap(machine, view, moment_text(now), load, horizon)
