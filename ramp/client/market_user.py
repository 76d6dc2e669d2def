"""What the blocking market and its asyncio twin have in common: who asks, and what that sends and understands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from ramp.client.access import SeenMarket
from ramp.client.machine_state import MachineState
from ramp.client.request import Requestable
from ramp.client.results import Purchase, Resource, purchase_of, short_name
from ramp.client.submission import submission
from ramp.control.events import RequestEnded
from ramp.control.requests import Submit
from ramp.protocol.events import AuctionOptions

A = TypeVar("A", bound=SeenMarket)


class MarketUser(Generic[A]):
    """A market as one of its users, without any waiting.

    Args:
        access: where the market is.
    """

    def __init__(self, access: A) -> None:
        self.access = access

    @property
    def user(self) -> str:
        """As whom: the local name."""
        return self.access.user

    def short(self, address: str) -> str:
        """An agent's name without the market's own domain; names of other domains stay whole."""
        return short_name(address, self.access.domain)

    def _submission(self, requests: Sequence[Requestable], options: AuctionOptions) -> Submit:
        return submission(requests, options, self.access.now(), self.access.new_id("request"))

    def _purchase_of(self, ended: RequestEnded) -> Purchase:
        return purchase_of(ended.outcome, ended.files, self.access.domain)


def with_machines(found: Sequence[Resource], states: Mapping[str, MachineState]) -> tuple[Resource, ...]:
    """Resources with how their machines are, by full name; those that did not answer have None."""
    return tuple(Resource(each.name, each.address, states.get(each.address)) for each in found)
