"""Who is not called, by a directory's or its own word: who would refuse every unit; the auction ends the same."""

import random
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from ramp.model.instant import HOUR, MINUTE
from ramp.model.machine_terms import StaticNeeds, needs_of, static_refusal
from ramp.model.request import (
    MoldableTerms,
    NodeDiskSpace,
    Nodes,
    RequestForQuotation,
    RequestUnit,
    TorusTerms,
    TotalCores,
    TotalDiskSpace,
)
from ramp.model.slot import StaticTerms
from ramp.protocol import events as ev
from ramp.protocol.directory.party import Listed
from ramp.protocol.outcome import RequestOutcome
from ramp.protocol.pricing import original_price, paper_price
from ramp.protocol.resource.directory_entry import DirectoryEntry
from ramp.protocol.user.bidding_round import FinalRefusals
from simulation.market.specs import ResourceSpec, UserSpec
from simulation.market.world import START, World
from tests.simulation.small_markets import seller

SIZES = (1, 7, 8, 63, 64, 65, 1000)
SYSTEMS = ("LINUX", "AIX", "Solaris")


def machine_of(draw: random.Random) -> StaticTerms:
    """Any machine; half of what it could state it does not."""

    def maybe(*values: Any) -> Any:
        return draw.choice((None, *values))

    return StaticTerms(
        draw.choice(SIZES),
        draw.choice((1, 2, 8, 64)),
        maybe(*SYSTEMS),
        maybe("5.10", "6.1"),
        maybe("x86_64", "ppc"),
        maybe(0, 1, 1000, 2400),
        maybe(0, 1, 10_000),
        maybe(0, 1, 512, 2048),
        maybe(0, 1, 500),
        maybe(0, 1, 40),
        draw.random() < 0.3,
        maybe(0, 1, 4),
        maybe("a100", "v100"),
        maybe(0, 1, 40_000),
    )


def unit_of(draw: random.Random, number: int = 1) -> RequestUnit:
    """Any unit; most terms are left out of most."""

    def rarely(*values: Any) -> Any:
        return draw.choice(values) if draw.random() < 0.2 else None

    moldable = draw.random() < 0.2
    size = draw.choice(SIZES)
    nodes = Nodes(draw.choice((1, 2, 9)), draw.choice((1, 2, 8)))
    return RequestUnit(
        number,
        70,
        START + 4 * HOUR,
        nodes if draw.random() < 0.3 and not moldable else TotalCores(size),
        START + HOUR,
        HOUR,
        rarely(*SYSTEMS),
        rarely("5.10"),
        rarely("x86_64"),
        rarely(0, 1, 1000, 3000),
        rarely(0, 1, 10_000),
        rarely(0, 1, 1024),
        rarely(
            TotalDiskSpace(0),
            TotalDiskSpace(1),
            TotalDiskSpace(2),
            NodeDiskSpace(1),
            NodeDiskSpace(40),
            NodeDiskSpace(41),
        ),
        TorusTerms() if draw.random() < 0.1 else None,
        gpus_per_node=rarely(0, 1, 8),
        gpu_model=rarely("a100"),
        gpu_memory_mb=rarely(0, 1, 80_000),
        moldable=MoldableTerms(draw.randrange(1, size + 1), size + 64, "amdahl:0.1") if moldable else None,
    )


@settings(max_examples=examples(200))
@given(st.integers(0, 2**32))
def test_pages_are_those_of_looking_at_everybody(seed: int) -> None:
    """The listing against each machine's own answer, while agents come, go, and state other terms or none."""
    draw = random.Random(seed)
    listed, known = Listed(), dict[str, StaticTerms | None]()
    for _ in range(draw.randrange(1, 120)):
        name, terms = f"res{draw.randrange(60):02}", draw.choice((machine_of(draw), machine_of(draw), None))
        if name in known and draw.random() < 0.4:
            listed.remove(name)
            del known[name]
            continue
        listed.put(name, terms)
        known[name] = terms
    units = [unit_of(draw, number) for number in range(draw.randrange(1, 4))]
    needs = needs_of(units)
    after, most = draw.choice(("", "res3", f"res{draw.randrange(60):02}")), draw.choice((1, 3, 100))
    fit = [
        name
        for name, terms in sorted(known.items())
        if terms is None or any(static_refusal(unit, terms) is None for unit in units)
    ]  # fmt: skip
    behind = [name for name in fit if name > after]
    names, more, others = listed.page(needs, after, most, 5)
    assert (names, more) == (tuple(behind[:most]), len(behind) > most)
    unfit = [] if after else [(name, terms) for name, terms in sorted(known.items()) if name not in fit]
    assert [(each.name, each.terms[0]) for each in others] == unfit[:5]
    everybody = sorted(name for name in known if name > after)
    assert listed.page((), after, most, 5) == (tuple(everybody[:most]), len(everybody) > most, ())


def auction(
    resources: list[ResourceSpec], request: RequestForQuotation, rounds: int, approval: ev.Approval
) -> tuple[RequestOutcome, World]:
    """One request in a simulated market whose sellers and offers may be taken anew."""
    world = World(resources, [UserSpec("alice", 10**9)], seed=0)
    world.approve = lambda _: True
    options = ev.AuctionOptions(rounds=rounds, approval=approval)
    world.command("alice", ev.RequestSubmitted("r", request, options), START + MINUTE)
    purchases = world.users["alice"].purchases
    world.run(lambda: "r" in purchases and purchases["r"].outcome is not None, 10 * MINUTE)
    outcome = purchases["r"].outcome
    assert outcome is not None
    return outcome, world


