"""What checkers, experiments and tests see of a simulated market from outside, and how checkers complain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ramp.composition import Composition
from ramp.errors import InvariantViolated
from ramp.ledger.interface import Ledger
from ramp.model.acl import Message
from ramp.model.agreement import Agreement
from ramp.model.contents import TradeLine, TransferKind
from ramp.model.instant import DAY, Instant
from ramp.model.ports import Notary
from ramp.model.seal import Role
from ramp.plugins.interface import ResourcePlugin
from ramp.protocol import records as rc
from ramp.protocol.events import Answer
from ramp.protocol.party import Party
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
    deposits: Mapping[str, int]
    """What was deposited on each account, minor units."""
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
        """Virtual time."""
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
        """The protocol's limits."""
        return self.composition.timing

    @property
    def machines(self) -> Mapping[str, ResourcePlugin]:
        """Every resource's machine, up or not."""
        return self._machines

    @property
    def ledger(self) -> Ledger:
        """The bank's ledger."""
        return self._ledger

    @property
    def bank_is_up(self) -> bool:
        """Whether the bank is up."""
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

    def archived(self, name: str) -> Sequence[rc.Record]:
        """Return what a party has moved from its journal to its archive, for it has been over for long enough."""
        journal = self._actors[name].journal
        return () if journal is None else journal.archived

    def time_of(self, name: str) -> Instant:
        """Return what a party's clock shows now."""
        return self._actors[name].clock.time(self.now)

    @property
    def honest_users(self) -> Mapping[str, UserParty]:
        """User parties that are up and keep to the protocol, by name."""
        return self._parties(UserParty, honest=True)

    @property
    def honest_resources(self) -> Mapping[str, ResourceParty]:
        """Resource parties that are up and keep to the protocol, by name."""
        return self._parties(ResourceParty, honest=True)

    @property
    def liars(self) -> Collection[str]:
        """Users and resources that say whatever they can form under their own keys; nothing is promised to them."""
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


class Checker:
    """Base of the checkers: each watches one invariant."""

    name = ""

    def on_sent(self, message: Message, view: MarketView) -> None:
        """A party has given a message to the network."""

    def on_written(self, name: str, record: rc.Record, view: MarketView) -> None:
        """A party's journal has a new record."""

    def on_delivered(self, message: Message, view: MarketView) -> None:
        """A message has reached a party that is up."""

    def on_answered(self, name: str, answer: Answer, view: MarketView) -> None:
        """A resource is about to receive a late answer of its machine or price strategy."""

    def on_step(self, view: MarketView) -> None:
        """An event has been dealt with."""

    def at_end(self, view: MarketView) -> None:
        """The market has come to rest, or its time is over and it should have; by default as at any time."""
        self.at_stop(view)

    def at_stop(self, view: MarketView) -> None:
        """The run ends and may be unfinished, for clocks are too far apart: what must hold at any time."""

    def _violated(self, reason: str) -> InvariantViolated:
        return InvariantViolated(self.name, reason)


def posted_transfers(view: MarketView) -> Iterator[TradeLine]:
    """Everything that the bank has ever posted, oldest first."""
    after: int | None = 0
    while after is not None:
        page = view.ledger.overview(None, None, after=after)
        yield from page.trades
        after = page.next_after


def addition_of(view: MarketView, transfer: TradeLine) -> str:
    """The agreement to whose slot a payment has added something; empty of any other transfer."""
    order = view.ledger.order(transfer.order_id) if transfer.kind == TransferKind.PAYMENT else None
    line = order.line(transfer.agreement_id) if order is not None else None
    named = line.amended if line is not None else None
    return "" if named is None else named[0]


def standing_payments(view: MarketView) -> dict[str, TradeLine]:
    """Payments of agreements that have not been refunded, by agreement."""
    paid: dict[str, TradeLine] = {}
    for transfer in posted_transfers(view):
        if addition_of(view, transfer):
            continue
        if transfer.kind == TransferKind.PAYMENT:
            paid[transfer.agreement_id] = transfer
        elif transfer.is_end:
            paid.pop(transfer.agreement_id, None)
    return paid


def sold_long_ago(view: MarketView, resource: str) -> dict[str, Agreement]:
    """The agreements whose slots were used, and that their resource remembers no more, by id."""
    agreed: dict[str, Agreement] = {}
    paid: set[str] = set()
    for record in view.archived(resource):
        if isinstance(record, rc.AgreementReceived) and isinstance(record.agreement.body, Agreement):
            agreed[record.offer_id] = record.agreement.body
        elif isinstance(record, rc.AgreementPaid):
            paid.add(record.offer_id)
        elif isinstance(record, rc.SlotReleased):
            paid.discard(record.offer_id)
    return {agreement.agreement_id: agreement for offer_id, agreement in agreed.items() if offer_id in paid}


def agreed_long_ago(view: MarketView, user: str) -> dict[str, Agreement]:
    """The agreements for which a user asked the bank for money, and that it remembers no more, by id."""
    asked = [record for record in view.archived(user) if isinstance(record, rc.FundsAsked)]
    return {agreement.agreement_id: agreement for record in asked for agreement in record.agreements}


def given_back_long_ago(view: MarketView, name: str) -> Counter[str]:
    """What amendments have given back of agreements that a trader remembers no more, in minor units by agreement.

    What was paid for what they added is taken off.
    """
    back: Counter[str] = Counter()
    for record in view.archived(name):
        if isinstance(record, rc.ChangeSettled):
            back[record.posted.agreement_id] -= record.posted.amount
        elif isinstance(record, rc.ChangeConcluded) and not record.outcome.ends:
            back[record.outcome.agreement_id] += record.outcome.refund - record.outcome.charge
    return back
