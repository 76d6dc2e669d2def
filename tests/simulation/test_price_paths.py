"""Strategy `ramp-2014` goes down the price paths that the original system was seen to go (ten rounds, asking 70)."""

import pytest

from ramp.model.instant import HOUR, MINUTE
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.model.slot import StaticTerms
from ramp.protocol import events as ev
from ramp.protocol.pricing import original_price
from ramp.protocol.resource.seller import PriceRange
from simulation.market.specs import ResourceSpec, UserSpec
from simulation.market.world import START, World
from simulation.resource.steady import SteadyMachine

CORES = 10_000
# Table 2 without Intrepid, whose log the original was run without: start and minimum price, and the load of a job in
# five minutes in the aged world (1: the queue is longer than the machine, which refuses).
MACHINES = {
    "atlas1": (33, 25, 0.0),
    "atlas2": (33, 26, 0.0),
    "thunder1": (70, 40, 0.94),
    "thunder2": (75, 60, 0.79),
    "thunder3": (70, 35, 0.96),
    "thunder4": (75, 50, 0.92),
    "ricc1": (40, 25, 1.0),
    "ricc2": (45, 25, 1.0),
    "ricc3": (45, 25, 1.0),
    "ricc4": (45, 30, 1.0),
    "curie1": (80, 40, 0.0),
    "curie2": (80, 65, 0.28),
    "curie3": (80, 30, 0.29),
    "curie4": (70, 65, 0.0),
}


def price_path(loads: dict[str, float], rounds: int) -> list[int]:
    resources = [
        ResourceSpec(
            name,
            SteadyMachine(name, CORES, loads[name]),
            StaticTerms(CORES),
            PriceRange(start, minimum),
            original_price,
        )
        for name, (start, minimum, _) in MACHINES.items()
    ]
    world = World(resources, [UserSpec("alice", 0)], seed=0)
    unit = RequestUnit(1, 70, START + HOUR + 5 * MINUTE, TotalCores(16), not_before=START + 5 * MINUTE)
    options = ev.AuctionOptions(rounds=rounds, quote_only=True)
    world.command("alice", ev.RequestSubmitted("r", RequestForQuotation((unit,)), options), START + MINUTE)
    world.run(limit=2 * MINUTE)
    outcome = world.users["alice"].purchases["r"].outcome
    assert outcome is not None
    best, path = 70, []
    for record in outcome.rounds:
        best = min([best, *(offer.cpu_hour_cost for offer in record.offers)])
        path.append(best)
    return path


def test_fresh_world() -> None:
    loads = dict.fromkeys(MACHINES, 0.0)
    assert price_path(loads, 10) == [59, 50, 39, 35, 30, 26, 25, 25, 25, 25]


def test_aged_world() -> None:
    loads = {name: load for name, (_, _, load) in MACHINES.items()}
    assert price_path(loads, 10) == [61, 59, 50, 48, 39, 37, 30, 28, 27, 25]


@pytest.mark.parametrize("rounds", [1, 3, 5])
def test_fewer_rounds_stop_on_the_same_path(rounds: int) -> None:
    assert price_path(dict.fromkeys(MACHINES, 0.0), rounds) == [59, 50, 39, 35, 30][:rounds]
