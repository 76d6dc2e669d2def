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
    from ramp.client.asyncio_market import AsyncMarket
    from ramp.client.connecting import MarketOperator, connect, connect_async, operate
    from ramp.client.jobs.files import JobFile
    from ramp.client.jobs.job import Job
    from ramp.client.launching import launch, launch_async
    from ramp.client.machine_state import MachineState
    from ramp.client.market import Market
    from ramp.client.request import RequestTemplate, request
    from ramp.client.results import (
        Account,
        Cancelled,
        Posting,
        Purchase,
        Reservation,
        Resource,
        Unit,
    )
    from ramp.control.events import MarketRefusalCode, Submitted
    from ramp.control.market_changes import MarketChanged
    from ramp.errors import ConfigurationError, DocumentError, MarketRefused, NoMarket, RampError, TransportError
    from ramp.model.instant import to_datetime
    from ramp.model.money import credits_text
    from ramp.model.offer import Offer
    from ramp.protocol.outcome import RequestStatus
    from ramp.protocol.progress import (
        ApprovalAsked,
        RequestEnded,
        RoundClosed,
        RoundOpened,
        UnitAdvanced,
        UnitMoved,
    )
    from ramp.protocol.rules.auction_rule import AuctionRule, Bidding, Price, UnitBids

__all__ = [
    "Account",
    "ApprovalAsked",
    "AsyncMarket",
    "AuctionRule",
    "Bidding",
    "Cancelled",
    "ConfigurationError",
    "DocumentError",
    "Job",
    "JobFile",
    "MachineState",
    "Market",
    "MarketChanged",
    "MarketOperator",
    "MarketRefusalCode",
    "MarketRefused",
    "NoMarket",
    "Offer",
    "Posting",
    "Price",
    "Purchase",
    "RampError",
    "RequestEnded",
    "RequestStatus",
    "RequestTemplate",
    "Reservation",
    "Resource",
    "RoundClosed",
    "RoundOpened",
    "Submitted",
    "TransportError",
    "Unit",
    "UnitAdvanced",
    "UnitBids",
    "UnitMoved",
    "connect",
    "connect_async",
    "credits_text",
    "launch",
    "launch_async",
    "operate",
    "request",
    "to_datetime",
]

_PLACES = {
    "ramp.client.asyncio_market": ("AsyncMarket",),
    "ramp.client.connecting": ("MarketOperator", "connect", "connect_async", "operate"),
    "ramp.client.jobs.files": ("JobFile",),
    "ramp.client.jobs.job": ("Job",),
    "ramp.client.launching": ("launch", "launch_async"),
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
    "ramp.control.events": ("MarketRefusalCode", "Submitted"),
    "ramp.control.market_changes": ("MarketChanged",),
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
