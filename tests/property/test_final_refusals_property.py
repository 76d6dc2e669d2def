"""Who is not called again because it has refused for good would have bid nothing: the auction ends the same."""

from __future__ import annotations

import random
from typing import Any
from unittest.mock import patch

from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from ramp.model.instant import HOUR, MINUTE
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.model.slot import StaticTerms
from ramp.protocol import events as ev
from ramp.protocol.outcome import RequestOutcome
from ramp.protocol.pricing import original_price, paper_price
from ramp.protocol.resource.seller import PriceRange
from ramp.protocol.user.final_refusals import FinalRefusals
from simulation.market.specs import ResourceSpec, UserSpec
from simulation.market.world import START, World
from simulation.resource.steady import SteadyMachine


def draw_machines(draw: random.Random) -> list[Any]:
    """Cores, load, start and minimum price, operating system and price strategy of up to seven machines."""
    return [
        (
            draw.choice((64, 64, 256, 8)),
            draw.randrange(11) / 10,
            draw.randrange(60, 90),
            draw.randrange(10, 60),
            draw.choice(("LINUX", "LINUX", "LINUX", "AIX")),
            draw.choice((paper_price, original_price)),
        )
        for _ in range(draw.randrange(2, 8))
    ]


def draw_units(draw: random.Random) -> list[Any]:
    """Cores, price, beginning of the window in hours from now, and operating system of one or two units."""
    return [
        (
            draw.choice((4, 16, 16, 100, 300)),
            draw.choice((70, 70, 90, 40, 5)),
            draw.choice((1, 1, 1, 1, -1, -2)),
            draw.choice((None, None, "LINUX", "AIX")),
        )
        for _ in range(draw.choice((1, 1, 2)))
    ]


def auction(machines: Any, units: Any, rounds: int, approval: ev.Approval) -> tuple[RequestOutcome, World]:
    resources = [
        ResourceSpec(
            f"res{number}",
            SteadyMachine(f"res{number}", cores, load),
            StaticTerms(cores, operating_system=system),
            PriceRange(max(start, minimum), minimum),
            strategy,
        )
        for number, (cores, load, start, minimum, system, strategy) in enumerate(machines)
    ]
    world = World(resources, [UserSpec("alice", 10**9)], seed=0)
    request = RequestForQuotation(
        tuple(
            RequestUnit(
                number,
                price,
                START + begin * HOUR + 90 * MINUTE,
                TotalCores(cores),
                not_before=START + begin * HOUR,
                wall_time=HOUR,
                operating_system=system,
            )
            for number, (cores, price, begin, system) in enumerate(units, 1)
        )
    )
    options = ev.AuctionOptions(rounds=rounds, approval=approval)
    world.approve = lambda _: True
    world.command("alice", ev.RequestSubmitted("r", request, options), START + MINUTE)
    purchases = world.users["alice"].purchases
    world.run(lambda: "r" in purchases and purchases["r"].outcome is not None, 10 * MINUTE)
    outcome = purchases["r"].outcome
    assert outcome is not None
    return outcome, world


def told(outcome: RequestOutcome) -> Any:
    last = {(each.resource, each.refusal) for each in outcome.rounds[0].refusals} if outcome.rounds else set()
    bought = [(each.unit, each.offer.resource, each.offer.cpu_hour_cost, each.offer.start) for each in outcome.units]
    return outcome.status, bought if outcome.status != "no_offers" else None, last


@settings(max_examples=examples(80))
@given(st.integers(0, 2**32))
def test_the_same_is_bought_with_fewer_messages(seed: int) -> None:
    draw = random.Random(seed)
    machines, units = draw_machines(draw), draw_units(draw)
    rounds, approval = draw.randrange(1, 9), draw.choice(list(ev.Approval))
    fewer, world = auction(machines, units, rounds, approval)
    with patch.object(FinalRefusals, "add", lambda *_: None):
        calling_all, same_world = auction(machines, units, rounds, approval)
    assert told(fewer) == told(calling_all)
    assert world.network.counts.sent <= same_world.network.counts.sent
    for record in fewer.rounds[1:]:  # who is not called still stands among those who refuse
        spoken = {each.resource for each in record.refusals} | {each.resource for each in record.offers}
        assert spoken == {f"res{number}" for number in range(len(machines))}
