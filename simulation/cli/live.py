"""What `ramp smap` needs of a running market: a machine's snapshot, as a view and as a line of projected load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ramp.cli.connection import ask, open_market
from ramp.cli.verbs.machines import check_registered
from ramp.cli.views.output import bar_text, duration_text, moment_text
from ramp.client import dialogues
from ramp.client.machine_state import MachineState
from ramp.errors import ConfigurationError
from ramp.model.instant import HOUR, Duration, from_datetime, seconds
from ramp.runtime.state_folder import StateFolder
from simulation.machine_files import load_machine
from simulation.machines.interface import GridMachine, has_places
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
    return live_map_of(ask(market, dialogues.machine(resource, horizon), f"asking {resource}"), horizon)


def live_map_of(shown: MachineState, horizon: Duration) -> LiveMap:
    """The map in what a machine says of itself; see `ask_live_map`."""
    name = shown.resource
    drawn = shown.snapshot.get("map")
    if not isinstance(drawn, Mapping):
        raise ConfigurationError(
            f"{name} is a flat machine without a map; `ramp qstat {name}` shows its queue", key="machine"
        )
    machine = load_machine(str(drawn["machine"]))
    if not has_places(machine):
        raise ConfigurationError(f"{name}: {machine.name} is a flat machine here and has no map", key="machine")
    load = tuple(((part.time - shown.time).total_seconds() / seconds(HOUR), part.load) for part in shown.projected_load)
    view = replace(view_of_snapshot(machine, shown.snapshot), machine=name)
    return LiveMap(machine, view, moment_text(from_datetime(shown.time)), load, horizon)
