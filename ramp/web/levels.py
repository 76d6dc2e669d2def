"""The state of a market: its agents, machines, accounts and sellers, read with a short cache."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ramp.client import dialogues
from ramp.client.access import RunningMarket, find_market, status
from ramp.client.asyncio_market import AsyncMarket
from ramp.client.machine_state import MachineState
from ramp.control.status import SwarmStatus, state_text
from ramp.errors import RampError
from ramp.model.contents.accounts import AccountLine
from ramp.runtime.state_folder import StateFolder

FRESH_S: Final = 5.0
"""Lifetime of the cache in seconds."""

ANSWER_LIMIT_S: Final = 4.0
"""Timeout for answers in seconds; late values are left out. Prometheus gives up after 10."""


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


class MarketReader:
    """Reads the levels of one market."""

    def __init__(self, state: StateFolder) -> None:
        self._state = state
        self._one_at_a_time = asyncio.Lock()
        self._read_at: float | None = None
        self._levels = Levels()

    async def read(self) -> Levels:
        """Return the state of the market, at most `FRESH_S` old; never fails."""
        async with self._one_at_a_time:
            if self._read_at is None or time.monotonic() >= self._read_at + FRESH_S:
                self._levels = await self._read()
                self._read_at = time.monotonic()
            return self._levels

    async def _read(self) -> Levels:
        try:
            found = await asyncio.to_thread(status, self._state)
        except RampError:
            return Levels()
        if found is None:
            return Levels()
        machines, accounts = await asyncio.gather(self._machines(found), self._accounts(found))
        return Levels(found, machines, accounts)

    async def _machines(self, found: SwarmStatus) -> dict[str, MachineState]:
        users = [agent.name for agent in found.agents if agent.role == "user" and agent.is_up]
        if not users:
            return {}
        with contextlib.suppress(RampError, TimeoutError):
            async with asyncio.timeout(ANSWER_LIMIT_S):
                market = AsyncMarket(await asyncio.to_thread(find_market, self._state, users[0]))
                asked = await market.machines(await market.resources(), ANSWER_LIMIT_S / 2)
                return {each.name: each.machine for each in asked if each.machine is not None}
        return {}

    async def _accounts(self, found: SwarmStatus) -> tuple[AccountLine, ...] | None:
        keepers = [agent.name for agent in found.agents if agent.role == "keeper" and agent.is_up]
        if not keepers:
            return None
        keeper = AsyncMarket(RunningMarket(self._state, keepers[0], found.domain))
        with contextlib.suppress(RampError, TimeoutError):
            async with asyncio.timeout(ANSWER_LIMIT_S):
                # of the trading nothing is wanted, so it begins now
                return (await keeper.ask(dialogues.overview(keeper.access.now(), None))).accounts
        return None


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
