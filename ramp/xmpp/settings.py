"""Settings of an agent's XMPP transport."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from ramp.runtime.configuration.values import QuotaConfig
from ramp.xmpp.link import LinkPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportSettings:
    """Settings of an agent's connection to its XMPP server.

    Attributes:
        servers: (host, port) of servers of the agent's domain, at least one, tried in turn.
        ca_file: PEM file of the only trusted certificate authorities; None trusts those of the system.
        register: create a missing account if the server allows it (XEP-0077).
        federation: allow receivers of other domains (not supported by the embedded server).
        policy: timeouts and pauses of connecting.
        quotas: maximum rate of messages from one sender.
    """

    servers: tuple[tuple[str, int], ...]
    ca_file: Path | None = None
    register: bool = False
    federation: bool = False
    policy: LinkPolicy = field(default_factory=LinkPolicy)
    quotas: QuotaConfig = field(default_factory=QuotaConfig)

    def beginning_at(self, number: int) -> TransportSettings:
        """Return the same settings with another server first; `number` counts modulo the servers."""
        first = number % len(self.servers)
        return replace(self, servers=self.servers[first:] + self.servers[:first])
