"""Calls overtake earlier messages and are overtaken: no purchase depends on the order of messages."""

from __future__ import annotations

from random import Random

import pytest

from ramp.model.acl import Message, Performative
from ramp.model.contents import CallForProposals
from ramp.model.instant import HOUR, MILLISECOND, MINUTE, SECOND, Duration
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.model.slot import StaticTerms
from ramp.protocol.events import AuctionOptions, RequestSubmitted
from ramp.protocol.outcome import RequestStatus
from ramp.protocol.progress import Progress, RequestEnded
from ramp.protocol.resource.seller import PriceRange
from simulation.market.specs import ResourceSpec, UserSpec
from simulation.market.swarm import new_checkers
from simulation.market.world import START, World
from simulation.resource.steady import SteadyMachine

ROUND = 2 * SECOND
QUICK = MILLISECOND


class Order:
    """A script: of calls each takes its own time, of all other messages of a user a fixed one; counts who overtakes.

    Args:
        calls: time on the way of a call, from and to.
        others: of everything else.
        seed: of the times drawn.
    """

    def __init__(self, calls: tuple[Duration, Duration], others: Duration, seed: int) -> None:
        self._calls = calls
        self._others = others
        self._random = Random(seed)
        self.now = 0
        self.overtaken = {"call": 0, "other": 0}
        self._under_way: dict[tuple[str, str], list[tuple[int, str]]] = {}
        self.world: World

    def route(self, message: Message) -> tuple[Duration, ...] | None:
        if "directory" in (message.sender, message.receiver):
            return (QUICK,)
        is_call = isinstance(message.content, CallForProposals)
        delay = self._random.randint(*self._calls) if is_call else self._others
        if message.performative not in (Performative.PROPOSE, Performative.REFUSE):
            pair = self._under_way.setdefault((message.sender, message.receiver), [])
            arrival = self.world.now + delay
            for due, what in pair:
                self.overtaken[what] += due > arrival and what != ("call" if is_call else "other")
            pair.append((arrival, "call" if is_call else "other"))
        return (delay,)

    def crash(self, name: str, effect: object) -> None:
        return None


@pytest.mark.parametrize(
    ("calls", "others", "overtaken"),
    [((QUICK, 3 * ROUND), QUICK, "call"), ((QUICK, QUICK), 300 * MILLISECOND, "other")],
    ids=["calls come late", "calls come early"],
)
def test_a_call_that_overtakes_or_is_overtaken_harms_no_purchase(
    calls: tuple[Duration, Duration], others: Duration, overtaken: str
) -> None:
    ended: list[RequestStatus] = []

    def listen(_: str, progress: Progress, __: int) -> None:
        if isinstance(progress, RequestEnded):
            ended.append(progress.outcome.status)

    order = Order(calls, others, seed=1)
    world = World(
        [
            ResourceSpec(name, SteadyMachine(name, 256, 0.3), StaticTerms(256), PriceRange(60 + rank, 20 + rank))
            for rank, name in enumerate(("res0", "res1", "res2"))
        ],
        [UserSpec("user", 10**9)],
        seed=1,
        checkers=new_checkers(),
        listen=listen,
        script=order,
    )
    order.world = world
    world.run(limit=MINUTE)  # all have registered
    unit = RequestUnit(1, 70, START + 8 * HOUR, TotalCores(16), START + 2 * HOUR, HOUR)
    # one after the other and, so that calls of one purchase meet the words of another, two at once
    for number in range(4):
        options = AuctionOptions(rounds=3, round_time=ROUND)
        world.command("user", RequestSubmitted(f"request{number}", RequestForQuotation((unit,)), options))
        if number % 2:
            world.run(until=lambda target=number + 1: len(ended) == target, limit=20 * MINUTE)
    assert ended == [RequestStatus.COMMITTED] * 4
    assert order.overtaken[overtaken] > 0
    world.run(limit=20 * MINUTE)  # every hold and every pause has ended
    world.finish()
