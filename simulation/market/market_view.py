"""What may be seen of a simulated market from outside: by checkers, experiments and tests."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ramp.composition import Composition
from ramp.ledger.interface import Ledger
from ramp.model.acl import Message
from ramp.model.instant import DAY, Instant
from ramp.model.ports import Notary
from ramp.model.seal import Role
from ramp.plugins.interface import ResourcePlugin
from ramp.protocol.party import Party
from ramp.protocol.records import Record
from ramp.protocol.resource.party import ResourceParty
from ramp.protocol.timing import Timing
from ramp.protocol.user.party import UserParty
from simulation.kernel import EventQueue
from simulation.market.actors import BANK, Actor
from simulation.market.faults.late_guests import GuestCounts, LateGuests
from simulation.market.network import Network
from simulation.market.observing import Interceptor
from simulation.market.virtual_notary import VirtualNotary

if TYPE_CHECKING:
    from simulation.market.wire import Wire  # which loads cryptography

P = TypeVar("P", bound=Party)


class MarketView:
    """The parties, their machines, the ledger and the network of a market; `World` fills it."""

    _queue: EventQueue[Any]
    composition: Composition
    _machines: Mapping[str, ResourcePlugin]
    _ledger: Ledger
    _network: Network
    _wire: Wire | None
    _actors: dict[str, Actor]
    _liars: Mapping[str, Interceptor]
    _guests: LateGuests
    _up: dict[tuple[type, bool], Mapping[str, Party]]

    @property
    def now(self) -> Instant:
        return self._queue.now

    @property
    def users(self) -> Mapping[str, UserParty]:
        """User parties that are up, by name."""
        return self._parties(UserParty)

    @property
    def resources(self) -> Mapping[str, ResourceParty]:
        """Resource parties that are up, by name."""
        return self._parties(ResourceParty)

    @property
    def timing(self) -> Timing:
        return self.composition.timing

    @property
    def machines(self) -> Mapping[str, ResourcePlugin]:
        """Every resource's machine."""
        return self._machines

    @property
    def ledger(self) -> Ledger:
        return self._ledger

    @property
    def bank_is_up(self) -> bool:
        return self._actors[BANK].host is not None

    @property
    def everyone_is_up(self) -> bool:
        """Whether no party is down."""
        return all(actor.host is not None for actor in self._actors.values())

    @property
    def network(self) -> Network:
        """The network, for its counts."""
        return self._network

    @property
    def guest_counts(self) -> GuestCounts:
        """What machines and price strategies did that answer late."""
        return self._guests.counts

    def opened(self, text: str) -> Message:
        """Return a sealed message kept by the bank, as its notary reads it; clocks may be a day apart."""
        return self._notary(BANK, Role.BANK).open(text, self.now + DAY)

    def _notary(self, name: str, role: Role) -> Notary:
        return VirtualNotary(name, role) if self._wire is None else self._wire.notary(name)

    def is_asking(self, name: str, key: str = "") -> bool:
        """Return whether a question of a resource to its machine is under way; see `LateGuests.is_asking`."""
        return self._guests.is_asking(name, key)

    def archived(self, name: str) -> Sequence[Record]:
        """Return what a party has moved from its journal to its archive."""
        journal = self._actors[name].journal
        return () if journal is None else journal.archived

    def time_of(self, name: str) -> Instant:
        """Return what a party's clock shows now."""
        return self._actors[name].clock.time(self.now)

    @property
    def honest_users(self) -> Mapping[str, UserParty]:
        """User parties that are up and keep to the protocol."""
        return self._parties(UserParty, honest=True)

    @property
    def honest_resources(self) -> Mapping[str, ResourceParty]:
        """Resource parties that are up and keep to the protocol."""
        return self._parties(ResourceParty, honest=True)

    @property
    def liars(self) -> Collection[str]:
        """Who says whatever it can form under its own key."""
        return self._liars.keys()

    def _parties(self, kind: type[P], *, honest: bool = False) -> Mapping[str, P]:
        """Return the parties of a kind that are up; kept until a party crashes or starts, for speed."""
        known = self._up.get((kind, honest))
        if known is None:
            known = self._up[kind, honest] = {
                name: actor.host.party
                for name, actor in self._actors.items()
                if actor.host is not None and isinstance(actor.host.party, kind)
                if not (honest and name in self._liars)
            }
        return cast("Mapping[str, P]", known)
