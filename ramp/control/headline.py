"""The health of a market in one word and one sentence."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ramp.control.status import STANDBY, UP, AgentStatus, SwarmStatus

TOLD_MAX: Final = 3
"""Agents that are named in the sentence; the table has them all."""

ILL: Final = ("failed", "degraded", "broken")
"""States of an agent that is not well; its detail says why."""


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
    server = found.server
    if server.problem:
        return Headline(
            Health.NO_SERVER, f"the {server.kind} XMPP server at {server.host}:{server.port} {server.problem}"
        )
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
