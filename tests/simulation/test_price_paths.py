"""Strategy `ramp-2014` goes down the price paths that the original system was seen to go (ten rounds, asking 70)."""

import pytest

from ramp.model.instant import HOUR, MINUTE
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.protocol import events as ev
from ramp.protocol.pricing import original_price
from simulation.market.specs import UserSpec
from simulation.market.world import START, World
from tests.simulation.small_markets import seller

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
        seller(name, CORES, loads[name], (start, minimum), original_price)
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


@pytest.mark.parametrize("rounds", [1, 3, 5, 10])
def test_fresh_world(rounds: int) -> None:
    """Fewer rounds stop on the same path."""
    assert price_path(dict.fromkeys(MACHINES, 0.0), rounds) == [59, 50, 39, 35, 30, 26, 25, 25, 25, 25][:rounds]


def test_aged_world() -> None:
    loads = {name: load for name, (_, _, load) in MACHINES.items()}
    assert price_path(loads, 10) == [61, 59, 50, 48, 39, 37, 30, 28, 27, 25]
