"""Parts of a market for tests of single machines."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from ramp.model.acl import Message, Performative
from ramp.model.agreement import Agreement, Signed
from ramp.model.contents import Acceptance, CallForProposals
from ramp.model.instant import HOUR
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.model.slot import Reservation, Slot, StaticTerms
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.pricing import paper_price
from ramp.protocol.resource_party import ResourceParty
from ramp.protocol.seller import PriceRange, Seller
from ramp.protocol.timing import Timing
from simulation.market.counted_ids import CountedIds

UNIT = RequestUnit(1, 70, 3 * HOUR, TotalCores(16), not_before=HOUR, wall_time=HOUR)


def sent(effects: list[fx.Effect]) -> list[Message]:
    return [effect.message for effect in effects if isinstance(effect, fx.Send)]


@dataclass
class OneResource:
    """A resource party without a machine: the test answers for the plug-in."""

    party: ResourceParty = field(
        default_factory=lambda: ResourceParty(
            "res",
            directory="directory",
            bank="bank",
            seller=Seller(
                "res",
                terms=StaticTerms(64),
                prices=PriceRange(60, 20),
                strategy=paper_price,
                source="synthetic",
                ids=CountedIds("res"),
                timing=Timing(),
            ),
            timing=Timing(),
        )
    )

    def hear(self, performative: Performative, content: Any, sender: str = "alice", now: int = 0) -> list[fx.Effect]:
        message = Message(performative, sender, "res", "r1", content, reply_with="w")
        return self.party.handle(ev.MessageReceived(message), now)

    def call(self, round_number: int = 1, price: int = 70, request_id: str = "r1") -> Message:
        unit = RequestUnit(1, price, UNIT.deadline, UNIT.cores, UNIT.not_before, UNIT.wall_time)
        call = CallForProposals(request_id, round_number, RequestForQuotation((unit,)))
        effects = self.hear(Performative.CFP, call)
        if isinstance(effects[0], fx.QuoteSlots):
            slot = Slot(HOUR, 2 * HOUR, 16, 0.5)
            effects = self.party.handle(ev.SlotsQuoted(effects[0].call_id, (slot,)), 0)
        (reply,) = sent(effects)
        return reply

    def hold(self, request_id: str = "r1") -> tuple[Any, list[fx.Effect]]:
        """An offer, accepted and held."""
        offer = self.call(request_id=request_id).content.offers[0]  # type: ignore[union-attr]
        effects = self.hear(Performative.ACCEPT_PROPOSAL, Acceptance(request_id, offer.offer_id))
        slot = Slot(offer.start, offer.end, offer.cores, offer.load)
        held = Reservation(offer.offer_id, f"R-{offer.offer_id}", slot, False, Timing().hold_time)
        effects += self.party.handle(ev.SlotHeld(offer.offer_id, held), 0)
        return offer, effects

    def agreement(self, offer: Any, agreement_id: str = "a1", **changes: Any) -> Signed:
        body = Agreement(
            agreement_id=agreement_id,
            request_id=offer.request_id,
            units_total=1,
            user="alice",
            resource="res",
            bank="bank",
            request=UNIT,
            offer=offer,
            reservation_id=f"R-{offer.offer_id}",
            cost=offer.cost,
            issued_at=0,
            valid_until=10**12,
        )
        return Signed(replace(body, **changes), signers=("alice",))

    def confirm(self, offer: Any) -> list[fx.Effect]:
        """The plug-in makes the hold firm."""
        slot = Slot(offer.start, offer.end, offer.cores, offer.load)
        firm = Reservation(offer.offer_id, f"R-{offer.offer_id}", slot, True, None)
        return self.party.handle(ev.SlotConfirmed(offer.offer_id, firm), 0)


@pytest.fixture
def resource() -> OneResource:
    return OneResource()


@pytest.fixture
def messages_of() -> Any:
    return sent
