"""The directory: who sells now. Registrations are leases renewed by heartbeats, so a resource that dies disappears."""

from __future__ import annotations

from collections.abc import Iterable

from ramp.errors import RemoteProtocolError
from ramp.model.acl import Message, Performative
from ramp.model.contents import Deregistration, DirectoryListing, DirectoryQuery, NotUnderstood, Registration
from ramp.model.instant import MINUTE, Duration, Instant
from ramp.protocol.effects import Effect, Send
from ramp.protocol.events import Event, MessageReceived

LEASE_MAX: Duration = 10 * MINUTE
"""Longer leases are cut to this, so that nobody stays listed for ever."""

REGISTRATIONS_MAX = 10_000
"""More agents than this are not listed; bounds the listing's size and the memory."""


class DirectoryParty:
    """Everything the directory agent does.

    After a restart it begins with those who were registered before, for one lease: were its memory rebuilt by
    heartbeats alone, the first auctions would be told of a part of the market only.

    Args:
        name: the agent's name.
        known: (service, name) of those registered when it ended.
        known_for: how long they are listed without a heartbeat.
    """

    def __init__(self, name: str, *, known: Iterable[tuple[str, str]] = (), known_for: Duration = MINUTE) -> None:
        self.name = name
        self._known = tuple(known)
        self._known_for = min(known_for, LEASE_MAX)
        self.deadline: Instant | None = None
        self._leases: dict[tuple[str, str], Instant] = {}

    def start(self, now: Instant) -> list[Effect]:
        """The directory waits for registrations."""
        self._leases = dict.fromkeys(self._known[:REGISTRATIONS_MAX], now + self._known_for)
        self.tick(now)
        return []

    @property
    def registered(self) -> tuple[tuple[str, str], ...]:
        """(service, name) of everybody listed, in order."""
        return tuple(sorted(self._leases))

    def tick(self, now: Instant) -> list[Effect]:
        """Strike out whose lease has run out."""
        self._leases = {key: until for key, until in self._leases.items() if until > now}
        self.deadline = min(self._leases.values(), default=None)
        return []

    def handle(self, event: Event, now: Instant) -> list[Effect]:
        """Register, strike out, list.

        Raises:
            RemoteProtocolError: if a message has no place here.
        """
        if not isinstance(event, MessageReceived):
            return []
        message = event.message
        match message.content:
            case Registration(service, lease):
                key = (service, message.sender)
                if key in self._leases or len(self._leases) < REGISTRATIONS_MAX:
                    self._leases[key] = now + min(lease, LEASE_MAX)
                self.tick(now)
                return [self._reply(message, DirectoryListing("", service, ()))]
            case Deregistration(service):
                self._leases.pop((service, message.sender), None)
                return []
            case DirectoryQuery(query_id, service):
                self.tick(now)
                names = sorted(name for registered, name in self._leases if registered == service)
                return [self._reply(message, DirectoryListing(query_id, service, tuple(names)))]
            case NotUnderstood():
                return []
            case _:
                raise RemoteProtocolError(
                    f"{type(message.content).__name__} is nothing for a directory",
                    conversation_id=message.conversation_id,
                )

    def _reply(self, message: Message, listing: DirectoryListing) -> Send:
        return Send(
            Message(
                Performative.INFORM,
                self.name,
                message.sender,
                message.conversation_id,
                listing,
                in_reply_to=message.reply_with,
            )
        )
