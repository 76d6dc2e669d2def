"""How an agent reaches its XMPP server, and what its transport has counted."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from ramp.errors import ConfigurationError
from ramp.runtime.config import QuotaConfig
from ramp.xmpp import wire
from ramp.xmpp.link import LinkPolicy
from ramp.xmpp.outbox import OUTBOX_MESSAGES_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportSettings:
    """How an agent reaches its XMPP server.

    Attributes:
        servers: (host, port) of servers of the agent's domain, tried in turn.
        ca_file: PEM file of the only certificate authorities to trust; None for those of the system.
        verify_certificate: False accepts any certificate; for tests on loopback only.
        register: create the account where the server allows it and it does not exist (XEP-0077).
        federation: allow receivers of other domains (the embedded server has none).
        stanza_max_bytes: size limit of one message, in bytes of XML after escaping.
        compress_from_bytes: bodies of at least this many bytes travel compressed.
        outbox_messages_max: messages kept while disconnected; the oldest are given up first.
        fast: use the speed-ups of `ramp.xmpp.spade_patches` where the installed versions allow it.
        policy: how patiently to connect and reconnect.
        quotas: what the agent takes from one sender.
    """

    servers: tuple[tuple[str, int], ...]
    ca_file: Path | None = None
    verify_certificate: bool = True
    register: bool = False
    federation: bool = False
    stanza_max_bytes: int = wire.STANZA_MAX_BYTES
    compress_from_bytes: int = wire.COMPRESS_FROM_BYTES
    outbox_messages_max: int = OUTBOX_MESSAGES_MAX
    fast: bool = True
    policy: LinkPolicy = field(default_factory=LinkPolicy)
    quotas: QuotaConfig = field(default_factory=QuotaConfig)

    def __post_init__(self) -> None:
        if not self.servers:
            raise ConfigurationError("at least one (host, port) is needed", key="servers")
        for host, port in self.servers:
            if not host or not 0 < port < 65_536:
                raise ConfigurationError(f"{host}:{port} is no server; host and a port from 1 to 65535", key="servers")
        for key in ("stanza_max_bytes", "compress_from_bytes", "outbox_messages_max"):
            if getattr(self, key) < 1:
                raise ConfigurationError(f"{getattr(self, key)} is too small; at least 1", key=key)

    def beginning_at(self, number: int) -> TransportSettings:
        """The same with another server to try first.

        Args:
            number: any; the servers are counted round.
        """
        first = number % len(self.servers)
        return replace(self, servers=self.servers[first:] + self.servers[:first])


@dataclass(slots=True)
class TransportCounters:
    """What an agent's transport has seen since it was made.

    Attributes:
        sent: messages handed to the line or put into the outbox, one for each receiver.
        received: messages handed to behaviours.
        sessions: sessions opened anew.
        resumed: sessions resumed (XEP-0198).
        disconnects: sessions lost.
        bounced: messages of ours that came back.
        refused: incoming messages thrown away: not decodable, or the behaviour's mailbox was full.
        dropped: messages given up because the outbox was full.
        misaddressed: incoming stanzas thrown away because their sender is no canonical address.
        over_quota: incoming messages thrown away unread because their sender sends too many.
        faults: bugs of ours that a message or a deadline has met; each ended at that message or conversation.
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
