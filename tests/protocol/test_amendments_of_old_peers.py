"""Amendments where the seller's or the bank's program is older than wire version 1.3 and knows none."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from ramp.model.acl import Message, Performative
from ramp.model.agreement import Agreement, Amendment, Signed
from ramp.model.contents import AmendmentRefused, AmendmentWithdrawal, NotUnderstood
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.offer import Offer
from ramp.model.request import RequestUnit, TotalCores
from ramp.model.sizes.amended import first_state
from ramp.model.slot import Reservation, Slot
from ramp.protocol.amending.asking import AgreementResized, AmendmentOutcome, ResizeSlot, SlotResized
from ramp.protocol.amending.memory import AmendmentConcluded
from ramp.protocol.effects import Effect, Persist, Report, Send
from ramp.protocol.progress import AmendmentEnded
from ramp.protocol.resource.slots.size_change import SizeChange
from ramp.protocol.tables import SizeChangeState
from ramp.protocol.timing import Pace, Timing
from ramp.protocol.user.resizing.changes import Changes
from simulation.market.counted_ids import CountedIds

NOW = 100 * HOUR
OFFER = Offer("o-1", "r-1", 1, "res", 60, NOW + HOUR, NOW + 5 * HOUR, 16, 0.0, NOW + HOUR)
UNIT = RequestUnit(1, 70, NOW + 5 * HOUR, TotalCores(16), NOW + HOUR)
AGREEMENT = Agreement(
    "a-1", "r-1", 1, "alice", "res", "bank", UNIT, OFFER, "res-1", OFFER.cost, NOW - HOUR, "order-1", NOW - MINUTE
)
OLD = 2
"""Minor version of the wire format before there were amendments."""


def messages(effects: Sequence[Effect]) -> list[Message]:
    return [each.message for each in effects if isinstance(each, Send)]


def outcome_of(effects: Sequence[Effect]) -> AmendmentOutcome:
    (ended,) = [each.progress for each in effects if isinstance(each, Report)]
    assert isinstance(ended, AmendmentEnded)
    return ended.outcome


class Buyer:
    """Alice, who has bought from res; what she knows of the bank's version is set by the test."""

    def __init__(self, bank_minor: int | None) -> None:
        self.bank_minor = bank_minor
        self.changes = Changes(
            {"a-1": AGREEMENT}, lambda _: "active", Pace(Timing()), lambda: self.bank_minor, CountedIds("alice")
        )

    def resize(self, *, quote_only: bool = False) -> list[Effect]:
        return self.changes.resize(AgreementResized("a-1", cores=8, quote_only=quote_only), NOW)

    def not_understood(self, proposal: Message, sender: str) -> list[Effect]:
        answer = Message(
            Performative.NOT_UNDERSTOOD, sender, "alice", "r-1", NotUnderstood("?"), in_reply_to=proposal.reply_with
        )
        return self.changes.not_understood(answer, NOW)


def seller_knows_none() -> None:
    buyer = Buyer(bank_minor=3)
    (proposal,) = messages(buyer.resize())
    assert buyer.not_understood(proposal, "mallory") == []  # it is the seller that has to say so
    (withdrawal,) = messages(buyer.not_understood(proposal, "res"))
    assert (withdrawal.receiver, withdrawal.content) == ("bank", AmendmentWithdrawal("a-1", 1))
    assert buyer.not_understood(proposal, "res") == []


def bank_turns_out_to_know_none() -> None:
    """It was not heard of before the proposal, and keeps silent about the withdrawal."""
    buyer = Buyer(bank_minor=None)
    (proposal,) = messages(buyer.resize())
    buyer.not_understood(proposal, "res")
    deadline = buyer.changes.deadline
    assert deadline is not None
    assert [each.content for each in messages(buyer.changes.tick(deadline))] == [AmendmentWithdrawal("a-1", 1)]
    buyer.bank_minor = OLD
    deadline = buyer.changes.deadline
    assert deadline is not None
    effects = buyer.changes.tick(deadline)
    outcome = outcome_of(effects)
    assert (outcome.done, outcome.code, outcome.refund) == (False, "bank_too_old", 0)
    records = [each.record for each in effects if isinstance(each, Persist)]
    assert [(type(each), getattr(each, "seal", "")) for each in records] == [(AmendmentConcluded, None)]
    assert buyer.changes.open == buyer.changes.posted("a-1") == ()


def bank_of_a_seller_knows_none() -> None:
    """The seller has shrunk the slot, and gives it its old size again."""
    body = Amendment(
        "a-1", 1, first_state(AGREEMENT).digest, "o-1", "alice", "res", "bank", 8, OFFER.end,
        NOW + 10 * SECOND, 192_000, NOW, NOW + MINUTE,
    )  # fmt: skip
    change = SizeChange(Signed(body, ("alice",), ""), AGREEMENT, first_state(AGREEMENT), Pace(Timing()))

    def resized(asked: Effect, cores: int) -> SlotResized:
        assert isinstance(asked, ResizeSlot)
        assert asked.cores == cores
        slot = Slot(OFFER.start, OFFER.end, cores, 0.0)
        return SlotResized(asked.key, asked.step, Reservation("o-1", "res-1", slot, firm=True, held_until=None))

    (asked,) = change.start(NOW)
    change.on_resized(resized(asked, 16), NOW)
    (asked,) = change.tick(body.effective_at, sold=True, old_bank="")
    *_, to_bank = messages(change.on_resized(resized(asked, 8), body.effective_at))
    assert to_bank.receiver == "bank"
    assert change.deadline is not None
    (asked,) = change.tick(change.deadline, sold=True, old_bank="bank speaks version 1.2")
    assert change.state is SizeChangeState.RESTORING
    (told,) = messages(change.on_resized(resized(asked, 16), body.effective_at + SECOND))
    assert isinstance(told.content, AmendmentRefused)
    assert (told.receiver, told.content.code) == ("alice", "bank_too_old")


SCENARIOS: tuple[Callable[[], None], ...] = (
    seller_knows_none,
    bank_turns_out_to_know_none,
    bank_of_a_seller_knows_none,
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_it_is_given_up_and_everybody_is_told(scenario: Callable[[], None]) -> None:
    scenario()


@pytest.mark.parametrize("quote_only", [False, True])
def test_nothing_is_proposed_where_the_bank_is_known_to_know_none(quote_only: bool) -> None:
    buyer = Buyer(bank_minor=OLD)
    effects = buyer.resize(quote_only=quote_only)
    assert messages(effects) == []
    outcome = outcome_of(effects)
    assert (outcome.done, outcome.code) == (False, "bank_too_old")
    assert "bank speaks version 1.2" in outcome.detail
