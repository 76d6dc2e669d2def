"""What small markets of these tests share: sellers of steady machines, a request, and how requests end."""

from typing import Any

from ramp.model.instant import HOUR
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.model.slot import StaticTerms
from ramp.protocol.events import AuctionOptions, RequestSubmitted
from ramp.protocol.outcome import RequestOutcome
from ramp.protocol.pricing import PricingStrategy, paper_price
from ramp.protocol.progress import Progress, RequestEnded
from ramp.protocol.resource.seller import PriceRange
from simulation.market.specs import ResourceSpec
from simulation.market.world import START
from simulation.resource.steady import SteadyMachine

THREE = ("res0", "res1", "res2")


def seller(
    name: str, cores: int, load: float, prices: tuple[int, int], strategy: PricingStrategy = paper_price, **terms: Any
) -> ResourceSpec:
    """Return a seller of a steady machine at a start price and a minimum price."""
    return ResourceSpec(
        name, SteadyMachine(name, cores, load), StaticTerms(cores, **terms), PriceRange(*prices), strategy
    )


def sellers(*names: str, cores: int = 256, load: float = 0.3, step: int = 5) -> list[ResourceSpec]:
    """Return sellers of steady machines, each dearer than the one before."""
    return [seller(name, cores, load, (60 + step * rank, 20 + step * rank)) for rank, name in enumerate(names)]


def submission(request_id: str = "r1", units: int = 1, **options: Any) -> RequestSubmitted:
    """Return a request for slots of 16 cores for an hour, two to eight hours after the start."""
    wanted = tuple(
        RequestUnit(number, 70, START + 8 * HOUR, TotalCores(16), START + 2 * HOUR, HOUR)
        for number in range(1, units + 1)
    )
    return RequestSubmitted(request_id, RequestForQuotation(wanted), AuctionOptions(**options))


class Ended(list[RequestOutcome]):
    """The outcomes of the requests of one market, in the order in which they end."""

    def listen(self, _: str, progress: Progress, __: int) -> None:
        if isinstance(progress, RequestEnded):
            self.append(progress.outcome)
