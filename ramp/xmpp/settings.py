"""Settings of an agent's XMPP transport, and its counters."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from ramp.errors import ConfigurationError
from ramp.runtime.configuration.values import QuotaConfig
from ramp.xmpp.link import LinkPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportSettings:
    """Settings of an agent's connection to its XMPP server.

    Attributes:
        servers: (host, port) of servers of the agent's domain, tried in turn.
        ca_file: PEM file of the only trusted certificate authorities; None trusts those of the system.
        verify_certificate: False accepts any certificate; only for tests on loopback.
        register: create a missing account if the server allows it (XEP-0077).
        federation: allow receivers of other domains (not supported by the embedded server).
        policy: timeouts and pauses of connecting.
        quotas: maximum rate of messages from one sender.
    """

    servers: tuple[tuple[str, int], ...]
    ca_file: Path | None = None
    verify_certificate: bool = True
    register: bool = False
    federation: bool = False
    policy: LinkPolicy = field(default_factory=LinkPolicy)
    quotas: QuotaConfig = field(default_factory=QuotaConfig)

    def __post_init__(self) -> None:
        if not self.servers:
            raise ConfigurationError("no server is given: expected at least one (host, port)", key="servers")
        for host, port in self.servers:
            if not host or not 0 < port < 65_536:
                raise ConfigurationError(
                    f"invalid server: got {host}:{port}, expected a host and a port from 1 to 65535", key="servers"
                )

    def beginning_at(self, number: int) -> TransportSettings:
        """Return the same settings with another server first; `number` counts modulo the servers."""
        first = number % len(self.servers)
        return replace(self, servers=self.servers[first:] + self.servers[:first])


@dataclass(slots=True)
class TransportCounters:
    """Counters of an agent's transport since it was created.

    Attributes:
        sent: messages written to the connection or put into the outbox.
        received: messages passed to behaviours.
        sessions: new sessions.
        resumed: resumed sessions (XEP-0198).
        disconnects: lost sessions.
        bounced: own messages that the server returned.
        refused: incoming messages dropped because they could not be decoded or the behaviour's mailbox was full.
        dropped: outgoing messages dropped because the outbox was full.
        misaddressed: incoming stanzas dropped because their sender has no canonical address.
        over_quota: incoming messages dropped unread because their sender exceeded its quota.
        faults: programming errors met by a message or a deadline; each ended that message or conversation only.
    """

    sent: int = 0
    received: int = 0
    sessions: int = 0
    resumed: int = 0
    disconnects: int = 0
    bounced: int = 0
    refused: int = 0
    dropped: int = 0
    misaddressed: int = 0
    over_quota: int = 0
    faults: int = 0
