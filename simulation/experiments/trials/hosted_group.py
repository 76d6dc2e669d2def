"""A process of agents on one host of a market whose agents live in several XMPP domains.

As `ramp.agents.group`, but every agent has the domain of its own host's server; the servers federate. Started by
`simulation.experiments.trials.hosts` inside a host's network namespace.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from ramp.runtime.configuration.file import load_config
from ramp.runtime.configuration.values import SwarmConfig
from ramp.runtime.logs.events import log_to_stderr
from ramp.runtime.state_folder import StateFolder


@dataclass(frozen=True, slots=True)
class FederatedConfig(SwarmConfig):
    """A swarm in several domains.

    Attributes:
        domain_of: domain of the agents that are not in the swarm's own.
    """

    domain_of: Mapping[str, str] = field(default_factory=dict)

    def address(self, local_name: str) -> str:
        """Full name of an agent: `name@domain` with the domain of its host."""
        return f"{local_name}@{self.domain_of.get(local_name, self.domain)}"


def federated(config: SwarmConfig, domain_of: Mapping[str, str]) -> FederatedConfig:
    """Return a configuration with the domains of its agents."""
    given = {entry.name: getattr(config, entry.name) for entry in fields(SwarmConfig)}
    return FederatedConfig(**given, domain_of=domain_of)


def main() -> int:
    """Run the agents until SIGTERM, as the only argument says: the fields of `hosts._group_command` as JSON."""
    log_to_stderr(logging.WARNING)
    asyncio.run(_run(**json.loads(sys.argv[1])))
    return 0


async def _run(
    config: str, state: str, host: str, port: int, ca_file: str, agents: list[str], domains: dict[str, str]
) -> None:
    # only here: listing the experiments imports this module, and SPADE takes a second
    from ramp.agents.group import run_agents
    from ramp.xmpp.settings import TransportSettings

    found = federated(load_config(Path(config)), domains)
    settings = TransportSettings(servers=((host, port),), ca_file=Path(ca_file), federation=True, quotas=found.quotas)
    await run_agents(found, StateFolder(Path(state)), settings, agents)


if __name__ == "__main__":
    sys.exit(main())
