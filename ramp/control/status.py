"""The status of a market, as its supervisor answers `ShowStatus`, and its health in one word and one sentence."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

READY_LIMIT_S: Final = 300.0
"""How long a launch waits for the next agent to be ready, in seconds; generous, for busy computers.

An agent that cannot start reports it, which ends the launch at once.
"""

STOP_LIMIT_S: Final = 10.0
"""How long the processes of a swarm may take to end after SIGTERM, in seconds."""

UP: Final = "up"

STANDBY: Final = "standby"
"""State of a bank that takes over if the other one falls silent; it is well, and not on the market."""

TOLD_MAX: Final = 3
"""Agents that are named in the sentence; the table has them all."""

ILL: Final = ("failed", "degraded", "broken")
"""States of an agent that is not well; its detail says why."""


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """The XMPP server: its kind and address; the process where the swarm runs it.

    `problem` says why it cannot be reached, and is empty where it answers.
    """

    kind: str
    host: str
    port: int
    pid: int | None
    problem: str = ""

    @property
    def text(self) -> str:
        """Kind and address, for sentences."""
        return f"{self.kind} XMPP server at {self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class AgentStatus:
    """The status of one agent.

    Attributes:
        role: `directory`, `bank`, `keeper`, `user` or `resource`.
        state: `starting`, `ready`, `failed`, `degraded`, `broken`, `standby` or `stopped`.
        detail: the reason if it is not well; otherwise the source of a resource's queue.
        restarts: how often it was started again.
        since: when it came into this state, ISO 8601; empty before the first.
        is_up: whether it is on the market; a `degraded` resource is where only its plug-in or price strategy fails.
        clock_offset_ms: by how much its clock is certainly ahead of the bank's, in milliseconds; None if unknown.
        clock_uncertainty_ms: how much further it may be ahead or behind.
        clock_warning: that its clock is wrong, or the empty string.
        draining: whether it sells nothing new.
    """

    name: str
    role: str
    pid: int
    state: str
    detail: str
    restarts: int
    since: str
    is_up: bool = False
    clock_offset_ms: float | None = None
    clock_uncertainty_ms: float | None = None
    clock_warning: str = ""
    draining: bool = False


@dataclass(frozen=True, slots=True)
class SwarmStatus:
    """The status of a market.

    Attributes:
        state: `starting`, or `up` once every agent is ready or says why it cannot be.
        as_of: time of this status, ISO 8601.
        pid: the supervisor's process.
        config: the configuration's file.
        domain: of the agents' names.
    """

    state: str
    as_of: str
    pid: int
    config: str
    server: ServerStatus
    agents: tuple[AgentStatus, ...]
    domain: str = ""

    def names(self, role: str) -> tuple[str, ...]:
        """Local names of the agents of a role."""
        return tuple(agent.name for agent in self.agents if agent.role == role)

    def agent(self, name: str) -> AgentStatus | None:
        return next((agent for agent in self.agents if agent.name == name), None)


class Health(StrEnum):
    """Health of a market: all agents up; some not well; launching; no connection between agents."""

    UP = "up"
    DEGRADED = "degraded"
    STARTING = "starting"
    NO_SERVER = "no server"


@dataclass(frozen=True, slots=True)
class Headline:
    """One word, and the agents with reasons; empty where all is well."""

    health: Health
    why: str = ""

    @property
    def sentence(self) -> str:
        verb = "has" if self.health is Health.NO_SERVER else "is"
        return f"The market {verb} {self.health}{f': {self.why}' if self.why else ''}"


def headline(found: SwarmStatus) -> Headline:
    """Return the health of a market.

    An unreachable server comes first, because nothing else works without it. Agents that fail during the launch are
    reported at once, because it may never complete.
    """
    if found.server.problem:
        return Headline(Health.NO_SERVER, f"the {found.server.text} {found.server.problem}")
    ill = [agent for agent in found.agents if agent.state in ILL]
    waiting = [agent for agent in found.agents if not is_well(agent) and agent not in ill]
    if ill:
        return Headline(Health.DEGRADED, _named([*ill, *waiting]))
    if found.state != UP:
        return Headline(Health.STARTING, f"{len(waiting)} of {len(found.agents)} agents are not up yet")
    return Headline(Health.DEGRADED, _named(waiting)) if waiting else Headline(Health.UP)


def _named(agents: list[AgentStatus]) -> str:
    told = [f"{agent.name} ({agent.role}) is {state_text(agent)}" for agent in agents[:TOLD_MAX]]
    more = [f"and {len(agents) - TOLD_MAX} more"] if len(agents) > TOLD_MAX else []
    return "; ".join(told + more)


def is_well(agent: AgentStatus) -> bool:
    """Return whether an agent does its work: on the market, or as a standby of one that is."""
    return agent.state == STANDBY or (agent.is_up and agent.state not in ILL)


def state_text(agent: AgentStatus) -> str:
    """Return an agent's state, with the reason if it is not well, and whether it drains."""
    state = f"{agent.state}: {agent.detail}" if agent.state in ILL else agent.state
    return f"{state}, draining" if agent.draining else state
