"""What was tried in the simulator is what runs: the same steps of every party, message by message."""

import contextlib
import itertools
from dataclasses import replace

import pytest

from ramp.model.instant import SECOND
from ramp.model.request import RequestForQuotation
from ramp.model.slot import StaticTerms
from ramp.protocol import events as ev
from ramp.protocol.progress import ChangeEnded, RequestEnded
from ramp.protocol.resource.seller import PriceRange
from simulation.market.observing import Observer
from simulation.market.specs import ResourceSpec, UserSpec
from simulation.market.world import World
from simulation.resource.steady import SteadyMachine
from tests.e2e.swarm.armed_group import act_of
from tests.e2e.swarm.swarm_market import PATIENT_TIMING, SMALL_AND_BIG, in_hours, unit, until

pytestmark = pytest.mark.e2e

DEPOSIT = 1_000_000
PARTIES = ("alice", "bank", "directory", *(machine.name for machine in SMALL_AND_BIG))
PATIENT = {**PATIENT_TIMING, "retry_first_s": 600, "retry_longest_s": 600}
"""Nothing is said again or passed over because this machine is busy, as nothing is in the simulator."""

ATTEMPTS = itertools.count(1)
"""A request that is tried once more is another one, in both markets."""


class Steps(Observer):
    """An observer of the simulated market that writes what `armed_group` writes."""

    def __init__(self):
        self.sent_by = {name: [] for name in PARTIES}

    def sent(self, message, delays, now):
        self.sent_by[message.sender].append((message.conversation_id, f"{message.receiver} {act_of(message)}"))

    def of(self, party, conversations):
        return [step for conversation, step in self.sent_by[party] if conversation in conversations]


def scenarios():
    """Request id, its units, options, and whether the first unit is given back afterwards."""
    begin = in_hours(1)
    two = [unit(1, 8, begin), unit(2, 100, begin)]
    return [
        ("request-bought", two, {}, False),
        ("request-quoted", two, {"quote_only": True}, False),
        ("request-one-round", two[:1], {"rounds": 1}, False),
        ("request-dear", [unit(1, 8, begin, price=5)], {}, False),
        ("request-too-big", [unit(1, 8, begin), unit(2, 300, begin)], {}, False),
        ("request-returned", two, {"rounds": 3}, True),
    ]


@pytest.fixture(scope="module")
def market(module_market, kind):
    market = module_market(armed=True, kind=kind, users={"alice": DEPOSIT}, timing=PATIENT)
    market.up()
    market.wait_ready()
    return market


@pytest.fixture(scope="module")
def world(kind):
    steps = Steps()
    ended = []
    resources = [
        ResourceSpec(
            machine.name,
            SteadyMachine(machine.name, machine.cores, 0.0),
            StaticTerms(machine.cores),
            PriceRange(machine.start_price, machine.price, 4),
        )
        for machine in SMALL_AND_BIG
    ]
    world = World(
        resources,
        [UserSpec("alice", DEPOSIT * 100)],
        seed=1,
        observer=steps,
        listen=lambda name, progress, now: (
            ended.append(progress) if isinstance(progress, RequestEnded | ChangeEnded) else None
        ),
    )
    world.run(limit=2 * SECOND)
    world.steps, world.ended = steps, ended
    return world


def runs(steps):
    """Equal acts to several receivers, one right after the other, sorted: answers come in either order."""
    acts = itertools.groupby(steps, lambda step: step.partition(" ")[2])
    return [(act, sorted(step.partition(" ")[0] for step in run)) for act, run in acts]


def orders(market, world, request_id):
    """Ids of a request's orders, in both markets."""
    listed = [each["agreement"] for each in market.agreements("alice")]
    simulated = world.users["alice"].agreements.values()
    return [each["order_id"] for each in listed if each["request_id"] == request_id] + [
        each.order_id for each in simulated if each.request_id == request_id
    ]


@pytest.mark.parametrize(
    ("request_id", "units", "options", "returned"),
    [
        pytest.param(*scenario, id=scenario[0], marks=[] if scenario[0] == "request-bought" else pytest.mark.full)
        for scenario in scenarios()
    ],
)
def test_every_party_sends_the_same_messages_in_the_same_order(market, world, request_id, units, options, returned):
    request_id = f"{request_id}-{next(ATTEMPTS)}"
    by = (world.now - in_hours(0)) // SECOND * SECOND
    auction = ev.AuctionOptions(**{"rounds": 2, "round_time": 15 * SECOND, **options})
    shifted = [replace(each, not_before=each.not_before + by, deadline=each.deadline + by) for each in units]
    submitted = ev.RequestSubmitted(request_id, RequestForQuotation(tuple(shifted)), auction)
    world.command("alice", submitted)
    world.run(until=lambda: bool(world.ended), limit=60 * SECOND)
    simulated = world.ended.pop().outcome
    real = market.buy("alice", request_id, units, **options)
    assert real["status"] == simulated.status.value
    conversations = [request_id]
    assert [each["offer"]["resource"].partition("@")[0] for each in real["units"]] == [
        each.offer.resource for each in simulated.units
    ]
    if returned:
        world.command("alice", ev.AgreementCancelled(simulated.units[0].agreement_id, "no longer needed"))
        world.run(until=lambda: bool(world.ended), limit=60 * SECOND)
        world.ended.clear()
        agreement_id = real["units"][0]["agreement_id"]
        asked = {"verb": "agreement_cancelled", "agreement_id": agreement_id, "reason": ""}
        (outcome,) = market.ask("alice", asked)["outcomes"]
        assert outcome["done"]
        conversations += [agreement_id, simulated.units[0].agreement_id]
    world.run(limit=2 * SECOND)
    conversations += orders(market, world, request_id)  # what the bank says unasked is about the order
    total = 0
    for party in PARTIES:
        expected = world.steps.of(party, conversations)
        with contextlib.suppress(AssertionError):  # the last words of the others come after alice has her answer
            until(lambda: len(market.steps(party, conversations)) >= len(expected), "all have spoken")  # noqa: B023
        found = market.steps(party, conversations)
        assert runs(found) == runs(expected), party
        total += len(found)
    assert total >= 6
