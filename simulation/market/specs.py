"""Who takes part in a simulated market."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ramp.composition import Composition, OpeningAccount
from ramp.ledger.entry import AccountKind
from ramp.model.instant import Instant
from ramp.model.slot import StaticTerms
from ramp.plugins.interface import ResourcePlugin
from ramp.protocol.effects import AskLauncher
from ramp.protocol.pricing import PricingStrategy, paper_price
from ramp.protocol.resource.jobs.launching import LaunchTerms
from ramp.protocol.resource.seller import PriceRange
from ramp.protocol.rules.auction_rule import PAPER_RULE
from ramp.runtime.configuration.values import ResourceConfig, SwarmConfig, open_plugin, pricing_strategy
from ramp.runtime.host import Guest
from simulation.market.actors import COMPOSITION


@dataclass(frozen=True, slots=True)
class ResourceSpec:
    """One resource of a simulated market; with a launcher and its terms where jobs can be launched on its slots."""

    name: str
    machine: ResourcePlugin
    terms: StaticTerms
    prices: PriceRange
    strategy: PricingStrategy = paper_price
    launching: LaunchTerms | None = None
    launcher: Guest[AskLauncher] | None = None

    @property
    def account(self) -> OpeningAccount:
        """What it begins with."""
        return OpeningAccount(self.name, AccountKind.RESOURCE)


@dataclass(frozen=True, slots=True)
class UserSpec:
    """One user of a simulated market, its money in minor units, and the auction rule of requests that name none."""

    name: str
    deposit: int
    rule: str = PAPER_RULE
    credit_limit: int = 0

    @property
    def account(self) -> OpeningAccount:
        return OpeningAccount(self.name, AccountKind.USER, self.credit_limit, self.deposit)


def composition_of(config: SwarmConfig) -> Composition:
    """Return the parties and limits of a configuration's simulated market."""
    return replace(COMPOSITION, timing=config.timing, quotas=config.quotas, signed_offers=config.signed_offers)


def configured(
    resources: Iterable[ResourceConfig],
    since: Instant,
    seed: int = 0,
    pricing: Mapping[str, PricingStrategy] | None = None,
) -> list[ResourceSpec]:
    """Return the resources of a configuration, their machines opened in memory.

    Args:
        resources: as configured.
        since: when their machines began to run.
        seed: of what machines draw.
        pricing: price strategies by resource, in place of those configured.

    Raises:
        ConfigurationError: if a plug-in or a price strategy cannot be opened.
    """
    given = pricing or {}
    return [
        ResourceSpec(
            each.name,
            open_plugin(each, since, None, seed),
            each.terms,
            each.prices,
            given[each.name] if each.name in given else pricing_strategy(each.pricing),
        )
        for each in resources
    ]
