"""RAMP: a Resource Allocation Market Place where software agents trade supercomputer time.

    import ramp

    with ramp.connect() as market:
        bought = market.submit(ramp.request(cores=64, wall_time="1h", price=70))
        print(bought.units[0].start)

What is listed in `__all__` is the public interface and stays as it is. A name is loaded when it is first used, so that
importing the package costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ramp.client.asyncio_market import AsyncMarket as AsyncMarket
    from ramp.client.connecting import MarketOperator as MarketOperator
    from ramp.client.connecting import connect as connect
    from ramp.client.connecting import connect_async as connect_async
    from ramp.client.connecting import launch as launch
    from ramp.client.connecting import launch_async as launch_async
    from ramp.client.connecting import operate as operate
    from ramp.client.jobs import Job as Job
    from ramp.client.jobs import JobFile as JobFile
    from ramp.client.machine_state import MachineState as MachineState
    from ramp.client.market import Market as Market
    from ramp.client.request import RequestTemplate as RequestTemplate
    from ramp.client.request import request as request
    from ramp.client.results import Account as Account
    from ramp.client.results import Cancelled as Cancelled
    from ramp.client.results import Posting as Posting
    from ramp.client.results import Purchase as Purchase
    from ramp.client.results import Reservation as Reservation
    from ramp.client.results import Resource as Resource
    from ramp.client.results import Unit as Unit
    from ramp.control.events import MarketChanged as MarketChanged
    from ramp.control.events import MarketRefusalCode as MarketRefusalCode
    from ramp.control.events import Submitted as Submitted
    from ramp.errors import ConfigurationError as ConfigurationError
    from ramp.errors import DocumentError as DocumentError
    from ramp.errors import MarketRefused as MarketRefused
    from ramp.errors import NoMarket as NoMarket
    from ramp.errors import RampError as RampError
    from ramp.errors import TransportError as TransportError
    from ramp.model.instant import to_datetime as to_datetime
    from ramp.model.money import credits_text as credits_text
    from ramp.model.offer import Offer as Offer
    from ramp.protocol.outcome import RequestStatus as RequestStatus
    from ramp.protocol.progress import ApprovalAsked as ApprovalAsked
    from ramp.protocol.progress import RequestEnded as RequestEnded
    from ramp.protocol.progress import RoundClosed as RoundClosed
    from ramp.protocol.progress import RoundOpened as RoundOpened
    from ramp.protocol.progress import UnitAdvanced as UnitAdvanced
    from ramp.protocol.progress import UnitMoved as UnitMoved
    from ramp.protocol.rules.auction_rule import AuctionRule as AuctionRule
    from ramp.protocol.rules.auction_rule import Bidding as Bidding
    from ramp.protocol.rules.auction_rule import Price as Price
    from ramp.protocol.rules.auction_rule import UnitBids as UnitBids

_PLACES = {
    "ramp.client.asyncio_market": ("AsyncMarket",),
    "ramp.client.connecting": ("MarketOperator", "connect", "connect_async", "launch", "launch_async", "operate"),
    "ramp.client.jobs": ("Job", "JobFile"),
    "ramp.client.machine_state": ("MachineState",),
    "ramp.client.market": ("Market",),
    "ramp.client.request": ("RequestTemplate", "request"),
    "ramp.client.results": (
        "Account",
        "Cancelled",
        "Posting",
        "Purchase",
        "Reservation",
        "Resource",
        "Unit",
    ),
    "ramp.control.events": ("MarketChanged", "MarketRefusalCode", "Submitted"),
    "ramp.errors": (
        "ConfigurationError",
        "DocumentError",
        "MarketRefused",
        "NoMarket",
        "RampError",
        "TransportError",
    ),
    "ramp.model.instant": ("to_datetime",),
    "ramp.model.money": ("credits_text",),
    "ramp.model.offer": ("Offer",),
    "ramp.protocol.rules.auction_rule": ("AuctionRule", "Bidding", "Price", "UnitBids"),
    "ramp.protocol.outcome": ("RequestStatus",),
    "ramp.protocol.progress": (
        "ApprovalAsked",
        "RequestEnded",
        "RoundClosed",
        "RoundOpened",
        "UnitAdvanced",
        "UnitMoved",
    ),
}
_PLACE_OF = {name: place for place, names in _PLACES.items() for name in names}

__all__ = list(_PLACE_OF)


def __getattr__(name: str) -> object:
    """Load a public name (PEP 562)."""
    place = _PLACE_OF.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(place), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names beside the module's own."""
    return sorted({*globals(), *__all__})
