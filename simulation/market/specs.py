"""Who takes part in a simulated market."""

from __future__ import annotations

from dataclasses import dataclass

from ramp.model.slot import StaticTerms
from ramp.plugins.interface import ResourcePlugin
from ramp.protocol.pricing import PricingStrategy, paper_price
from ramp.protocol.resource.seller import PriceRange


@dataclass(frozen=True, slots=True)
class ResourceSpec:
    """One resource of a simulated market."""

    name: str
    machine: ResourcePlugin
    terms: StaticTerms
    prices: PriceRange
    strategy: PricingStrategy = paper_price
    credit_limit: int = 10**9


@dataclass(frozen=True, slots=True)
class UserSpec:
    """One user of a simulated market, with its money in minor units."""

    name: str
    deposit: int
