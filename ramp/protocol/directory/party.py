"""The directory: who sells now. Registrations are leases renewed by heartbeats, so a resource that dies disappears.

A registration or withdrawal is its resource's own sealed word, numbered: only a higher number than the last counts, so
one that was captured strikes nobody out and keeps nobody listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from ramp.errors import RemoteProtocolError
from ramp.model.acl import Message, Performative
from ramp.model.contents import (
    Deregistration,
    DirectoryListing,
    DirectoryQuery,
    NotUnderstood,
    Registered,
    Registration,
)
from ramp.model.instant import MINUTE, Duration, Instant
from ramp.model.machine_terms.static_needs import StaticNeeds
from ramp.model.services import ROLE_OF_SERVICE
from ramp.model.slot import StaticTerms
from ramp.protocol.belief import sealed_lately
from ramp.protocol.directory.listed import Listed
from ramp.protocol.effects import Effect, reply
from ramp.protocol.events import Event, MessageReceived
from ramp.protocol.records import Record
from ramp.protocol.timing import Timing

LEASE_MAX: Duration = 10 * MINUTE
"""Maximum lease; longer ones are shortened, so that every listing expires."""

REGISTRATIONS_MAX = 100_000
"""More agents than this are not listed; each is certified, so this bounds the memory only."""

PAGE_NAMES_MAX = 500
"""Names in one listing; with 2 500 of them it would come near the size limit of a message."""

UNFIT_MAX = 100
"""So many of those who could serve nothing of what is needed are told, with their terms, beside the first page."""


@dataclass(slots=True)
class _Entry:
    """What is known of one agent.

    Attributes:
        number: the highest.
        until: when its lease ends, or 0 where it is not listed.
        watched: when the heap of ends looks at it next; older items of the heap are stale.
    """

    number: int
    until: Instant = 0
    watched: Instant = 0


@dataclass(frozen=True, slots=True)
class KnownAgent:
    """What outlives a directory: an agent of a service, and the highest number seen of it."""

    service: str
    name: str
    number: int


class DirectoryParty:
    """Everything the directory agent does.

    After a restart it begins with those who were registered before, for one lease: were its memory rebuilt by
    heartbeats alone, the first auctions would be told of a part of the market only.

    Args:
        name: the agent's name.
        timing: the protocol's limits.
        known: those registered when it ended.
    """

    def __init__(self, name: str, *, timing: Timing, known: Iterable[KnownAgent] = ()) -> None:
        self.name = name
        self.deadline: Instant | None = None
        self.changes = 0
        self._timing = timing
        self._known = tuple(known)
        self._entries: dict[tuple[str, str], _Entry] = {}
        self._listed: dict[str, Listed] = {service: Listed() for service in ROLE_OF_SERVICE}
        self._ends: list[tuple[Instant, str, str]] = []

    def start(self, now: Instant) -> list[Effect]:
        """The directory waits for registrations."""
        for agent in self._known:
            if agent.service in ROLE_OF_SERVICE:
                self._list(agent.service, agent.name, agent.number, self._timing.lease, None, now)
        self._arm()
        return []

    @property
    def registered(self) -> tuple[KnownAgent, ...]:
        """Everybody listed, in order; `changes` counts up whenever their names change."""
        return tuple(
            KnownAgent(service, name, self._entries[service, name].number)
            for service, listed in self._listed.items()
            for name in listed.names
        )

    def recover(self, records: Sequence[Record], now: Instant) -> list[Effect]:
        """Nothing is kept in a journal: resources register again."""
        return self.start(now)

    def tick(self, now: Instant) -> list[Effect]:
        """Strike out whose lease has run out."""
        while self._ends and self._ends[0][0] <= now:
            looked_at, service, name = heappop(self._ends)
            entry = self._entries[service, name]
            if entry.watched != looked_at:
                continue
            entry.watched = 0
            if entry.until > now:
                self._watch(service, name, entry)
            else:
                self._strike_out(service, name, entry)
        self._arm()
        return []

    def clock_set(self, by: Duration) -> None:
        """The clock has been set: see `Party.clock_set`; every lease lasts as long as before."""
        for entry in self._entries.values():
            entry.until += by if entry.until else 0
            entry.watched += by if entry.watched else 0
        self._ends = [(end + by, service, name) for end, service, name in self._ends]  # in the same order
        self._arm()

    def handle(self, event: Event, now: Instant) -> list[Effect]:
        """Register, strike out, list.

        Raises:
            RemoteProtocolError: if a message has no place here, or is not its sender's own word.
        """
        if not isinstance(event, MessageReceived):
            return []
        message = event.message
        match message.content:
            case Registration(service, lease, number, terms):
                self._check(message, service, now)
                changes = self.changes
                highest = self._list(service, message.sender, number, lease, terms[0] if terms else None, now)
                self._arm()
                if highest == number and self.changes == changes:
                    return []  # a heartbeat; only who is new, or counts too low, has to be told
                return [reply(message, Performative.INFORM, Registered(service, highest))]
            case Deregistration(service, number):
                self._check(message, service, now)
                entry = self._entries.get((service, message.sender))
                if entry is not None and number > entry.number:
                    entry.number = number
                    self._strike_out(service, message.sender, entry)
                return []
            case DirectoryQuery(query_id, service, after, needs):
                self.tick(now)
                return [reply(message, Performative.INFORM, self._page(query_id, service, after, needs))]
            case NotUnderstood():
                return []
            case _:
                raise RemoteProtocolError(f"{type(message.content).__name__} is not a message for a directory")

    def _check(self, message: Message, service: str, now: Instant) -> None:
        role = ROLE_OF_SERVICE.get(service)
        if role is None:
            known = ", ".join(sorted(ROLE_OF_SERVICE))
            raise RemoteProtocolError(f"unknown service {service!r}, expected {known}")
        sealed_lately(message, role, now, self._timing)

    def _list(
        self, service: str, name: str, number: int, lease: Duration, terms: StaticTerms | None, now: Instant
    ) -> int:
        """Renew a lease, and take the terms, if the number is new; returns the highest number known."""
        entry = self._entries.get((service, name))
        if entry is None:
            if len(self._entries) >= REGISTRATIONS_MAX:
                return number
            entry = self._entries[service, name] = _Entry(number - 1)
        if number <= entry.number:
            return entry.number
        listed = entry.until != 0
        entry.number, entry.until = number, now + min(lease, LEASE_MAX)
        if listed:
            self._listed[service].state(name, terms)
        else:
            self._listed[service].add(name, terms)
            self.changes += 1
        if not entry.watched or entry.until < entry.watched:
            self._watch(service, name, entry)
        return number

    def _watch(self, service: str, name: str, entry: _Entry) -> None:
        """Put an end on the heap; a renewal leaves the one that is there, which is then looked at too early."""
        entry.watched = entry.until
        heappush(self._ends, (entry.until, service, name))

    def _strike_out(self, service: str, name: str, entry: _Entry) -> None:
        if entry.until:
            entry.until = 0
            self._listed[service].remove(name)
            self.changes += 1

    def _page(self, query_id: str, service: str, after: str, needs: tuple[StaticNeeds, ...]) -> DirectoryListing:
        listed = self._listed.get(service)
        if listed is None:
            return DirectoryListing(query_id, service, ())
        if needs:
            return DirectoryListing(query_id, service, *listed.page_by_need(needs, after, PAGE_NAMES_MAX, UNFIT_MAX))
        return DirectoryListing(query_id, service, *listed.page(after, PAGE_NAMES_MAX))

    def _arm(self) -> None:
        self.deadline = self._ends[0][0] if self._ends else None
