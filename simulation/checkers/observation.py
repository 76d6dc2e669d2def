"""What a checker sees of a simulated market, and how it complains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Protocol

from ramp.errors import InvariantViolated
from ramp.ledger.interface import Ledger
from ramp.model.acl import Message
from ramp.model.agreement import Agreement
from ramp.model.contents import TradeLine, TransferKind
from ramp.model.instant import Instant
from ramp.plugins.interface import ResourcePlugin
from ramp.protocol import records as rc
from ramp.protocol.events import Answer
from ramp.protocol.resource.party import ResourceParty
from ramp.protocol.timing import Timing
from ramp.protocol.user.party import UserParty

BANK = "bank"
"""Name of the Banking Agent in every simulated market."""


class MarketView(Protocol):
    """The whole market as only a simulator can see it."""

    @property
    def now(self) -> Instant:
        """Virtual time."""
        ...

    @property
    def timing(self) -> Timing:
        """The protocol's limits."""
        ...

    def time_of(self, name: str) -> Instant:
        """What a party's own clock shows."""
        ...

    def archived(self, name: str) -> Sequence[rc.Record]:
        """What a party has moved from its journal to its archive, for it has been over for long enough."""
        ...

    def opened(self, text: str) -> Message:
        """What a sealed message says that the bank keeps as evidence."""
        ...

    def is_asking(self, name: str, key: str = "") -> bool:
        """Whether a question of a resource about a slot (empty: about anything) is under way to its machine or back."""
        ...

    @property
    def honest_users(self) -> Mapping[str, UserParty]:
        """User parties that are up and keep to the protocol, by name."""
        ...

    @property
    def honest_resources(self) -> Mapping[str, ResourceParty]:
        """Resource parties that are up and keep to the protocol, by name."""
        ...

    @property
    def liars(self) -> Collection[str]:
        """Users and resources that say whatever they can form under their own keys; nothing is promised to them."""
        ...

    @property
    def machines(self) -> Mapping[str, ResourcePlugin]:
        """Every resource's machine, up or not."""
        ...

    @property
    def ledger(self) -> Ledger:
        """The bank's ledger."""
        ...

    @property
    def bank_is_up(self) -> bool:
        """Whether the bank is up."""
        ...

    @property
    def deposits(self) -> Mapping[str, int]:
        """What was deposited on each account, minor units."""
        ...


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
        elif isinstance(record, rc.ChangeConcluded):
            back[record.outcome.agreement_id] += record.outcome.refund - record.outcome.charge
    return back
