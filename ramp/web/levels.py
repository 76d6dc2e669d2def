"""The state of a market: its agents, machines, accounts and sellers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeVar

from ramp.client import dialogues
from ramp.client.access import RunningMarket, status
from ramp.client.asyncio_market import AsyncMarket
from ramp.client.machine_state import MachineState
from ramp.control.status import SwarmStatus, state_text
from ramp.errors import RampError
from ramp.model.contents.accounts import AccountLine
from ramp.model.seal import Role
from ramp.runtime.state_folder import StateFolder

ANSWER_LIMIT_S: Final = 4.0
"""Timeout for answers in seconds; late values are left out. Prometheus gives up after 10."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Levels:
    """The state of a market.

    Attributes:
        status: what its supervisor says; None where no market runs.
        machines: by the resource's local name; those that have not answered are not there.
        accounts: all accounts, None where the bank has not answered the keeper.
    """

    status: SwarmStatus | None = None
    machines: Mapping[str, MachineState] = field(default_factory=dict)
    accounts: tuple[AccountLine, ...] | None = None


async def read_levels(state: StateFolder) -> Levels:
    """Return the state of a market; never fails."""
    found = None
    with contextlib.suppress(RampError):
        found = await asyncio.to_thread(status, state)
    if found is None:
        return Levels()
    machines, accounts = await asyncio.gather(
        _asked(state, found, Role.USER, _machines), _asked(state, found, Role.KEEPER, _accounts)
    )
    return Levels(found, machines or {}, accounts)


async def _asked(
    state: StateFolder, found: SwarmStatus, role: Role, ask: Callable[[AsyncMarket], Awaitable[T]]
) -> T | None:
    """Ask as the first agent of a role that is up; None without one, or without an answer in time."""
    name = next((agent.name for agent in found.agents if agent.role == role and agent.is_up), None)
    if name is not None:
        with contextlib.suppress(RampError, TimeoutError):
            async with asyncio.timeout(ANSWER_LIMIT_S):
                return await ask(AsyncMarket(RunningMarket(state, name, found.domain)))
    return None


async def _machines(market: AsyncMarket) -> dict[str, MachineState]:
    asked = await market.machines(await market.resources(), ANSWER_LIMIT_S / 2)
    return {each.name: each.machine for each in asked if each.machine is not None}


async def _accounts(keeper: AsyncMarket) -> tuple[AccountLine, ...]:
    # of the trading nothing is wanted, so it begins now
    return (await keeper.ask(dialogues.overview(keeper.access.now(), None))).accounts


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
