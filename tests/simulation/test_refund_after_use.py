"""Attack A4 in another way: whoever has used a slot looks for a signed failure, which would bring the money back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ramp.model.acl import Message, Performative
from ramp.model.agreement import Signed
from ramp.model.contents import Commitment, HoldRefused
from ramp.model.instant import HOUR, MILLISECOND, MINUTE, SECOND, Duration
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.model.seal import Role
from ramp.model.slot import StaticTerms
from ramp.protocol import events as ev
from ramp.protocol.resource.seller import PriceRange
from simulation.market.specs import ResourceSpec, UserSpec
from simulation.market.virtual_notary import VirtualNotary
from simulation.market.world import BANK, START, World
from simulation.resource.steady import SteadyMachine


class Listener:
    """Carries every message in a millisecond and keeps what is said to the buyer."""

    def __init__(self) -> None:
        self.heard: list[Message] = []

    def route(self, message: Message) -> tuple[Duration, ...]:
        if message.receiver == "alice":
            self.heard.append(message)
        return (MILLISECOND,)

    def crash(self, name: str, effect: object) -> None:
        return None


@pytest.mark.parametrize("tried_first", [True, False])
def test_no_commitment_brings_about_a_word_that_buys_a_used_slot_back(tried_first: bool) -> None:
    listener = Listener()
    machine = SteadyMachine("res", 64, 0.5)
    world = World(
        [ResourceSpec("res", machine, StaticTerms(64), PriceRange(60, 20))],
        [UserSpec("alice", 10**7)],
        seed=0,
        script=listener,
    )
    world.run(limit=SECOND)
    start = START + 10 * MINUTE
    unit = RequestUnit(1, 70, start + HOUR, TotalCores(16), not_before=start, wall_time=HOUR)
    submitted = ev.RequestSubmitted("r1", RequestForQuotation((unit,)), ev.AuctionOptions(rounds=1))
    world.command("alice", submitted)
    if tried_first:  # up to the decision, whose CONFIRM is still on its way
        world.run(until=lambda: decided(world), limit=SECOND)
        lie(world)
    world.run(limit=SECOND)
    paid = world.ledger.balance("res").posted
    assert paid > 0
    world.run(limit=2 * HOUR)
    if not tried_first:
        lie(world)
    world.run(limit=SECOND)
    said = [each for each in listener.heard if isinstance(each.content, Signed | HoldRefused)]
    assert len(said) == 3
    for message in said:
        if isinstance(message.content, Signed):
            deliver(world, message.content, BANK)
    world.run(limit=SECOND)
    assert world.ledger.balance("res").posted == paid


def decided(world: World) -> bool:
    purchase = world.users["alice"].purchases.get("r1")
    confirmation = purchase.confirmation if purchase is not None else None
    return confirmation is not None and confirmation.decided


def lie(world: World) -> None:
    """Commitments that the resource cannot accept, under the id of the agreement that it has sold or will."""
    confirmation = world.users["alice"].purchases["r1"].confirmation
    assert confirmation is not None
    assert confirmation._vote is not None
    (agreement,) = confirmation.agreements
    for wrong in (
        replace(agreement, cost=1),
        replace(agreement, units_total=2),
        replace(agreement, offer=replace(agreement.offer, offer_id="offer-that-never-was")),
    ):
        deliver(world, Commitment(Signed(wrong, ("alice",)), *confirmation._vote), "res")


def deliver(world: World, content: Commitment | Signed, receiver: str) -> None:
    message = Message(Performative.CONFIRM, "alice", receiver, "r1", content)
    world.deliver(VirtualNotary("alice", Role.USER).seal(message, world.now), 0)
