"""What a resource does that takes cores of a sold slot back: step by step, and what holds and is told at each.

The slot has 16 cores from the first hour to the second and costs 16 core hours. Its buyer lets 8 go, with a minute's
notice and 30 credits/core-hour on top. It is decided 535 s after the slot's start, so the cores go at 600 s (the
notice, and 5 s for the way): what is taken back then lasts 3 000 s, five sixths of the hour.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.agreement import Amendment, Reclamation, Signed
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import ReclaimTerms
from ramp.model.seal import Role, Seal
from ramp.model.sizes.amended import first_state, state_digest
from ramp.model.sizes.reclaimed import CHANGES_MAX
from ramp.model.slot import Reservation, Slot, StaticTerms
from ramp.protocol import effects as fx
from ramp.protocol.amending.asking import ResizeSlot, SlotResized
from ramp.protocol.amending.memory import AmendmentReceived
from ramp.protocol.progress import ReclamationAdvanced
from ramp.protocol.reclaiming.asking import LookAtQueue, Precedence
from ramp.protocol.reclaiming.memory import (
    BuyerHeard,
    CoresTaken,
    ReclamationDrawn,
    ReclamationDropped,
    ReclamationOnRecord,
    ReclamationSettled,
)
from ramp.protocol.resource.quotas import Quotas, Unpaid
from ramp.protocol.resource.reclaiming.desk import PAUSE, Reclaimable, ReclaimDesk
from ramp.protocol.resource.reclaiming.waiting import Waiting, least_needed
from ramp.protocol.resource.seller import PriceRange, Seller
from ramp.protocol.tables import ParticipantState
from ramp.protocol.timing import Pace, Timing
from simulation.market.counted_ids import CountedIds

NOW = HOUR + 535 * SECOND
TAKES = HOUR + 600 * SECOND
ENDS = TAKES + 2 * MINUTE
RIGHT = ReclaimTerms(8, MINUTE, 30)
SEAL = Seal("bank", Role.BANK, "res", "r1", NOW, "seal text")
NO = Refusal(1, RefusalCode.SLOT_TAKEN, detail="node 3 is down")


class Desk:
    """The desk of a resource that has sold one slot to alice; everything that happens is said by the test."""

    def __init__(self, resource: Any) -> None:
        self.participant = resource.party.participants[resource.sell().offer_id]
        self.grant(RIGHT)
        self.offer_id = self.participant.offer.offer_id
        self.cost = self.participant.agreed.cost
        self.ended: list[tuple[str, int, int]] = []
        self.room: list[list[fx.Effect] | None] = []
        self.refused: list[bool] = []
        self.restart()

    def grant(self, right: ReclaimTerms | None) -> None:
        """Have it stand in the agreement."""
        signed = self.participant.agreement
        request = replace(signed.body.request, reclaim=right)
        self.participant.agreement = replace(signed, body=replace(signed.body, request=request))

    def restart(self) -> None:
        terms, prices = StaticTerms(64), PriceRange(60, 30)
        seller = Seller("res", terms=terms, prices=prices, source="live", ids=CountedIds("res"), timing=Timing())

        def make_room(offer_id: str, cores: int, now: int, *, refused: bool) -> list[fx.Effect] | None:
            self.ended.append((offer_id, cores, now))
            self.refused.append(refused)
            return self.room.pop(0) if self.room else []

        self.desk = ReclaimDesk(
            "res",
            Pace(Timing()),
            lambda *_: "",
            seller=seller,
            unpaid=Unpaid(Quotas(), 64),
            make_room=make_room,
        )

    def body(self, number: int = 1, at: int = NOW, cores: int = 8, **changes: Any) -> Reclamation:
        """As it should be, where five sixths of the hour are left: 8 of 16 cores of it, and 8 x 30 credits on top."""
        state = first_state(self.participant.agreed)
        body = Reclamation(
            "a1", number, state.digest, self.offer_id, "alice", "res", "bank", cores, 2 * HOUR, at + 65 * SECOND,
            self.cost * (16 - cores) * 5 // (16 * 6), (16 - cores) * 30_00 * 5 // 6, at, at + 185 * SECOND,
        )  # fmt: skip
        return replace(body, **changes)

    def orders(self, cores: int | None = None, now: int = NOW) -> Any:
        """What its administrator brings about: the question to the machine."""
        (asked,), problem = self.desk.take_back(self.participant, cores, None, now)
        assert problem == ""
        assert isinstance(asked, ResizeSlot)
        return asked

    def problem(self, cores: int | None = None, now: int = NOW) -> str:
        effects, problem = self.desk.take_back(self.participant, cores, None, now)
        assert effects == []
        return problem

    def machine(self, asked: Any, answer: Any = True, now: int = NOW, **said: Any) -> list[fx.Effect]:
        assert isinstance(asked, ResizeSlot)
        if answer is True:
            slot = Slot(HOUR, asked.until, asked.cores, 0.0)
            answer = Reservation(asked.key, "R", slot, firm=True, held_until=None)
        return self.desk.on_resized(SlotResized(asked.key, asked.step, answer, **said), now)

    def bank(self, content: Any, now: int = NOW) -> list[fx.Effect]:
        return self.desk.on_reclamation(content, SEAL, self.participant, now)

    def hears(self, number: int = 1, now: int = NOW, sender: str = "alice", *, posted: bool = False) -> list[fx.Effect]:
        word = c.ReclamationHeard("a1", number, posted)
        seal = Seal(sender, Role.USER, "res", "r1", now, "text")
        return self.desk.on_heard(
            Message(Performative.INFORM, sender, "res", "r1", word, seal=seal), word, self.participant, now
        )

    def proposes(self, number: int = 1, now: int = NOW, signer: str = "alice", **changes: Any) -> list[fx.Effect]:
        """Alice wants 12 cores only, from 20 s on: 3 045 s are left then."""
        at = now + 20 * SECOND
        state = first_state(self.participant.agreed)
        refund = self.cost * 4 * (2 * HOUR - at) // (16 * HOUR)
        body = Amendment(
            "a1", number, state.digest, self.offer_id, "alice", "res", "bank", 12, 2 * HOUR, at, refund, now,
            at + MINUTE,
        )  # fmt: skip
        signed = Signed(replace(body, **changes), (signer,), "text")
        message = Message(Performative.REQUEST, signer, "res", "r1", signed, reply_with="w")
        return self.desk.on_amendment(message, signed, self.participant, now)

    # -- up to a state

    def drawn(self, number: int = 1, now: int = NOW, cores: int | None = None) -> Reclamation:
        self.machine(self.orders(cores, now), now=now)
        return self.body(number, now, 8 if cores is None else 16 - cores)

    def noticed(self, number: int = 1, now: int = NOW) -> Reclamation:
        body = self.drawn(number, now)
        self.bank(notice(body), now)
        return body

    def posting(self) -> Reclamation:
        body = self.noticed()
        (asked,) = [each for each in self.desk.tick(TAKES) if isinstance(each, ResizeSlot)]
        self.machine(asked, now=TAKES)
        return body

    def posted(self) -> Reclamation:
        body = self.posting()
        self.bank(paid(body), TAKES)
        return body


@pytest.fixture
def seller(resource: Any) -> Desk:
    return Desk(resource)


def notice(body: Reclamation, at: int = NOW) -> c.ReclamationNoticed:
    return c.ReclamationNoticed("a1", body.number, at, Signed(body, ("res",), "text"))


def paid(body: Reclamation) -> c.ReclamationPosted:
    return c.ReclamationPosted("a1", body.number, f"rebate:a1#r{body.number}", body.refund, body.compensation)


def sent(effects: Sequence[fx.Effect]) -> list[Message]:
    return [each.message for each in effects if isinstance(each, fx.Send)]


def kinds(effects: Sequence[fx.Effect]) -> list[str]:
    """What is done, in its order: records and contents by their names."""
    named = {fx.Persist: "record", fx.Send: "message", fx.Report: "progress", fx.SaveAgreement: ""}
    return [
        type(
            getattr(each, named[type(each)]).content
            if isinstance(each, fx.Send)
            else getattr(each, named.get(type(each), ""), each)
        ).__name__
        for each in effects
    ]


def dropped(effects: Sequence[fx.Effect]) -> tuple[str, str]:
    """Code and sentence of what has come to nothing, as it is reported."""
    (said,) = [each.progress for each in effects if isinstance(each, fx.Report)]
    assert isinstance(said, ReclamationAdvanced)
    assert said.stage == "dropped"
    return said.code, said.detail


# Step by step


def test_the_machine_is_asked_first_whether_it_can_and_nothing_is_on_record(seller: Desk) -> None:
    asked = seller.orders()
    assert (asked.key, asked.cores, asked.until) == (seller.offer_id, 16, 2 * HOUR)
    assert seller.desk.being_taken == 8
    assert seller.participant.size == (16, 2 * HOUR)


def test_then_it_is_on_record_and_the_bank_is_asked_to_note_it(seller: Desk) -> None:
    effects = seller.machine(seller.orders())
    assert effects[0] == fx.Persist(ReclamationDrawn(seller.offer_id, seller.body(), NOW, 3))
    (message,) = sent(effects)
    assert (message.performative, message.receiver, message.conversation_id) == (Performative.REQUEST, "bank", "r1")
    brought = c.ReclamationNotice(Signed(seller.body()), seller.participant.agreement, ())
    assert (message.content, message.reply_with) == (brought, "a1#r1")
    assert seller.desk.deadline == NOW + SECOND  # the pause after which it asks again


def test_then_its_buyer_is_told_and_the_slot_stays_as_it_was(seller: Desk) -> None:
    body = seller.drawn()
    effects = seller.bank(notice(body))
    assert effects[0] == fx.Persist(ReclamationOnRecord(seller.offer_id, notice(body), SEAL, NOW))
    assert effects[1] == fx.Report(ReclamationAdvanced(body, "noticed"))
    (message,) = sent(effects)
    assert (message.performative, message.receiver, message.reply_with) == (Performative.INFORM, "alice", "a1#r1")
    assert message.content == c.ReclamationAnnounced(notice(body), SEAL)
    assert seller.participant.size == (16, 2 * HOUR)
    assert seller.desk.awaited == ()


def test_when_the_notice_is_over_the_cores_are_taken_and_then_jobs_end(seller: Desk) -> None:
    seller.noticed()
    seller.hears()
    assert seller.desk.deadline == TAKES
    assert seller.desk.tick(TAKES - 1) == []
    (asked,) = seller.desk.tick(TAKES)
    assert seller.ended == []
    assert isinstance(asked, ResizeSlot)
    assert (asked.cores, asked.until) == (8, 2 * HOUR)
    assert seller.participant.size == (8, 2 * HOUR)
    assert seller.desk.deadline == ENDS
    effects = seller.machine(asked, now=TAKES)
    assert seller.ended == [(seller.offer_id, 8, TAKES)]
    assert effects[0] == fx.Persist(CoresTaken(seller.offer_id, 1, TAKES))
    (message,) = sent(effects)
    assert (message.receiver, message.content) == ("bank", c.ReclamationTaken("a1", 1))
    assert seller.desk.given_back(seller.offer_id) == 0


def test_another_job_ends_only_when_the_machine_refuses_once_those_before_have_ended(seller: Desk) -> None:
    """A job that has ended since the machine was asked may be what it refuses for; it is asked again a second later."""
    seller.noticed()
    seller.hears()
    (asked,) = seller.desk.tick(TAKES)
    seller.room = [[], None, []]  # one ends, it has ended, another ends
    for now in (TAKES, TAKES + SECOND, TAKES + 2 * SECOND):
        seller.machine(asked, Refusal(1, RefusalCode.JOB_IN_THE_WAY), now=now)
        assert seller.desk.deadline == now + SECOND
        (asked,) = seller.desk.tick(now + SECOND)
    assert seller.refused == [True, False, True]


def test_once_it_is_posted_its_buyer_has_the_documents(seller: Desk) -> None:
    body = seller.posting()
    effects = seller.bank(paid(body), TAKES)
    document = Signed(body)
    assert effects[0] == fx.SaveAgreement("a1.reclamation-1", document, "seal text")
    assert effects[1] == fx.Persist(ReclamationSettled(seller.offer_id, paid(body), SEAL, TAKES))
    assert effects[2] == fx.Report(ReclamationAdvanced(body, "posted"))
    (message,) = sent(effects)
    assert (message.receiver, message.reply_with) == ("alice", "a1#r1+")
    assert message.content == c.Reclaimed(document, paid(body), SEAL)
    assert seller.desk.given_back(seller.offer_id) == body.refund == seller.cost * 5 // 12
    assert (seller.participant.size, seller.desk.open, seller.desk.being_taken) == ((8, 2 * HOUR), (), 0)
    assert seller.desk.awaited == ("alice",)
    seller.hears(now=TAKES)
    assert seller.desk.awaited == ("alice",)  # it has heard that they would go
    seller.hears(now=TAKES, posted=True)
    assert seller.desk.awaited == ()


def test_the_next_one_brings_what_was_posted_and_is_of_that_state(seller: Desk) -> None:
    first = seller.posted()
    seller.grant(replace(RIGHT, least=4))
    later = TAKES + 935 * SECOND  # at 1 600 s there are 2 000 s left
    (message,) = sent(seller.machine(seller.orders(now=later), now=later))
    second = seller.body(
        2, later, 4, previous=state_digest(first), refund=seller.cost * 4 * 2000 // (16 * 3600),
        compensation=4 * 30_00 * 2000 // 3600 + 1,
    )  # fmt: skip
    assert isinstance(message.content, c.ReclamationNotice)
    assert message.content.changes == (Signed(first),)
    body = message.content.reclamation.body
    assert isinstance(body, Reclamation)
    assert (body.number, body.previous, body.cores) == (2, second.previous, 4)
    assert abs(body.refund - second.refund) <= 1
    assert abs(body.compensation - second.compensation) <= 1


# What its buyer hears, and says


def test_a_buyer_is_told_again_until_it_has_heard(seller: Desk) -> None:
    seller.noticed()
    first = NOW + SECOND
    (message,) = sent(seller.desk.tick(first))
    assert isinstance(message.content, c.ReclamationAnnounced)
    assert seller.desk.tick(first + SECOND) == []
    assert len(sent(seller.desk.tick(first + 2 * SECOND))) == 1  # twice as long
    seller.hears(number=2)
    assert len(sent(seller.desk.tick(first + 6 * SECOND))) == 1
    seller.hears()
    assert seller.desk.tick(TAKES - 1) == []


def test_that_a_buyer_has_heard_is_on_record_where_the_reclamation_is(seller: Desk) -> None:
    """Who guesses a number says so too early: a journal has no word of what it does not know of."""
    asked = seller.orders()
    assert seller.hears() == []
    seller.machine(asked)
    assert seller.hears() == []  # it is known already
    seller.restart()
    seller.noticed()
    assert seller.hears() == [fx.Persist(BuyerHeard(seller.offer_id, 1, NOW))]
    assert seller.hears() == []


def test_only_its_buyer_has_heard(seller: Desk, refused: Any) -> None:
    seller.noticed()
    with refused:
        seller.hears(sender="mallory")
    assert len(sent(seller.desk.tick(NOW + SECOND))) == 1


@pytest.mark.parametrize(
    ("sender", "about", "again"), [("alice", "a1#r1", 0), ("alice", "a1#r2", 1), ("mallory", "a1#r1", 1)]
)
def test_who_does_not_understand_is_told_no_more(seller: Desk, sender: str, about: str, again: int) -> None:
    seller.noticed()
    word = c.NotUnderstood("what is that?")
    seller.desk.answered(Message(Performative.NOT_UNDERSTOOD, sender, "res", "r1", word, in_reply_to=about))
    assert len(sent(seller.desk.tick(NOW + SECOND))) == again


def test_nobody_is_told_of_a_slot_that_is_over(seller: Desk) -> None:
    seller.posted()
    assert len(sent(seller.desk.tick(2 * HOUR - 1))) == 1
    assert seller.desk.tick(2 * HOUR) == []
    assert seller.desk.awaited == ()


def test_of_a_slot_that_is_forgotten_no_more_is_said(seller: Desk) -> None:
    seller.posted()
    seller.desk.forget("another")
    assert seller.desk.awaited == ("alice",)
    seller.desk.forget(seller.offer_id)
    assert (seller.desk.awaited, seller.desk.tick(TAKES + MINUTE)) == ((), [])


def test_of_a_slot_that_is_given_back_no_more_is_said(seller: Desk) -> None:
    seller.posted()
    seller.desk.kept(seller.participant)
    assert seller.desk.awaited == ("alice",)
    seller.participant.state = ParticipantState.RELEASED
    seller.desk.kept(seller.participant)
    assert (seller.desk.awaited, seller.desk.tick(TAKES + MINUTE)) == ((), [])


def test_after_the_first_minutes_it_is_said_once_a_minute(seller: Desk) -> None:
    seller.posted()
    told = [at for at in range(TAKES, 2 * HOUR, SECOND) if sent(seller.desk.tick(at))]
    pauses = [(after - before) // SECOND for before, after in pairwise(told)]
    assert pauses[:6] == [2, 4, 8, 16, 32, 60]
    assert set(pauses[5:]) == {60}


def test_one_that_was_not_heard_is_told_until_it_is_whatever_follows(seller: Desk) -> None:
    """Without it a buyer cannot make anything of the next one, which changes what it has made."""
    first = seller.posted()
    seller.grant(replace(RIGHT, least=4))
    later = TAKES + 935 * SECOND
    (message,) = sent(seller.machine(seller.orders(now=later), now=later))
    assert isinstance(message.content, c.ReclamationNotice)
    second = message.content.reclamation.body
    assert isinstance(second, Reclamation)
    seller.bank(notice(second, later), later)

    def told(at: int) -> list[str]:
        return sorted(str(each.reply_with) for each in sent(seller.desk.tick(at)) if each.receiver == "alice")

    assert told(later + 60 * SECOND) == ["a1#r1+", "a1#r2"]
    (asked,) = [each for each in seller.desk.tick(second.effective_at) if isinstance(each, ResizeSlot)]
    seller.machine(asked, now=second.effective_at)
    seller.bank(paid(second), second.effective_at)
    assert told(second.effective_at + 60 * SECOND) == ["a1#r1+", "a1#r2+"]
    records = [
        ReclamationDrawn(seller.offer_id, first, NOW, 3),
        ReclamationSettled(seller.offer_id, paid(first), SEAL, TAKES),
        ReclamationDrawn(seller.offer_id, second, later, 3),
        ReclamationSettled(seller.offer_id, paid(second), SEAL, second.effective_at),
    ]
    seller.restart()
    for record in records:
        seller.desk.replay(record, seller.participant)
    again = sent(seller.desk.recover(seller.offer_id, second.effective_at))
    assert [each.reply_with for each in again] == ["a1#r1+", "a1#r2+"]
    seller.hears(2, second.effective_at, posted=True)
    assert told(second.effective_at + 120 * SECOND) == ["a1#r1+"]
    seller.hears(1, second.effective_at, posted=True)
    assert seller.desk.awaited == ()


# Of two that cross


def test_a_proposal_of_who_has_not_heard_goes_first(seller: Desk) -> None:
    seller.noticed()
    given_up, asked = seller.proposes()[:2], seller.proposes()
    assert kinds(given_up) == ["ReclamationDropped", "ReclamationRefused"]
    assert given_up[0] == fx.Persist(
        ReclamationDropped(
            seller.offer_id, 1, "gave_way", "the buyer's own proposal has crossed it, and goes first", NOW
        )
    )
    (message,) = sent(given_up)
    assert (message.performative, message.receiver, message.in_reply_to) == (Performative.REFUSE, "alice", "a1#r1")
    assert isinstance(message.content, c.ReclamationRefused)
    assert message.content.code == "gave_way"
    assert asked == []  # the same proposal again: its question is with the machine


def test_a_proposal_of_who_has_heard_comes_too_late(seller: Desk) -> None:
    seller.noticed()
    seller.hears()
    (message,) = sent(seller.proposes())
    assert isinstance(message.content, c.AmendmentRefused)
    assert message.content.code == "another_open"
    assert seller.desk.being_taken == 8


def test_who_has_heard_of_another_has_not_heard_of_this_one(seller: Desk) -> None:
    seller.noticed()
    seller.hears(number=2)
    assert "ReclamationDropped" in kinds(seller.proposes()[:1])


def test_what_would_be_refused_anyhow_ends_nothing(seller: Desk) -> None:
    seller.noticed()
    (message,) = sent(seller.proposes(refund=10**9))
    assert isinstance(message.content, c.AmendmentRefused)
    assert seller.desk.being_taken == 8


def test_what_somebody_else_proposes_ends_nothing(seller: Desk, refused: Any) -> None:
    seller.noticed()
    with refused:
        seller.proposes(signer="mallory")
    assert seller.desk.being_taken == 8


def test_a_proposal_that_was_answered_before_ends_nothing(seller: Desk) -> None:
    (refused,) = sent(seller.machine(seller.proposes()[0], NO))
    assert isinstance(refused.content, c.AmendmentRefused)
    seller.noticed()
    assert [each.content for each in sent(seller.proposes())] == [refused.content]
    assert seller.desk.being_taken == 8


def test_once_its_time_has_come_nothing_gives_way(seller: Desk) -> None:
    seller.noticed()
    seller.desk.tick(TAKES)
    (message,) = sent(seller.proposes(now=TAKES))
    assert isinstance(message.content, c.AmendmentRefused)
    assert message.content.code == "another_open"


def test_only_one_in_a_row_gives_way(seller: Desk) -> None:
    """Also after a restart; and once one is posted the next may give way again."""
    seller.noticed()
    seller.machine(seller.proposes()[-1], NO)
    seller.noticed(2)
    (message,) = sent(seller.proposes(2))
    assert isinstance(message.content, c.AmendmentRefused)
    assert message.content.code == "another_open"


def test_one_that_nobody_was_told_of_gives_way_like_any_other(seller: Desk) -> None:
    """The machine was being asked for it; only one in a row gives way then too."""
    seller.orders()
    seller.machine(seller.proposes()[-1], NO)
    seller.noticed()
    (message,) = sent(seller.proposes(2))
    assert isinstance(message.content, c.AmendmentRefused)
    assert message.content.code == "another_open"


def test_one_that_the_machine_refuses_has_not_given_way(seller: Desk) -> None:
    seller.machine(seller.orders(), NO)
    seller.noticed()
    assert "ReclamationDropped" in kinds(seller.proposes())


def test_what_gave_way_is_remembered(seller: Desk) -> None:
    first = seller.body()
    for record in (
        ReclamationDrawn(seller.offer_id, first, NOW, 3),
        ReclamationDropped(seller.offer_id, 1, "gave_way", "", NOW),
    ):
        seller.desk.replay(record, seller.participant)
    assert seller.desk.recover(seller.offer_id, NOW) == []
    seller.noticed(2)
    assert "ReclamationDropped" not in kinds(seller.proposes())


def test_after_one_that_is_posted_the_next_gives_way_again(seller: Desk) -> None:
    seller.grant(replace(RIGHT, least=4))
    first = seller.body()
    for record in (
        ReclamationDrawn(seller.offer_id, first, NOW, 3),
        ReclamationDropped(seller.offer_id, 1, "gave_way", "", NOW),
        ReclamationDrawn(seller.offer_id, replace(first, number=2), NOW, 3),
        ReclamationOnRecord(seller.offer_id, notice(replace(first, number=2)), SEAL, NOW),
        CoresTaken(seller.offer_id, 2, TAKES),
        ReclamationSettled(seller.offer_id, paid(replace(first, number=2)), SEAL, TAKES),
    ):
        seller.desk.replay(record, seller.participant)
    state = state_digest(replace(first, number=2))
    seller.orders(now=TAKES)
    at = TAKES + 20 * SECOND
    refund = seller.cost * 2 * (2 * HOUR - at) // (16 * HOUR)
    effects = seller.proposes(now=TAKES, previous=state, cores=6, refund=refund)
    assert dropped(effects)[0] == "gave_way"
    assert any(isinstance(each, ResizeSlot) for each in effects)


# What comes to nothing


def test_a_machine_that_cannot_takes_nothing_and_nobody_is_told(seller: Desk) -> None:
    for step, answer, said, code, detail in (
        (3, NO, {}, "slot_taken", NO.detail),
        (6, NO, {"able": False}, "cannot_resize", NO.detail),
        (9, None, {"doubt": "no answer"}, "machine_unavailable", "no answer"),
    ):
        asked = seller.orders()
        assert asked.step == step  # the machine may have refused the number of the one before
        effects = seller.machine(asked, answer, **said)
        assert kinds(effects) == ["ReclamationAdvanced"]
        assert dropped(effects) == (code, detail)
        assert (seller.desk.open, seller.desk.deadline) == ((), None)


def overtaken(nearest: str) -> Refusal:
    return Refusal(1, RefusalCode.SLOT_TAKEN, nearest, "it was changed by a later step since")


def test_a_machine_that_has_done_later_steps_than_are_on_record_is_asked_for_the_one_that_it_names(
    seller: Desk,
) -> None:
    (again,) = seller.machine(seller.orders(), overtaken("3001 step"))
    assert again == ResizeSlot(seller.offer_id, 3001, 16, 2 * HOUR)
    (drawn, _) = seller.machine(again)
    assert isinstance(drawn, fx.Persist)
    assert drawn.record.step == 3001
    assert seller.desk.steps == {seller.offer_id: 3003}


def test_it_is_asked_once_more_at_a_time_and_believed_no_number_that_cannot_be(seller: Desk) -> None:
    (again,) = seller.machine(seller.orders(), overtaken("7 step"))
    assert again.step == 7
    assert dropped(seller.machine(again, overtaken("20 step")))[0] == "slot_taken"
    asked = seller.orders()
    assert asked.step == 23  # later than what the machine has named, too
    (again,) = seller.machine(asked, overtaken("100 step"))
    assert dropped(seller.machine(again, overtaken("1000000001 step")))[0] == "slot_taken"
    assert seller.orders().step == 103


def test_the_last_step_that_can_be_is_asked_for(seller: Desk) -> None:
    (again,) = seller.machine(seller.orders(), overtaken("1000000000 step"))
    assert isinstance(again, ResizeSlot)
    assert again.step == 10**9


@pytest.mark.parametrize(
    "nearest", ["", "1000000001 step", "0 step", "-7 step", "7", "7 steps", "7.5 step", "2 step", "3 step"]
)
def test_one_that_names_no_later_step_is_asked_for_later_ones_each_time(seller: Desk, nearest: str) -> None:
    for step in (3, 6, 9):
        asked = seller.orders()
        assert asked.step == step
        assert dropped(seller.machine(asked, overtaken(nearest)))[0] == "slot_taken"


def test_what_the_bank_does_not_note_is_over(seller: Desk) -> None:
    seller.drawn()
    effects = seller.bank(c.ReclamationRefused("a1", 1, "short_notice", "too late"))
    assert dropped(effects) == ("short_notice", "the bank does not note it: too late")
    assert kinds(effects)[0] == "ReclamationDropped"
    assert seller.participant.size == (16, 2 * HOUR)


def test_what_the_bank_has_not_noted_in_time_is_over(seller: Desk) -> None:
    seller.drawn()
    assert sent(seller.desk.tick(TAKES - 1))
    effects = seller.desk.tick(TAKES)
    assert dropped(effects) == ("no_answer", "bank has not put it on record in time")


def test_a_slot_is_left_alone_for_a_while_after_one_has_come_to_nothing(seller: Desk) -> None:
    """From its end on, and not from when it was begun; however the clock is set meanwhile."""
    asked = seller.orders()
    ended = NOW + 20 * SECOND
    seller.machine(asked, NO, now=ended)
    one = [seller.participant]
    assert PAUSE == MINUTE
    assert seller.desk.reclaimable(one, ended + MINUTE - 1) == []
    assert len(seller.desk.reclaimable(one, ended + MINUTE)) == 1
    seller.desk.clock_set(10 * SECOND)
    assert seller.desk.reclaimable(one, ended + 70 * SECOND - 1) == []
    assert len(seller.desk.reclaimable(one, ended + 70 * SECOND)) == 1
    seller.desk.forget(seller.offer_id)
    assert len(seller.desk.reclaimable(one, ended)) == 1


def test_after_one_on_record_has_come_to_nothing_too(seller: Desk) -> None:
    seller.drawn()
    seller.bank(c.ReclamationRefused("a1", 1, "short_notice", "too late"), NOW + SECOND)
    assert seller.desk.reclaimable([seller.participant], NOW + SECOND + MINUTE - 1) == []
    assert len(seller.desk.reclaimable([seller.participant], NOW + SECOND + MINUTE)) == 1


def test_a_slot_is_left_alone_the_longer_the_oftener_one_has_come_to_nothing(seller: Desk) -> None:
    now = NOW
    for number, minutes in enumerate((1, 2, 4, 8, 15), start=1):
        seller.drawn(number, now)
        seller.bank(c.ReclamationRefused("a1", number, "insufficient_funds", "it has 0.00"), now)
        assert seller.desk.reclaimable([seller.participant], now + minutes * MINUTE - 1) == []
        now += minutes * MINUTE
        assert len(seller.desk.reclaimable([seller.participant], now)) == 1


def test_one_that_is_posted_begins_that_anew(seller: Desk) -> None:
    seller.grant(replace(RIGHT, least=4))
    for number in (1, 2):
        seller.drawn(number)
        seller.bank(c.ReclamationRefused("a1", number, "insufficient_funds", "it has 0.00"), NOW)
    body = seller.body(3)
    seller.machine(seller.orders(8))
    seller.bank(notice(body))
    (asked,) = [each for each in seller.desk.tick(TAKES) if isinstance(each, ResizeSlot)]
    seller.machine(asked, now=TAKES)
    seller.bank(paid(body), TAKES)
    assert seller.participant.size == (8, 2 * HOUR)
    seller.machine(seller.orders(2, TAKES), NO, now=TAKES)
    assert seller.desk.reclaimable([seller.participant], TAKES + MINUTE - 1) == []
    assert len(seller.desk.reclaimable([seller.participant], TAKES + MINUTE)) == 1


def test_what_is_not_posted_is_given_back_and_told(seller: Desk) -> None:
    seller.posting()
    (asked,) = seller.bank(c.ReclamationRefused("a1", 1, "other_state", "it has changed"), TAKES)
    assert isinstance(asked, ResizeSlot)
    assert asked.cores == 16
    effects = seller.machine(asked, now=TAKES)
    assert dropped(effects) == ("other_state", "the bank does not post it: it has changed")
    assert seller.participant.size == (16, 2 * HOUR)
    assert seller.desk.stranded() == []


def test_a_slot_that_cannot_have_its_size_again_is_lost(seller: Desk) -> None:
    seller.posting()
    (asked,) = seller.bank(c.ReclamationRefused("a1", 1, "other_state", "it has changed"), TAKES)
    seller.machine(asked, NO, now=TAKES)
    lost = [(seller.offer_id, "the slot cannot have its old size again: node 3 is down")]
    assert seller.desk.stranded() == lost
    assert seller.desk.stranded() == []


def test_too_early_by_the_banks_clock_is_asked_again(seller: Desk) -> None:
    seller.posting()
    assert seller.bank(c.ReclamationRefused("a1", 1, "too_early", "in a second"), TAKES) == []
    (message,) = sent(each for each in seller.desk.tick(TAKES + SECOND) if "Taken" in kinds([each])[0])
    assert message.content == c.ReclamationTaken("a1", 1)


# What may be taken


@pytest.mark.parametrize(
    ("right", "now", "spare"),
    [
        (RIGHT, HOUR - 1, None),  # it has not begun
        (RIGHT, HOUR, 8),
        (RIGHT, 2 * HOUR - 185 * SECOND - 1, 8),  # notice, 5 s and 2 min to post it
        (RIGHT, 2 * HOUR - 185 * SECOND, None),
        (replace(RIGHT, least=15), NOW, 1),
        (replace(RIGHT, least=16), NOW, None),
        (replace(RIGHT, compensation=31), NOW, None),  # more than its least price, which is what it pays by itself
        (None, NOW, None),
    ],
)
def test_of_which_slots_cores_can_be_taken(
    seller: Desk, right: ReclaimTerms | None, now: int, spare: int | None
) -> None:
    seller.grant(right)
    found = seller.desk.reclaimable([seller.participant], now)
    expected = [] if spare is None else [Reclaimable(seller.offer_id, HOUR, spare)]
    assert found == expected


def test_one_of_which_nothing_can_be_taken_hides_no_other(resource: Any) -> None:
    """Of several the one that started last comes first."""
    seller = Desk(resource)

    def sold(number: int, right: ReclaimTerms | None = RIGHT, moved: int = 0) -> Any:
        participant = resource.party.participants[resource.sell(f"r{number}", f"a{number}").offer_id]
        signed = participant.agreement
        request = replace(signed.body.request, reclaim=right)
        participant.agreement = replace(signed, body=replace(signed.body, request=request))
        participant.offer = replace(participant.offer, start=HOUR + moved * SECOND)
        return participant

    early, late, released, refused = (sold(2, moved=-2), sold(3, moved=-1), sold(4), sold(5))
    released.state = ParticipantState.RELEASED
    ((asked,), _) = seller.desk.take_back(refused, None, None, NOW)
    seller.machine(asked, NO)
    nothing = [sold(6, None), sold(7, replace(RIGHT, compensation=31)), sold(8, moved=536), released, refused]
    nothing.append(sold(9, replace(RIGHT, notice=HOUR)))  # longer than what is left
    found = seller.desk.reclaimable([*nothing, early, late, seller.participant], NOW)
    assert [each.offer_id for each in found] == [each.offer.offer_id for each in (seller.participant, late, early)]


def test_not_of_one_that_is_changed_already(seller: Desk) -> None:
    seller.orders()
    assert seller.desk.reclaimable([seller.participant], NOW) == []


@pytest.mark.parametrize(
    ("before", "cores", "code"),
    [
        (lambda seller: seller.grant(None), None, "no_right: "),
        (lambda seller: seller.orders(), None, "another_open: reclamation 1 of it is open"),
        (lambda seller: seller.proposes(7), None, "another_open: amendment 7 of it is open"),
        (lambda seller: setattr(seller.participant, "state", ParticipantState.RELEASED), None, "the slot is released"),
        (lambda seller: None, 9, "below_minimum: "),
        (lambda seller: None, 0, "not_smaller: "),
    ],
)
def test_why_nothing_is_taken(seller: Desk, before: Any, cores: int | None, code: str) -> None:
    before(seller)
    assert seller.problem(cores).startswith(code)


@pytest.mark.parametrize(("changes", "fits"), [(CHANGES_MAX, True), (CHANGES_MAX + 1, False)])
def test_no_more_than_a_bank_can_be_brought(seller: Desk, changes: int, fits: bool) -> None:
    kept = seller.desk._slot(seller.participant)
    kept.changes = [Signed(seller.body())] * changes
    assert bool(seller.desk.reclaimable([seller.participant], NOW)) == fits
    effects, problem = seller.desk.take_back(seller.participant, None, None, NOW)
    assert (bool(effects), problem.startswith("too_many_changes")) == (fits, not fits)


def test_what_could_not_be_taken_is_not_counted_on(seller: Desk) -> None:
    """The numbers are used up."""
    assert seller.desk.reclaimable([seller.participant], NOW) != []
    word = c.ReclamationRefused("a1", 1000, "no_answer", "the bank has not put it on record in time")
    kept = seller.desk._slot(seller.participant)
    kept.taken = {1000: word}
    assert seller.problem().startswith("old_number")
    assert seller.desk.reclaimable([seller.participant], NOW) == []
    kept.taken = {999: word}
    assert seller.desk.reclaimable([seller.participant], NOW) != []


# After a restart


def test_it_goes_on_from_its_record(seller: Desk) -> None:
    """What was asked before is asked again: the bank to note, alice to hear, the bank to post; and what it has told."""
    body = seller.body()
    records = [
        ReclamationDrawn(seller.offer_id, body, NOW, 3),
        ReclamationOnRecord(seller.offer_id, notice(body), SEAL, NOW),
        CoresTaken(seller.offer_id, 1, TAKES),
        ReclamationSettled(seller.offer_id, paid(body), SEAL, TAKES),
    ]
    expected: list[tuple[str, list[Any]]] = [
        ("bank", [c.ReclamationNotice]),
        ("alice", [c.ReclamationAnnounced]),
        ("bank", [c.ReclamationTaken, c.ReclamationAnnounced]),
        ("alice", [c.Reclaimed]),
    ]
    for count, (receiver, said) in enumerate(expected, 1):
        seller.restart()
        for record in records[:count]:
            seller.desk.replay(record, seller.participant)
        messages = sent(seller.desk.recover(seller.offer_id, TAKES))
        assert [type(each.content) for each in messages] == said
        assert messages[0].receiver == receiver
    assert seller.participant.size == (8, 2 * HOUR)
    assert seller.desk.given_back(seller.offer_id) == body.refund


def test_its_steps_at_the_machine_go_on(seller: Desk) -> None:
    body = seller.body()
    for record in (
        ReclamationDrawn(seller.offer_id, body, NOW, 30),
        ReclamationOnRecord(seller.offer_id, notice(body), SEAL, NOW),
    ):
        seller.desk.replay(record, seller.participant)
    seller.desk.recover(seller.offer_id, NOW)
    (asked,) = [each for each in seller.desk.tick(TAKES) if isinstance(each, ResizeSlot)]
    assert asked == ResizeSlot(seller.offer_id, 31, 8, 2 * HOUR)


@pytest.mark.parametrize(("now", "told"), [(2 * HOUR - 1, 1), (2 * HOUR, 0)])
def test_of_a_slot_that_is_over_nothing_is_said(seller: Desk, now: int, told: int) -> None:
    body = seller.body()
    for record in (
        ReclamationDrawn(seller.offer_id, body, NOW, 3),
        ReclamationOnRecord(seller.offer_id, notice(body), SEAL, NOW),
        CoresTaken(seller.offer_id, 1, TAKES),
        ReclamationSettled(seller.offer_id, paid(body), SEAL, TAKES),
    ):
        seller.desk.replay(record, seller.participant)
    assert len(seller.desk.recover(seller.offer_id, now)) == told


def test_an_amendment_that_was_going_on_goes_on_beside_what_is_told(seller: Desk) -> None:
    body = seller.body()
    for record in (
        ReclamationDrawn(seller.offer_id, body, NOW, 3),
        ReclamationOnRecord(seller.offer_id, notice(body), SEAL, NOW),
        CoresTaken(seller.offer_id, 1, TAKES),
        ReclamationSettled(seller.offer_id, paid(body), SEAL, TAKES),
    ):
        seller.desk.replay(record, seller.participant)
    larger = Amendment(
        "a1", 1, state_digest(body), seller.offer_id, "alice", "res", "bank", 12, 2 * HOUR, TAKES + MINUTE, 0, TAKES,
        TAKES + 2 * MINUTE, 1_000, 60, "o-2",
    )  # fmt: skip
    seller.desk.replay(
        AmendmentReceived(seller.offer_id, Signed(larger, ("alice",), "text"), TAKES, 3), seller.participant
    )
    asked, told = seller.desk.recover(seller.offer_id, TAKES)
    assert isinstance(asked, ResizeSlot)
    assert asked.cores == 12
    assert kinds([told]) == ["Reclaimed"]


# When the machine is asked for its queue


def test_the_queue_is_looked_at_while_something_runs_that_could_be_taken(seller: Desk) -> None:
    waiting = Waiting(Precedence.WAITING)
    assert waiting.deadline is None
    waiting.kept(seller.participant)
    assert waiting.tick(0) == []
    assert waiting.deadline == HOUR
    assert waiting.tick(HOUR - 1) == []
    assert waiting.tick(HOUR) == [LookAtQueue()]
    assert waiting.deadline == HOUR + 15 * SECOND
    assert waiting.tick(HOUR + 15 * SECOND - 1) == []
    assert waiting.tick(2 * HOUR) == []
    assert waiting.deadline is None


def test_who_lets_what_runs_go_on_never_looks(seller: Desk) -> None:
    waiting = Waiting(Precedence.RUNNING)
    waiting.kept(seller.participant)
    assert waiting.deadline is None


# How much, and of whom


def reclaimable(name: str, spare: int) -> Reclaimable:
    return Reclaimable(name, 0, spare)


@pytest.mark.parametrize(
    ("missing", "taken"),
    [
        (0, []),
        (1, [("a", 1)]),
        (4, [("a", 4)]),
        (5, [("a", 4), ("b", 1)]),
        (7, [("a", 4), ("b", 3)]),
        (8, []),
    ],
)
def test_no_more_is_taken_than_is_lacking_and_nothing_where_all_is_not_enough(
    missing: int, taken: list[tuple[str, int]]
) -> None:
    assert least_needed([reclaimable("a", 4), reclaimable("b", 3)], missing) == taken
