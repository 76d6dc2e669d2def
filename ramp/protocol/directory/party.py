"""The directory of current sellers. Registrations are leases renewed by heartbeats, so a dead resource disappears.

Registrations and withdrawals are sealed by their resource and numbered. Only a higher number than the last one counts,
so a captured message cannot remove or keep an agent.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable
from dataclasses import dataclass
from heapq import merge
from itertools import islice

from ramp.errors import RemoteProtocolError
from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.contents import UnfitAgent
from ramp.model.contents.directory import ROLE_OF_SERVICE
from ramp.model.instant import MINUTE, Duration, Instant
from ramp.model.machine_terms import TERMS, StaticNeeds
from ramp.model.slot import StaticTerms
from ramp.protocol.belief import sealed_lately
from ramp.protocol.conversations import Conversations
from ramp.protocol.effects import Effect, reply
from ramp.protocol.events import Event
from ramp.protocol.party import Party
from ramp.protocol.timing import Timing, moved

LEASE_MAX: Duration = 10 * MINUTE
"""Maximum lease; longer ones are shortened, so that every listing expires."""

REGISTRATIONS_MAX = 100_000
"""Maximum number of listed agents; all are certified, so this only bounds memory."""

PAGE_NAMES_MAX = 500
"""Names on one page; 2 500 would come near the size limit of a message."""

UNFIT_MAX = 100
"""Maximum agents on the first page that can serve none of the needs, with their terms."""


@dataclass(slots=True)
class _Entry:
    """The registration of one agent, which acts when its lease ends.

    Attributes:
        number: highest so far.
        until: end of the lease, or None if not listed.
        deadline: when to look at the lease next; a heartbeat leaves it, so that it costs no new alarm.
    """

    service: str
    name: str
    number: int
    until: Instant | None = None
    deadline: Instant | None = None

    def on_timer(self, now: Instant) -> list[Effect]:
        return []

    def clock_set(self, by: Duration) -> None:
        self.until, self.deadline = moved(self.until, by), moved(self.deadline, by)


@dataclass(frozen=True, slots=True)
class KnownAgent:
    """An agent of a service with its highest number, kept over a restart of the directory."""

    service: str
    name: str
    number: int


class Listed:
    """The agents listed under one service.

    Machines are often alike, so agents are also kept by their terms: a query looks at each kind of machine once.
    """

    def __init__(self) -> None:
        self._terms: dict[str, StaticTerms | None] = {}
        self._kinds: dict[StaticTerms | None, list[str]] = {}

    @property
    def names(self) -> list[str]:
        """Their names in alphabetical order."""
        return sorted(self._terms)

    def put(self, name: str, terms: StaticTerms | None) -> None:
        """List an agent or replace its terms; a machine without terms may have any."""
        if name in self._terms:
            if self._terms[name] == terms:
                return
            self.remove(name)
        self._terms[name] = terms
        insort(self._kinds.setdefault(terms, []), name)

    def remove(self, name: str) -> None:
        terms = self._terms.pop(name)
        self._kinds[terms].remove(name)
        if not self._kinds[terms]:
            del self._kinds[terms]

    def page(
        self, needs: tuple[StaticNeeds, ...], after: str, most: int, most_unfit: int
    ) -> tuple[tuple[str, ...], bool, tuple[UnfitAgent, ...]]:
        """Return a page of the agents that can serve some of the needs, or state no terms.

        Args:
            needs: empty for all agents.
            after: name before the page; empty for the first page.
            most: maximum number of names.
            most_unfit: maximum number of other agents, on the first page only.

        Returns:
            The names, whether more follow, and other agents with their terms.
        """
        fit: list[list[str]] = []
        unfit: list[list[str]] = []
        for terms, names in self._kinds.items():
            serves = terms is None or not needs or any(_meets(terms, need) for need in needs)
            (fit if serves else unfit).append(names)
        found = _first(fit, after, most + 1)
        others = () if after else _first(unfit, "", most_unfit)
        told = tuple(UnfitAgent(name, (terms,)) for name in others if (terms := self._terms[name]) is not None)
        return found[:most], len(found) > most, told


def _first(kinds: list[list[str]], after: str, most: int) -> tuple[str, ...]:
    """Return the first names after a name, in alphabetical order."""
    behind = (islice(names, bisect_right(names, after), None) for names in kinds)
    return tuple(islice(merge(*behind), most))


def _meets(machine: StaticTerms, need: StaticNeeds) -> bool:
    """Return whether a machine's terms meet a need; what it does not state meets none."""
    for term in TERMS:
        wanted, has = getattr(need, term.name), getattr(machine, term.name)
        if wanted is not None and (has is None or (has < wanted if term.measure else has != wanted)):
            return False
    large = machine.cores >= need.cores and machine.cores >= need.nodes * machine.cores_per_node
    return large and machine.cores_per_node >= need.cores_per_node and (machine.torus or not need.torus)


