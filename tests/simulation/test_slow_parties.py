"""Parties whose every word takes long, on a line that loses and doubles: nobody gives up wrongly, nobody floods.

A resource may take minutes: another one sells. There is one bank only, and a decision needs its vote while the holds
last, so it may take as long as they do.
"""

from __future__ import annotations

from random import Random

import pytest

from ramp.model.acl import Message
from ramp.model.instant import HOUR, MILLISECOND, MINUTE, SECOND, Duration
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.model.slot import StaticTerms
from ramp.protocol.events import AuctionOptions, RequestSubmitted
from ramp.protocol.outcome import RequestStatus
from ramp.protocol.progress import Progress, RequestEnded
from ramp.protocol.resource.seller import PriceRange
from simulation.market.faults.plan import FaultPlan
from simulation.market.network import NetworkFaults
from simulation.market.specs import ResourceSpec, UserSpec
from simulation.market.swarm import new_checkers
from simulation.market.world import START, World
from simulation.resource.steady import SteadyMachine


class SlowParties:
    """A script: what some party says to others about a purchase takes long, and some of it comes twice.

    Args:
        name: the party.
        shortest: time on the way, and `longest`.
        seed: of the times drawn between them.
    """

    def __init__(self, name: str, shortest: Duration, longest: Duration, seed: int) -> None:
        self._name = name
        self._shortest, self._longest = shortest, longest
        self._random = Random(seed)

    def route(self, message: Message) -> tuple[Duration, ...] | None:
        if "directory" in (message.sender, message.receiver):
            return (5 * MILLISECOND,)  # who sells is asked five times within 30 s: too few to be sure of an answer
        if message.sender != self._name or not message.conversation_id.startswith(("request", "order")):
            return None
        delay = self._random.randint(self._shortest, self._longest)
        return (delay, delay + MINUTE) if self._random.random() < 0.3 else (delay,)

    def crash(self, name: str, effect: object) -> None:
        return None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    ("slow", "shortest", "longest"), [("res0", MINUTE, 3 * MINUTE), ("bank", 20 * SECOND, MINUTE)], ids=["res0", "bank"]
)
def test_a_party_that_answers_after_long_stops_no_purchase(
    slow: str, shortest: Duration, longest: Duration, seed: int
) -> None:
    ended: list[RequestStatus] = []

    def listen(_: str, progress: Progress, __: int) -> None:
        if isinstance(progress, RequestEnded):
            ended.append(progress.outcome.status)

    world = World(
        # the slow resource is the cheapest, so that everybody would buy there
        [
            ResourceSpec(
                name, SteadyMachine(name, 256, 0.3), StaticTerms(256), PriceRange(60 + 5 * rank, 20 + 5 * rank)
            )
            for rank, name in enumerate(("res0", "res1", "res2"))
        ],
        [UserSpec(f"user{number}", 10**9) for number in range(2)],
        seed=seed,
        faults=FaultPlan(NetworkFaults(loss=0.3, duplication=0.3, delay_floor=5 * MILLISECOND), heal_after=HOUR),
        checkers=new_checkers(),
        listen=listen,
        script=SlowParties(slow, shortest, longest, seed),
    )
    world.run(limit=MINUTE)  # all have registered
    before = sum(world.network.counts.by_performative.values())
    units = tuple(
        RequestUnit(number, 70, START + 8 * HOUR, TotalCores(16), START + 2 * HOUR, HOUR) for number in (1, 2)
    )
    for number in range(2):
        request = RequestSubmitted(f"request{number}", RequestForQuotation(units), AuctionOptions(rounds=3))
        world.command(f"user{number}", request)
    world.run(until=lambda: len(ended) == 2, limit=20 * MINUTE)
    assert ended == [RequestStatus.COMMITTED] * 2
    minutes = (world.now - START) / MINUTE
    heartbeats = 3 * 2 * 12 * minutes  # of three resources every five seconds, each acknowledged
    assert sum(world.network.counts.by_performative.values()) - before < heartbeats + 300
    world.run(limit=2 * HOUR)
    world.finish()