def flat_sellers(machines: Any) -> list[ResourceSpec]:
    """Sellers of steady machines: cores, load, operating system, start and minimum price, and strategy of each."""
    return [
        seller(f"res{number}", cores, load, (max(start, minimum), minimum), strategy, operating_system=system)
        for number, (cores, load, system, start, minimum, strategy) in enumerate(machines)
    ]


def told(outcome: RequestOutcome) -> Any:
    first = {(each.resource, each.refusal) for each in outcome.rounds[0].refusals}
    bought = [(each.unit, each.offer.resource, each.offer.cpu_hour_cost, each.offer.start) for each in outcome.units]
    return outcome.status, bought, first


@settings(max_examples=examples(40))
@given(st.integers(0, 2**32))
def test_the_same_is_bought_and_told_without_calling_who_could_never_serve(seed: int) -> None:
    """Also the refusals of those who are not called, with code, nearest value and sentence."""
    draw = random.Random(seed)
    machines = [
        (draw.choice((8, 64, 256)), draw.choice((None, "LINUX", "AIX")), draw.randrange(50, 90))
        for _ in range(draw.randrange(1, 7))
    ]
    units = tuple(
        replace(
            RequestUnit(number, draw.choice((70, 90, 30)), START + 3 * HOUR, TotalCores(16), START + HOUR, HOUR),
            cores=draw.choice((TotalCores(4), TotalCores(100), TotalCores(300))),
            operating_system=draw.choice((None, None, "LINUX", "AIX")),
        )
        for number in range(1, draw.randrange(2, 4))
    )
    rounds, approval = draw.randrange(1, 5), draw.choice(list(ev.Approval))
    sellers = [(cores, 0.0, system, price, 20, paper_price) for cores, system, price in machines]
    request = RequestForQuotation(units)
    fewer, world = auction(flat_sellers(sellers), request, rounds, approval)
    original = DirectoryEntry.__init__

    def silent(self: DirectoryEntry, *arguments: Any, **keywords: Any) -> None:
        original(self, *arguments, **{**keywords, "terms": None})

    with patch.object(DirectoryEntry, "__init__", silent):
        calling_all, same_world = auction(flat_sellers(sellers), request, rounds, approval)
    assert told(fewer) == told(calling_all)
    assert world.sent <= same_world.sent
    never = sum(all(static_refusal(unit, StaticTerms(cores, operating_system=system)) for unit in units)
                for cores, system, _ in machines)  # fmt: skip
    assert (world.sent < same_world.sent) == (never > 0)


def test_who_needs_very_different_things_asks_for_everybody() -> None:
    units = tuple(
        RequestUnit(number, 70, START + 3 * HOUR, TotalCores(number), START + HOUR, HOUR) for number in range(1, 34)
    )
    assert needs_of(units[:32]) == tuple(StaticNeeds(number) for number in range(1, 33))
    assert needs_of(units) == ()
    assert needs_of(units[:1] * 100) == (StaticNeeds(1),)


# -- who has refused for good is not called again --------------------------------------------------------------------


def draw_machines(draw: random.Random) -> list[Any]:
    """Cores, load, operating system, start and minimum price and price strategy of up to seven machines."""
    return [
        (
            draw.choice((64, 64, 256, 8)),
            draw.randrange(11) / 10,
            draw.choice(("LINUX", "LINUX", "LINUX", "AIX")),
            draw.randrange(60, 90),
            draw.randrange(10, 60),
            draw.choice((paper_price, original_price)),
        )
        for _ in range(draw.randrange(2, 8))
    ]


def draw_request(draw: random.Random) -> RequestForQuotation:
    """One or two units; some are too large, too cheap, or of a window that has passed."""
    return RequestForQuotation(
        tuple(
            RequestUnit(
                number,
                draw.choice((70, 70, 90, 40, 5)),
                START + begin * HOUR + 90 * MINUTE,
                TotalCores(draw.choice((4, 16, 16, 100, 300))),
                not_before=START + begin * HOUR,
                wall_time=HOUR,
                operating_system=draw.choice((None, None, "LINUX", "AIX")),
            )
            for number, begin in enumerate(draw.choices((1, 1, 1, 1, -1, -2), k=draw.choice((1, 1, 2))), 1)
        )
    )


def bought(outcome: RequestOutcome) -> Any:
    units = [(each.unit, each.offer.resource, each.offer.cpu_hour_cost, each.offer.start) for each in outcome.units]
    refusals = {(each.resource, each.refusal) for each in outcome.rounds[0].refusals} if outcome.rounds else set()
    return outcome.status, units if outcome.status != "no_offers" else None, refusals


@settings(max_examples=examples(80))
@given(st.integers(0, 2**32))
def test_the_same_is_bought_without_calling_again_who_has_refused_for_good(seed: int) -> None:
    draw = random.Random(seed)
    machines, request = draw_machines(draw), draw_request(draw)
    rounds, approval = draw.randrange(1, 9), draw.choice(list(ev.Approval))
    fewer, world = auction(flat_sellers(machines), request, rounds, approval)
    with patch.object(FinalRefusals, "add", lambda *_: None):
        calling_all, same_world = auction(flat_sellers(machines), request, rounds, approval)
    assert bought(fewer) == bought(calling_all)
    assert world.sent <= same_world.sent
    for record in fewer.rounds[1:]:  # who is not called still stands among those who refuse
        spoken = {each.resource for each in record.refusals} | {each.resource for each in record.offers}
        assert spoken == {f"res{number}" for number in range(len(machines))}
