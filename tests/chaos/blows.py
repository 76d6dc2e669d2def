"""What strikes a market: each of its processes by turns is killed, or stands still for a while."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import Final

from ramp.control.status import SwarmStatus
from ramp.servers.process import probe_problem
from tests.chaos.market import ChaosMarket, wait_until

SUPERVISOR: Final = "supervisor"
SERVER: Final = "server"

FROZEN_S: Final = (1.0, 6.0)
"""How long a process stands still, in seconds."""


LOOK_LIMIT_S: Final = 2.0
"""How long the server may take to answer a look, in seconds."""


class Kind(StrEnum):
    """What is done: SIGKILL, or SIGSTOP and after some seconds SIGCONT."""

    KILL = "kill -9"
    FREEZE = "freeze"


@dataclass(frozen=True, slots=True)
class Blow:
    """One blow that is to be.

    Attributes:
        site: where; empty where the market has one only.
        victim: `supervisor`, `server`, or the first agent of a process.
        kind: what is done.
        lasting_s: how long it stands still, in seconds; 0 where it is killed.
    """

    site: str
    victim: str
    kind: Kind
    lasting_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Struck:
    """One blow that was.

    Attributes:
        at_s: when, in seconds since the load began.
        blow: what was done, and to whom.
        agents: who was in the process.
        up_again_s: until everybody was up again, in seconds since the blow; None where that took too long.
        next_purchase_s: until the next purchase was committed, in seconds since the blow; None where none was.
    """

    at_s: float
    blow: Blow
    agents: tuple[str, ...]
    up_again_s: float | None
    next_purchase_s: float | None = None


def processes(status: SwarmStatus) -> dict[str, tuple[int, tuple[str, ...]]]:
    """The processes of a market by the names of their victims: id, and the agents in it."""
    found: dict[str, tuple[int, tuple[str, ...]]] = {}
    for agent in status.agents:
        first = next((name for name, (pid, _) in found.items() if pid == agent.pid), agent.name)
        found[first] = agent.pid, (*found.get(first, (0, ()))[1], agent.name)
    if status.server.pid is not None:
        found[SERVER] = status.server.pid, ()
    found[SUPERVISOR] = status.pid, ()
    return found


def turns(victims: Sequence[tuple[str, str]], random: Random) -> Iterator[Blow]:
    """Blows without end: every victim is struck in every turn, in an order of the turn's own.

    Args:
        victims: site and name as in `processes` of each.
        random: draws order, kind and lasting.
    """
    while True:
        order = list(victims)
        random.shuffle(order)
        for site, victim in order:
            if victim == SUPERVISOR or random.random() < 0.5:  # frozen it would only be deaf to those who ask
                yield Blow(site, victim, Kind.KILL)
            else:
                yield Blow(site, victim, Kind.FREEZE, round(random.uniform(*FROZEN_S), 1))


def strike(sites: Mapping[str, ChaosMarket], blow: Blow, at_s: float) -> Struck:
    """Strike, start again what nothing else starts again, and wait until everybody is up everywhere."""
    market = sites[blow.site]
    status = market.status()
    assert status is not None, "a market is struck that is up"
    pid, agents = processes(status)[blow.victim]
    began = time.monotonic()
    if blow.kind is Kind.FREEZE:
        _signal(pid, signal.SIGSTOP)
        try:
            time.sleep(blow.lasting_s)
        finally:
            _signal(pid, signal.SIGCONT)
    else:
        _signal(pid, signal.SIGKILL)
    if blow.victim == SUPERVISOR:
        market.launch()

    def again() -> bool:
        found = market.status()
        if found is None or not all(each.is_well() for each in sites.values()):
            return False
        if blow.victim == SERVER and probe_problem(found.server.host, found.server.port, market.domain, LOOK_LIMIT_S):
            return False  # which the supervisor may not have noticed yet
        return blow.kind is Kind.FREEZE or pid not in (each for each, _ in processes(found).values())

    waited = wait_until(again)
    up_again_s = None if waited is None else round(time.monotonic() - began, 2)
    return Struck(round(at_s, 2), blow, agents, up_again_s)


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
