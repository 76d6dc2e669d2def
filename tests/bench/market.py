"""The market in the simulator: auctions a second, one round, ten rounds, against the least that could be done."""

from collections.abc import Callable
from time import perf_counter
from unittest.mock import patch

from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.model.slot import StaticTerms
from ramp.protocol import events as ev
from ramp.protocol.pricing import PriceQuestion, PriceRefusal, original_price
from ramp.protocol.resource.seller import PriceRange
from ramp.protocol.user.bidding_round import FinalRefusals
from simulation.market.specs import ResourceSpec, UserSpec
from simulation.market.world import START, World
from simulation.resource.steady import SteadyMachine

RESOURCES = 20
CORES = 10_000
AUCTIONS = 20
REPEATS = 3


def run() -> list[tuple[str, float, str]]:
    """Measure.

    The reference is the bidding alone, as a plain loop over prices and loads: no messages, no machines, no journal, no
    commitment, no bank. The ratio says what all of those cost.
    """
    ten = _best(lambda: _auctions(10, quote_only=False))
    sent = _auctions(10, quote_only=False)
    with patch.object(FinalRefusals, "add", lambda *_: None):
        sent_to_all = _auctions(10, quote_only=False)
    one = _best(lambda: _auctions(1, quote_only=True))
    naive = _best(_plain_loops)
    return [
        (f"market: simulated auctions, {RESOURCES} resources, 10 rounds, bought and paid", AUCTIONS / ten, "1/s"),
        (f"market: one round with {RESOURCES} resources in the simulator", one / AUCTIONS * 1000, "ms"),
        ("market: auction of 10 rounds, bought and paid, in the simulator", ten / AUCTIONS * 1000, "ms"),
        ("market: the bidding alone as a plain loop", naive / AUCTIONS * 1000, "ms"),
        ("market: whole market against the plain loop", ten / naive, "x"),
        (f"market: messages of {AUCTIONS} auctions of 10 rounds, all called in every round", sent_to_all, ""),
        ("market: messages where who refuses for good is not called again, against that", sent / sent_to_all, "x"),
    ]


def _best(work: Callable[[], object]) -> float:
    seconds = []
    for _ in range(REPEATS):
        started = perf_counter()
        work()
        seconds.append(perf_counter() - started)
    return min(seconds)


def _machine(number: int) -> tuple[float, PriceRange]:
    minimum = 20 + number
    return number / (2 * RESOURCES), PriceRange(minimum + 2 * number, minimum)


def _auctions(rounds: int, *, quote_only: bool) -> int:
    """Run all auctions; how many messages they took."""
    resources = []
    for number in range(RESOURCES):
        load, prices = _machine(number)
        name = f"res{number:02}"
        resources.append(
            ResourceSpec(name, SteadyMachine(name, CORES, load), StaticTerms(CORES), prices, original_price)
        )
    world = World(resources, [UserSpec("alice", 10**12)], seed=0)
    unit = RequestUnit(1, 70, START + 3 * HOUR, TotalCores(16), not_before=START + 2 * HOUR)
    options = ev.AuctionOptions(rounds=rounds, quote_only=quote_only)
    for number in range(AUCTIONS):
        request = ev.RequestSubmitted(f"r{number}", RequestForQuotation((unit,)), options)
        world.command("alice", request, START + SECOND * (number + 1))
    world.run(limit=MINUTE)
    wanted = "quoted" if quote_only else "committed"
    assert [each.stage for each in world.users["alice"].purchases.values()] == [wanted] * AUCTIONS
    return world.network.counts.sent


def _plain_loops() -> None:
    machines = [_machine(number) for number in range(RESOURCES)]
    for _ in range(AUCTIONS):
        asking = 70
        own: list[int | None] = [None] * RESOURCES
        for _ in range(10):
            bids = []
            for number, (load, prices) in enumerate(machines):
                question = PriceQuestion(asking, prices.start_price, prices.minimum_price, load, own_last=own[number])
                bid = original_price(question)
                if not isinstance(bid, PriceRefusal):
                    own[number] = bid
                    bids.append(bid)
            asking = min([asking, *bids])
