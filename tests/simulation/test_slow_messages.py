"""Messages that take long or overtake one another: no purchase depends on their order, and nobody gives up wrongly."""

from random import Random

import pytest

from ramp.model.acl import Message, Performative
from ramp.model.contents import CallForProposals
from ramp.model.instant import HOUR, MILLISECOND, MINUTE, SECOND, Duration
from ramp.protocol.outcome import RequestStatus
from simulation.market.faults.plan import FaultPlan
from simulation.market.network import NetworkFaults
from simulation.market.observing import Script
from simulation.market.specs import UserSpec
from simulation.market.world import START, World
from simulation.swarm import new_checkers
from tests.simulation.small_markets import THREE, Ended, sellers, submission

ROUND = 2 * SECOND
QUICK = MILLISECOND


class Order(Script):
    """A script: of calls each takes its own time, of all other messages of a user a fixed one; counts who overtakes."""

    def __init__(self, calls: tuple[Duration, Duration], others: Duration, seed: int) -> None:
        self._calls = calls
        self._others = others
        self._random = Random(seed)
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


@pytest.mark.parametrize(
    ("calls", "others", "overtaken"),
    [((QUICK, 3 * ROUND), QUICK, "call"), ((QUICK, QUICK), 300 * MILLISECOND, "other")],
    ids=["calls come late", "calls come early"],
)
def test_a_call_that_overtakes_or_is_overtaken_harms_no_purchase(
    calls: tuple[Duration, Duration], others: Duration, overtaken: str
) -> None:
    ended, order = Ended(), Order(calls, others, seed=1)
    world = World(
        sellers(*THREE, step=1),
        [UserSpec("user", 10**9)],
        seed=1,
        checkers=new_checkers(),
        listen=ended.listen,
        script=order,
    )
    order.world = world
    world.run(limit=MINUTE)  # all have registered
    # one after the other and, so that calls of one purchase meet the words of another, two at once
    for number in range(4):
        world.command("user", submission(f"request{number}", rounds=3, round_time=ROUND))
        if number % 2:
            world.run(until=lambda target=number + 1: len(ended) == target, limit=20 * MINUTE)
    assert [each.status for each in ended] == [RequestStatus.COMMITTED] * 4
    assert order.overtaken[overtaken] > 0
    world.run(limit=20 * MINUTE)  # every hold and every pause has ended
    world.finish()


class SlowParty(Script):
    """A script: what some party says to others about a purchase takes long, and some of it comes twice."""

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


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    ("slow", "shortest", "longest"), [("res0", MINUTE, 3 * MINUTE), ("bank", 20 * SECOND, MINUTE)], ids=["res0", "bank"]
)
def test_a_party_that_answers_after_long_stops_no_purchase(
    slow: str, shortest: Duration, longest: Duration, seed: int
) -> None:
    """On a line that loses and doubles. A slow resource is the cheapest, and another one sells.

    There is one bank only, and a decision needs its vote while the holds last: it may take as long as they do.
    """
    ended = Ended()
    world = World(
        sellers(*THREE),
        [UserSpec(f"user{number}", 10**9) for number in range(2)],
        seed=seed,
        faults=FaultPlan(NetworkFaults(loss=0.3, duplication=0.3, delay_floor=5 * MILLISECOND), heal_after=HOUR),
        checkers=new_checkers(),
        listen=ended.listen,
        script=SlowParty(slow, shortest, longest, seed),
    )
    world.run(limit=MINUTE)  # all have registered
    before = world.sent
    for number in range(2):
        world.command(f"user{number}", submission(f"request{number}", units=2, rounds=3))
    world.run(until=lambda: len(ended) == 2, limit=20 * MINUTE)
    assert [each.status for each in ended] == [RequestStatus.COMMITTED] * 2
    minutes = (world.now - START) / MINUTE
    heartbeats = 3 * 2 * 12 * minutes  # of three resources every five seconds, each acknowledged
    assert world.sent - before < heartbeats + 300
    world.run(limit=2 * HOUR)
    world.finish()
