"""A buyer that wants a seller's signed "failed" for what it has bought: money back, and the slot used (attack A4)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ramp.ledger.transfer import TransferKind
from ramp.model.acl import Message, Performative
from ramp.model.agreement import Agreement, ContractChange, Signed, end_of
from ramp.model.contents import Commitment
from ramp.model.instant import HOUR, MILLISECOND, SECOND
from ramp.model.offer import RefusalCode
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.model.seal import Role
from ramp.model.slot import StaticTerms
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.resource.seller import PriceRange
from ramp.protocol.transition_tables import ParticipantState
from simulation.market.specs import ResourceSpec, UserSpec
from simulation.market.virtual_notary import VirtualNotary
from simulation.market.world import BANK, START, World
from simulation.resource.steady import SteadyMachine


class Ear:
    """Hears every message of a market."""

    def __init__(self) -> None:
        self.heard: list[Message] = []

    def route(self, message: Message) -> tuple[int, ...]:
        self.heard.append(message)
        return (MILLISECOND,)

    def crash(self, name: str, effect: fx.Effect) -> None:
        return None

    def last(self, kind: type) -> Message:
        return next(each for each in reversed(self.heard) if isinstance(each.content, kind))


@pytest.fixture
def sold() -> tuple[World, Ear, Commitment]:
    """A market in which alice has bought a slot of res1, and the commitment by which she did."""
    ear = Ear()
    resource = ResourceSpec("res1", SteadyMachine("res1", 64, 0.5), StaticTerms(64), PriceRange(60, 20))
    world = World([resource], [UserSpec("alice", 10**7)], seed=0, script=ear)
    unit = RequestUnit(1, 70, START + 3 * HOUR, TotalCores(16), not_before=START + 2 * HOUR, wall_time=HOUR)
    command = ev.RequestSubmitted("r1", RequestForQuotation((unit,)), ev.AuctionOptions(rounds=1))
    world.command("alice", command, START + SECOND)
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
