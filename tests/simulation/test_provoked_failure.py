"""A buyer that wants a seller's signed "failed" for what it buys or has used: money back, and the slot used (A4)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ramp.model.acl import Message, Performative
from ramp.model.agreement import Agreement, ContractChange, Signed, end_of
from ramp.model.contents import Commitment, HoldRefused, TransferKind
from ramp.model.instant import HOUR, MILLISECOND, SECOND
from ramp.model.offer import RefusalCode
from ramp.model.seal import Role
from ramp.protocol.transition_tables import ParticipantState
from simulation.market.observing import Script
from simulation.market.specs import UserSpec
from simulation.market.virtual_notary import VirtualNotary
from simulation.market.world import BANK, START, World
from tests.simulation.small_markets import sellers, submission


class Ear(Script):
    """Hears every message of a market."""

    def __init__(self) -> None:
        self.heard: list[Message] = []

    def route(self, message: Message) -> tuple[int, ...]:
        self.heard.append(message)
        return (MILLISECOND,)

    def last(self, kind: type) -> Message:
        return next(each for each in reversed(self.heard) if isinstance(each.content, kind))


def market() -> tuple[World, Ear]:
    ear = Ear()
    return World(sellers("res1", cores=64, load=0.5), [UserSpec("alice", 10**7)], seed=0, script=ear), ear


@pytest.fixture
def sold() -> tuple[World, Ear, Commitment]:
    """A market in which alice has bought a slot of res1, and the commitment by which she did."""
    world, ear = market()
    world.command("alice", submission(rounds=1), START + SECOND)
    world.run(limit=5 * SECOND)
    assert world.users["alice"].purchases["r1"].stage == "committed"
    content = ear.last(Commitment).content
    assert isinstance(content, Commitment)
    return world, ear, content


def _is_failure(content: object) -> bool:
    return isinstance(content, Signed) and isinstance(content.body, ContractChange) and content.body.is_failure


def _commit(world: World, commitment: Commitment, **changes: object) -> None:
    body = commitment.agreement.body
    assert isinstance(body, Agreement)
    changed = replace(body, **changes)  # type: ignore[arg-type]
    content = replace(commitment, agreement=Signed(changed, ("alice",)))
    bare = Message(Performative.CONFIRM, "alice", "res1", "r1", content, reply_with=changed.agreement_id)
    world.deliver(VirtualNotary("alice", Role.USER).seal(bare, world.now), 0)
    world.run(limit=SECOND)


@pytest.mark.parametrize(
    "changes",
    [
        {"cost": 1},
        {"units_total": 2},
        {"reservation_id": "res1-9"},
        {"valid_until": START + HOUR},
        {"order_id": "order-9"},
        {"request_id": "r9"},
        {"offer_id": "offer-of-nobody"},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_wrong_copy_of_a_commitment_gets_no_signed_failure(
    sold: tuple[World, Ear, Commitment], changes: dict[str, object]
) -> None:
    world, ear, commitment = sold
    body = commitment.agreement.body
    assert isinstance(body, Agreement)
    if "offer_id" in changes:
        changes = {"offer": replace(body.offer, offer_id=str(changes["offer_id"]))}
    heard = len(ear.heard)
    _commit(world, commitment, **changes)
    assert not [each for each in ear.heard[heard:] if _is_failure(each.content)]
    (participant,) = world.resources["res1"].participants.values()
    assert participant.state is ParticipantState.SOLD


@pytest.mark.parametrize(("offer_id", "refunded"), [("offer-res1-9", False), (None, True)])
def test_a_failure_counts_for_the_offer_that_was_paid_only(
    sold: tuple[World, Ear, Commitment], offer_id: str | None, refunded: bool
) -> None:
    world, _, commitment = sold
    body = commitment.agreement.body
    assert isinstance(body, Agreement)
    failed = end_of(body, "it burns", world.now, RefusalCode.HOLD_EXPIRED)
    failed = replace(failed, offer_id=offer_id or failed.offer_id)
    signed = VirtualNotary("res1", Role.RESOURCE).sign(Signed(failed), world.now)
    world.deliver(Message(Performative.REQUEST, "alice", BANK, "r1", signed, reply_with="claim"), 0)
    world.run(limit=SECOND)
    assert (world.ledger.transfer(body.agreement_id, TransferKind.REFUND) is not None) is refunded


@pytest.mark.parametrize("tried_first", [True, False])
def test_no_commitment_brings_about_a_word_that_buys_a_used_slot_back(tried_first: bool) -> None:
    world, ear = market()
    world.run(limit=SECOND)
    world.command("alice", submission(rounds=1))
    if tried_first:  # up to the decision, whose CONFIRM is still on its way
        world.run(until=lambda: decided(world), limit=SECOND)
        lie(world)
    world.run(limit=SECOND)
    paid = world.ledger.balance("res1").posted
    assert paid > 0
    world.run(limit=3 * HOUR)  # it has been used, and is still remembered
    if not tried_first:
        lie(world)
    world.run(limit=SECOND)
    said = [each for each in ear.heard if each.receiver == "alice" and isinstance(each.content, Signed | HoldRefused)]
    assert len(said) == 3
    for message in said:
        if isinstance(message.content, Signed):
            deliver(world, message.content, BANK)
    world.run(limit=SECOND)
    assert world.ledger.balance("res1").posted == paid


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
        deliver(world, Commitment(Signed(wrong, ("alice",)), *confirmation._vote), "res1")


def deliver(world: World, content: Commitment | Signed, receiver: str) -> None:
    message = Message(Performative.CONFIRM, "alice", receiver, "r1", content)
    world.deliver(VirtualNotary("alice", Role.USER).seal(message, world.now), 0)