class DirectoryParty(Party):
    """Everything the directory agent does.

    After a restart it lists the agents registered before, for one lease. If it waited for heartbeats, the first
    auctions would miss a part of the market.
    """

    def __init__(self, name: str, *, timing: Timing, known: Iterable[KnownAgent] = ()) -> None:
        super().__init__(name)
        self.changes = 0
        self._timing = timing
        self._known = tuple(known)
        self._entries: Conversations[_Entry] = Conversations(self, followed=self._looked_at)
        self._listed: dict[str, Listed] = {service: Listed() for service in ROLE_OF_SERVICE}

    def start(self, now: Instant) -> list[Effect]:
        for agent in self._known:
            if agent.service in ROLE_OF_SERVICE:
                self._list(agent.service, agent.name, agent.number, self._timing.lease, None, now)
        return []

    @property
    def registered(self) -> tuple[KnownAgent, ...]:
        """All listed agents, in order; `changes` counts changes of their names."""
        return tuple(
            KnownAgent(service, name, self._entries[_key(service, name)].number)
            for service, listed in self._listed.items()
            for name in listed.names
        )

    def handle(self, event: Event, now: Instant) -> list[Effect]:
        """Register, remove or list agents.

        Raises:
            RemoteProtocolError: if a message is not for a directory, or not sealed by its sender.
        """
        if not isinstance(event, Message):
            return []
        match event.content:
            case c.Registration(service, lease, number, terms):
                self._check(event, service, now)
                changes = self.changes
                highest = self._list(service, event.sender, number, lease, terms[0] if terms else None, now)
                if highest == number and self.changes == changes:
                    return []  # a heartbeat; answer only new agents and too low numbers
                return [reply(event, Performative.INFORM, c.Registered(service, highest))]
            case c.Deregistration(service, number):
                self._check(event, service, now)
                entry = self._entries.get(_key(service, event.sender))
                if entry is not None and number > entry.number:
                    entry.number = number
                    self._strike_out(entry)
                return []
            case c.DirectoryQuery(query_id, service, after, needs):
                self.tick(now)
                return [reply(event, Performative.INFORM, self._page(query_id, service, after, needs))]
            case c.NotUnderstood():
                return []
            case _:
                raise RemoteProtocolError(f"{type(event.content).__name__} is not a message for a directory")

    def _check(self, message: Message, service: str, now: Instant) -> None:
        role = ROLE_OF_SERVICE.get(service)
        if role is None:
            known = ", ".join(sorted(ROLE_OF_SERVICE))
            raise RemoteProtocolError(f"unknown service {service!r}, expected {known}")
        sealed_lately(message, role, now, self._timing)

    def _list(
        self, service: str, name: str, number: int, lease: Duration, terms: StaticTerms | None, now: Instant
    ) -> int:
        """Renew a lease and its terms if the number is new; return the highest number known."""
        key = _key(service, name)
        entry = self._entries.get(key)
        if entry is None:
            if len(self._entries) >= REGISTRATIONS_MAX:
                return number
            entry = self._entries.add(key, _Entry(service, name, number - 1))
        if number <= entry.number:
            return entry.number
        listed = entry.until is not None
        entry.number, entry.until = number, now + min(lease, LEASE_MAX)
        self._listed[service].put(name, terms)
        self.changes += not listed
        if entry.deadline is None or entry.until < entry.deadline:
            entry.deadline = entry.until
            self._entries.arm(key)
        return number

    def _looked_at(self, entry: _Entry, effects: list[Effect], now: Instant) -> list[Effect]:
        if entry.until is not None and entry.until <= now:
            self._strike_out(entry)
        entry.deadline = entry.until
        return effects

    def _strike_out(self, entry: _Entry) -> None:
        if entry.until is not None:
            entry.until = None
            self._listed[entry.service].remove(entry.name)
            self.changes += 1

    def _page(self, query_id: str, service: str, after: str, needs: tuple[StaticNeeds, ...]) -> c.DirectoryListing:
        listed = self._listed.get(service)
        page = ((),) if listed is None else listed.page(needs, after, PAGE_NAMES_MAX, UNFIT_MAX)
        return c.DirectoryListing(query_id, service, *page)


def _key(service: str, name: str) -> str:
    return f"{service} {name}"
