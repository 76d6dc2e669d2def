"""What a resource makes of amendments of a slot that it has sold: which it agrees to, and what holds at each step.

The slot has 16 cores from the first hour to the second, the notice is 10 s (`Timing`), and the clock begins at 0.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.agreement import ContractChange, Signed
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.offer import NOT_RESIZABLE, Refusal, RefusalCode
from ramp.model.seal import Role, Seal
from ramp.model.sizes.amended import state_digest
from ramp.model.slot import Reservation, Slot
from ramp.protocol import effects as fx
from ramp.protocol.conversations import Registry
from ramp.protocol.effects import ResizeSlot
from ramp.protocol.events import MachineInDoubt, SlotResized
from ramp.protocol.records import CapacityTaken, ChangeDropped, ChangeReceived, ChangeSettled, SoldChangeRecord
from ramp.protocol.resource.participant import Participant
from ramp.protocol.resource.quotas import Quotas, Unpaid
from ramp.protocol.resource.seller import Seller
from ramp.protocol.resource.slots.size_desk import SizeDesk
from ramp.protocol.timing import Pace, Timing
from ramp.protocol.transition_tables import ParticipantState
from tests.agreements import NOTICE, change_of
from tests.unit.protocol.conftest import messages, new_seller

SEAL = Seal("bank", Role.BANK, "res", "r1", 0, "seal text")


@dataclass
class Desk:
    """The desk of a resource that has sold one slot to alice; everything that happens is said by the test.

    Attributes:
        in_the_way: what goes on on the slot, as the desk hears of it.
        asked: what was asked about what is in the way.
    """

    participant: Participant
    in_the_way: str = ""
    seller: Seller = field(default_factory=new_seller)
    unpaid: Unpaid = field(default_factory=lambda: Unpaid(Quotas(), 64))
    asked: list[tuple[str, int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.sizes = self.new()

    def new(self) -> SizeDesk:
        def in_the_way(offer_id: str, cores: int, until: int) -> str:
            self.asked.append((offer_id, cores, until))
            return self.in_the_way

        self.registry = Registry()
        return SizeDesk(
            Pace(Timing()), in_the_way, lambda *_: [], seller=self.seller, unpaid=self.unpaid, registry=self.registry
        )

    def amendment(self, cores: int = 8, number: int = 1, at: int = 0, **changes: Any) -> ContractChange:
        """Half of the slot, or another part, given back before it begins."""
        return replace(change_of(self.participant.agreed, cores, at, 60), number=number, **changes)

    def propose(self, body: ContractChange, now: int = 0) -> list[fx.Effect]:
        signed = Signed(body, ("alice",), "text")
        message = Message(Performative.REQUEST, "alice", "res", "r1", signed, reply_with="w")
        return self.sizes.on_change(message, signed, self.participant, now)

    def resized(self, question: fx.Effect, answer: Any = True, now: int = 0, **said: Any) -> list[fx.Effect]:
        assert isinstance(question, ResizeSlot)
        if answer is True:
            slot = Slot(HOUR, question.until, question.cores, 0.0)
            answer = Reservation(question.key, "R", slot, firm=True, held_until=None)
        return self.sizes.on_resized(SlotResized(question.key, question.step, answer, **said), now)

    def agreed(self, body: ContractChange | None = None) -> ContractChange:
        """Up to the answer that it is agreed to."""
        body = body or self.amendment()
        (question,) = self.propose(body, body.issued_at)
        self.resized(question, now=body.issued_at)
        return body

    def posting(self, body: ContractChange | None = None) -> ContractChange:
        """Up to the document for the bank."""
        body = self.agreed(body)
        (question,) = self.registry.tick(body.effective_at)
        self.resized(question, now=body.effective_at)
        return body

    def bank(self, content: Any, now: int = NOTICE) -> list[fx.Effect]:
        return self.sizes.on_bank(content, SEAL, self.participant, now)

    def settled(self, body: ContractChange | None = None) -> ContractChange:
        body = self.posting(body)
        self.bank(c.ChangePosted("a1", body.number, "t", -body.refund), body.effective_at)
        return body


@pytest.fixture
def desk(resource: Any) -> Desk:
    offer = resource.sell()
    return Desk(resource.party.participants[offer.offer_id])


def refusal(effects: list[fx.Effect]) -> tuple[str, str]:
    """Code and sentence of the one refusal that is told to the buyer."""
    (said,) = messages(effects)
    assert (said.performative, said.sender, said.receiver) == (Performative.REFUSE, "res", "alice")
    assert isinstance(said.content, c.ChangeRefused)
    return said.content.code, said.content.detail


REFUSED: dict[str, tuple[dict[str, Any], int, str]] = {
    "of a state that is no more": ({"previous": "other"}, 0, "other_state"),
    "with a shorter notice": ({"effective_at": NOTICE - 1}, 0, "short_notice"),
    "at the instant when it takes effect": ({}, NOTICE, "too_late"),
    "older than messages may be": (
        {"effective_at": 10 * MINUTE, "valid_until": 11 * MINUTE},
        5 * MINUTE + 1,
        "too_old",
    ),
    "issued after the present": ({"issued_at": 5 * MINUTE + 1, "effective_at": 10 * MINUTE}, 0, "too_old"),
    "that gives too much back": ({"amount": -(10**9)}, 0, "bad_price"),
    "larger than the slot": ({"cores": 17, "order_id": ""}, 0, "not_smaller"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_agreed_to_is_refused_with_its_code(desk: Desk, case: str) -> None:
    changes, now, code = REFUSED[case]
    assert refusal(desk.propose(desk.amendment(**changes), now))[0] == code
    assert (desk.sizes.open, desk.registry.deadline) == ((), None)
    assert desk.propose(desk.amendment())  # and it stands in nobody's way
    assert desk.sizes.open == (desk.participant.offer.offer_id,)


def test_limits_of_what_is_agreed_to(desk: Desk) -> None:
    late = desk.amendment(effective_at=10 * MINUTE, valid_until=11 * MINUTE)
    (asked,) = desk.propose(late, 5 * MINUTE)  # just not too old
    assert isinstance(asked, ResizeSlot)
    desk.resized(asked, Refusal(1, RefusalCode.PLUGIN_FAILED, detail=""))
    (asked,) = desk.propose(desk.amendment(number=2), NOTICE - 1)  # just not too late
    assert isinstance(asked, ResizeSlot)


def test_sentences_of_refusals_name_what_would_be_right(desk: Desk) -> None:
    old = desk.amendment(effective_at=10 * MINUTE, valid_until=11 * MINUTE)
    assert "expected at most 300 s apart, check both clocks" in refusal(desk.propose(old, 5 * MINUTE + 1))[1]
    assert "1970-01-01T00:00:10Z" in refusal(desk.propose(desk.amendment(), NOTICE))[1]
    assert "expected at least 10 s" in refusal(desk.propose(desk.amendment(effective_at=NOTICE - SECOND)))[1]


def test_what_goes_on_on_the_slot_is_asked_for_in_its_new_size(desk: Desk) -> None:
    desk.in_the_way = "a job runs on 16 cores"
    assert refusal(desk.propose(desk.amendment(cores=4))) == ("job_in_the_way", "a job runs on 16 cores")
    assert desk.asked == [(desk.participant.offer.offer_id, 4, desk.participant.offer.end)]


def test_an_addition_needs_a_price(desk: Desk) -> None:
    assert refusal(desk.propose(desk.amendment(cores=24)))[0] == "no_price"


def test_the_last_word_is_said_again(desk: Desk) -> None:
    body = desk.settled()
    (again,) = desk.propose(body, NOTICE + SECOND)
    assert isinstance(again, fx.Send)
    assert again.message.performative is Performative.INFORM
    assert again.message.content == c.ChangeDone(
        Signed(body, ("alice",), "text"), c.ChangePosted("a1", 1, "t", -body.refund), SEAL
    )
    assert again.message.in_reply_to == "w"
    assert desk.sizes.given_back(body.offer_id) == body.refund


@pytest.mark.parametrize(
    ("answer", "code"),
    [(Refusal(1, RefusalCode.SLOT_TAKEN, detail="it is broken"), "slot_taken"), (NOT_RESIZABLE, "cannot_resize")],
    ids=["slot_taken", "cannot_resize"],
)
def test_a_machine_that_says_no_at_once(desk: Desk, answer: Refusal, code: str) -> None:
    (question,) = desk.propose(desk.amendment())
    effects = desk.resized(question, answer)
    assert len(effects) == 1  # nothing was on record of it, and nothing is now
    assert refusal(effects) == (code, answer.detail)
    assert desk.sizes.open == ()
    assert refusal(desk.propose(desk.amendment())) == (code, answer.detail)  # the same again


def test_answers_to_other_steps_are_ignored(desk: Desk) -> None:
    body = desk.agreed()
    offer_id = body.offer_id
    slot = Reservation(offer_id, "R", Slot(HOUR, body.until, 8, 0.0), firm=True, held_until=None)
    assert desk.sizes.on_resized(SlotResized(offer_id, 4, slot), 5) == []  # it was not asked yet
    desk.registry.tick(NOTICE)
    for step in (3, 5, 7):
        assert desk.sizes.on_resized(SlotResized(offer_id, step, slot), NOTICE) == []
    assert desk.sizes.on_resized(SlotResized("other", 4, slot), NOTICE) == []
    persisted, to_bank = desk.sizes.on_resized(SlotResized(offer_id, 4, slot), NOTICE)
    assert persisted == fx.Persist(CapacityTaken(offer_id, 1, NOTICE))
    assert isinstance(to_bank, fx.Send)
    assert (to_bank.message.receiver, to_bank.message.reply_with, to_bank.message.in_reply_to) == ("bank", "a1#1", "")
    assert to_bank.message.content == Signed(body, ("alice",), "text")


def test_who_wakes_up_too_late_takes_nothing(desk: Desk) -> None:
    body = desk.agreed()
    (question,) = desk.registry.tick(body.valid_until)
    assert question == ResizeSlot(body.offer_id, 5, 16, body.until)


def test_no_more_is_used_than_the_smaller_size_from_the_question_on(desk: Desk) -> None:
    body = desk.amendment()
    small, large = (8, body.until), (16, body.until)
    (question,) = desk.propose(body)
    assert desk.participant.size == small
    desk.resized(question)
    assert desk.participant.size == small
    (question,) = desk.registry.tick(NOTICE)
    assert desk.participant.size == small
    desk.resized(question, now=NOTICE)
    assert desk.participant.size == small
    (question,) = desk.bank(c.ChangeRefused("a1", 1, "withdrawn", "by its buyer"))
    assert question == ResizeSlot(body.offer_id, 5, 16, body.until)
    assert desk.participant.size == large
    assert refusal(desk.resized(question)) == ("withdrawn", "the bank refuses the amendment: by its buyer")


def test_the_bank_posts_what_was_signed_and_nothing_else(desk: Desk, refused: Any) -> None:
    body = desk.agreed()
    assert desk.bank(c.ChangePosted("a1", 1, "t", -body.refund)) == []  # it was not asked yet
    (question,) = desk.registry.tick(NOTICE)
    desk.resized(question, now=NOTICE)
    assert desk.bank(c.ChangePosted("a1", 2, "t", -body.refund)) == []  # another one
    with refused:
        desk.bank(c.ChangePosted("a1", 1, "t", -body.refund + 1))
    posted = c.ChangePosted("a1", 1, "t", -body.refund)
    saved, settled, told = desk.bank(posted, NOTICE + 5)
    signed = Signed(body, ("alice",), "text")
    assert saved == fx.SaveAgreement("a1.amendment-1", signed, "seal text")
    assert settled == fx.Persist(ChangeSettled(body.offer_id, posted, SEAL, NOTICE + 5))
    assert isinstance(told, fx.Send)
    assert (told.message.receiver, told.message.performative) == ("alice", Performative.INFORM)
    assert (told.message.content, told.message.in_reply_to) == (c.ChangeDone(signed, posted, SEAL), "a1#1")
    assert (desk.sizes.open, desk.registry.deadline) == ((), None)
    assert desk.participant.size == (8, body.until)
    assert desk.bank(posted) == []


def test_the_bank_is_asked_again(desk: Desk) -> None:
    desk.posting()
    assert desk.registry.deadline == NOTICE + SECOND
    assert desk.registry.tick(NOTICE + SECOND - 1) == []
    (again,) = desk.registry.tick(NOTICE + SECOND)
    assert isinstance(again, fx.Send)
    assert again.message.receiver == "bank"
    assert desk.registry.deadline == NOTICE + 3 * SECOND
    desk.registry.clock_set(HOUR)
    assert desk.registry.deadline == NOTICE + 3 * SECOND + HOUR


def test_a_slot_that_is_given_back_is_changed_no_more(desk: Desk) -> None:
    desk.agreed()
    desk.participant.state = ParticipantState.ENDING
    (question,) = desk.registry.tick(NOTICE)
    assert refusal(desk.resized(question)) == ("not_active", "the slot is being released")
    code, detail = refusal(desk.propose(desk.amendment(number=2), SECOND))
    assert (code, detail) == ("not_active", "the slot is ending, expected sold")


def test_a_forgotten_slot_is_as_if_nothing_had_been(desk: Desk) -> None:
    body = desk.settled()
    desk.sizes.forget(body.offer_id)
    assert desk.sizes.given_back(body.offer_id) == 0
    desk.agreed(desk.amendment())
    desk.sizes.forget(body.offer_id)
    assert (desk.sizes.open, desk.registry.deadline) == ((), None)


# -- after a restart -------------------------------------------------------------------------------------------------


def _restarted(desk: Desk, *records: SoldChangeRecord, now: int = 0) -> list[fx.Effect]:
    desk.sizes = desk.new()
    for record in records:
        desk.sizes.replay(record, desk.participant)
    return desk.sizes.recover(desk.participant.offer.offer_id, now)


def test_a_machine_that_refuses_after_a_restart_is_asked_for_the_old_size(desk: Desk) -> None:
    """It may have been asked before the restart, and that may be done yet."""
    body = desk.amendment()
    _restarted(desk, ChangeReceived(body.offer_id, Signed(body, ("alice",), "text"), 0))
    (question,) = desk.registry.tick(NOTICE)
    (question,) = desk.resized(question, Refusal(1, RefusalCode.SLOT_TAKEN, detail="not now"), now=NOTICE)
    assert question == ResizeSlot(body.offer_id, 5, 16, body.until)
    assert refusal(desk.resized(question, now=NOTICE)) == ("slot_taken", "not now")


def test_a_machine_in_doubt_about_the_old_size_is_given_a_pause(desk: Desk) -> None:
    desk.agreed()
    desk.participant.state = ParticipantState.ENDING
    (question,) = desk.registry.tick(NOTICE)
    desk.resized(question, MachineInDoubt("too slow"), now=NOTICE)
    assert desk.registry.deadline == NOTICE + SECOND
    assert desk.registry.tick(NOTICE + SECOND) == [question]


def test_the_bank_is_asked_again_after_a_restart(desk: Desk) -> None:
    body = desk.amendment()
    signed = Signed(body, ("alice",), "text")
    taken = CapacityTaken(body.offer_id, 1, NOTICE)
    (to_bank,) = _restarted(desk, ChangeReceived(body.offer_id, signed, 0), taken, now=MINUTE)
    assert isinstance(to_bank, fx.Send)
    assert (to_bank.message.receiver, to_bank.message.content) == ("bank", signed)
    assert desk.registry.deadline == MINUTE + SECOND


def test_what_has_ended_stays_so_after_a_restart(desk: Desk) -> None:
    first = desk.amendment()
    signed, posted = Signed(first, ("alice",), "text"), c.ChangePosted("a1", 1, "t", -first.refund)
    second = desk.amendment(cores=4, number=2, previous=state_digest(first))
    records = (
        ChangeReceived(first.offer_id, signed, 0),
        CapacityTaken(first.offer_id, 1, NOTICE),
        ChangeSettled(first.offer_id, posted, SEAL, NOTICE),
        ChangeReceived(first.offer_id, Signed(second, ("alice",), "text"), MINUTE),
        ChangeDropped(first.offer_id, 2, "expired", "late", 2 * MINUTE),
    )
    assert _restarted(desk, *records, now=HOUR) == []
    assert desk.participant.size == (8, first.until)
    assert desk.sizes.given_back(first.offer_id) == first.refund
    assert desk.sizes.open == ()
    (again,) = desk.propose(first)
    assert isinstance(again, fx.Send)
    assert again.message.content == c.ChangeDone(signed, posted, SEAL)
    assert refusal(desk.propose(second)) == ("expired", "late")
