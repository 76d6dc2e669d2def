"""The sellers of a market: their agents' states and their machines' answers. Pure."""

from __future__ import annotations

from typing import NamedTuple

from ramp.client.machine_state import MachineState
from ramp.control.status import state_text
from ramp.web.metrics.levels import Levels


class Seller(NamedTuple):
    """A seller.

    Attributes:
        name: as pages show it; with a domain at another site.
        agent: the state of its agent in words.
        is_draining: whether it sells nothing new.
        machine: its machine's answer; None without one.
    """

    name: str
    agent: str
    is_draining: bool
    machine: MachineState | None

    @property
    def busy(self) -> float | None:
        """Share of the cores in use, 0 to 1."""
        return None if self.machine is None else self.machine.cores_busy / max(self.machine.cores, 1)

    @property
    def start_price(self) -> int | None:
        return None if self.machine is None else self.machine.start_price

    @property
    def architecture(self) -> str:
        return (self.machine and self.machine.architecture) or ""


def sellers_of(levels: Levels) -> list[Seller]:
    """Return all sellers by name, also those that do not answer."""
    agents = levels.status.agents if levels.status is not None else ()
    local = {agent.name: agent for agent in agents if agent.role == "resource"}
    found = []
    for name in sorted({*local, *levels.machines}):
        agent = local.get(name)
        text = "at another site" if agent is None else state_text(agent)
        found.append(Seller(name, text, agent is not None and agent.draining, levels.machines.get(name)))
    return found
