"""What a checker sees of a simulated market, and how it complains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ramp.errors import InvariantViolated
from ramp.ledger.interface import Ledger
from ramp.model.acl import Message
from ramp.model.instant import Instant
from ramp.plugins.interface import ResourcePlugin
from ramp.protocol.resource_party import ResourceParty
from ramp.protocol.user_party import UserParty


class MarketView(Protocol):
    """The whole market as only a simulator can see it."""

    @property
    def now(self) -> Instant:
        """Virtual time."""
        ...

    @property
    def users(self) -> Mapping[str, UserParty]:
        """User parties that are up, by name."""
        ...

    @property
    def resources(self) -> Mapping[str, ResourceParty]:
        """Resource parties that are up, by name."""
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

    def on_delivered(self, message: Message, view: MarketView) -> None:
        """A message has reached a party that is up."""

    def on_step(self, view: MarketView) -> None:
        """An event has been dealt with."""

    def at_end(self, view: MarketView) -> None:
        """The market has come to rest, or its time is over."""

    def _violated(self, reason: str) -> InvariantViolated:
        return InvariantViolated(self.name, reason)
