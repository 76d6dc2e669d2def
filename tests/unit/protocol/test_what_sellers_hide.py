"""What a buyer makes of cores that its seller has taken back and hides: it asks its bank, and believes what is signed.

The slot: 16 cores from the first hour to the second. The seller leaves 12 of them, then 8; the bank pays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from ramp.errors import RemoteProtocolError
from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.agreement import Agreement, Amendment, Reclamation, Signed
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.offer import Offer
from ramp.model.request import ReclaimTerms, RequestUnit, TotalCores
from ramp.model.seal import Role
from ramp.model.sizes.amended import first_state, refund_owed, state_digest
from ramp.model.sizes.reclaimed import compensation_owed, reclaimed
from ramp.protocol.amending.asking import AgreementResized
from ramp.protocol.effects import Effect, Persist, Report, Send
from ramp.protocol.progress import ReclamationAdvanced
from ramp.protocol.reclaiming.memory import ReclamationConcluded
from ramp.protocol.records import Record
from ramp.protocol.timing import Pace, Timing
from ramp.protocol.user.resizing.changes import Changes
from simulation.market.counted_ids import CountedIds
from simulation.market.virtual_notary import VirtualNotary

NOW = HOUR
RIGHT = ReclaimTerms(4, MINUTE, 30)
UNIT = RequestUnit(1, 70, 3 * HOUR, TotalCores(16), HOUR, HOUR, reclaim=RIGHT)
OFFER = Offer("o-1", "r-1", 1, "res1", 60, HOUR, 2 * HOUR, 16, 0.0, HOUR)
AGREEMENT = Agreement("a-1", "r-1", 1, "alice", "res1", "bank", UNIT, OFFER, "res-1", OFFER.cost, 0, "order-1", MINUTE)
ROLES = {"bank": Role.BANK, "res1": Role.RESOURCE, "alice": Role.USER}


class Buyer:
    """Alice, who has bought of res1.

    Attributes:
        journal: what is on record.
        sent: what has left, not looked at yet.
        told: that reclamations are posted, by number.
    """

    def __init__(self, journal: Sequence[Record] = (), *, right: bool = True) -> None:
        request = UNIT if right else replace(UNIT, reclaim=None)
        bought = {"a-1": replace(AGREEMENT, request=request)}
        self.changes = Changes(bought, lambda _: "active", Pace(Timing()), CountedIds("alice"))
        self.journal = list(journal)
        self.sent: list[Message] = []
        self.told: list[int] = []
        self._take(self.changes.recover(self.journal, NOW))

    def hear(self, sender: str, content: Any, reply_to: str = "", now: int = NOW) -> None:
        message = Message(Performative.INFORM, sender, "alice", "r-1", content, in_reply_to=reply_to)
        sealed = VirtualNotary(sender, ROLES[sender]).seal(message, now)
        self._take(self.changes.handle(sealed, content, now))

    def tick(self) -> int:
        """Let the next deadline come."""
        now = self.changes.deadline
        assert now is not None
        self._take(self.changes.tick(now))
        return now

    def asked(self) -> list[tuple[int, str, str]]:
        """What the bank was asked since: the number, the state, and what an answer quotes."""
        sent, self.sent = self.sent, []
        queries = [(each, each.content) for each in sent if isinstance(each.content, c.ReclamationQuery)]
        assert {each.receiver for each, _ in queries} <= {"bank"}
        return [(content.number, content.state, each.reply_with) for each, content in queries]

    @property
    def cores(self) -> int:
        return self.changes.state("a-1").cores

    def _take(self, effects: list[Effect]) -> None:
        self.journal += [each.record for each in effects if isinstance(each, Persist)]
        self.sent += [each.message for each in effects if isinstance(each, Send)]
        for each in effects:
            if isinstance(each, Report) and isinstance(each.progress, ReclamationAdvanced):
                self.told += [each.progress.reclamation.number] if each.progress.stage == "posted" else []


def taken(number: int, cores: int, *before: Reclamation, at: int = NOW + 10 * MINUTE) -> Reclamation:
    """A reclamation by right of what the ones before have left."""
    state = first_state(AGREEMENT)
    for each in before:
        state = reclaimed(state, each)
    return Reclamation(
        "a-1", number, state.digest, "o-1", "alice", "res1", "bank", cores, 2 * HOUR, at,
        refund_owed(AGREEMENT, state, cores, 2 * HOUR, at), compensation_owed(RIGHT, state, cores, at),
        at - 2 * MINUTE, at + MINUTE,
    )  # fmt: skip


FIRST = taken(3, 12)
SECOND_ONE = taken(5, 8, FIRST, at=NOW + 20 * MINUTE)


def noticed(body: Reclamation) -> c.ReclamationNoticed:
    return c.ReclamationNoticed("a-1", body.number, NOW, Signed(body, ("res1",), "text"))


def posted(body: Reclamation) -> c.ReclamationPosted:
    return c.ReclamationPosted("a-1", body.number, "rebate", body.refund, body.compensation)


def none_left(number: int) -> c.ReclamationRefused:
    return c.ReclamationRefused("a-1", number, "not_noticed")


def heard(buyer: Buyer) -> list[tuple[int, bool]]:
    """What the seller was told that alice knows."""
    contents = [each.content for each in buyer.sent if each.receiver == "res1"]
    return [(each.number, each.posted) for each in contents if isinstance(each, c.ReclamationHeard)]


@pytest.fixture
def alice() -> Buyer:
    """She has asked what she has missed, as after every start, and has missed nothing."""
    buyer = Buyer()
    ((number, state, reference),) = buyer.asked()
    assert (number, state) == (1, state_digest(AGREEMENT))
    buyer.hear("bank", none_left(1), reference)
    assert (buyer.changes.deadline, buyer.changes.taken.awaited) == (None, ())
    return buyer


def test_the_bank_s_word_without_the_document_makes_it_ask_until_nothing_has_followed(alice: Buyer) -> None:
    alice.hear("bank", posted(SECOND_ONE))  # the second, and it knows neither
    ((_, state, reference),) = alice.asked()
    assert (alice.cores, state, alice.told) == (16, FIRST.previous, [])
    alice.hear("bank", posted(FIRST), reference)
    assert alice.cores == 16  # by the posting alone nobody knows the size
    alice.hear("bank", noticed(FIRST), reference)
    assert (alice.cores, heard(alice)) == (12, [(3, True)])
    ((number, state, reference),) = alice.asked()
    assert (number, state) == (4, state_digest(FIRST))
    alice.hear("bank", noticed(SECOND_ONE), reference)  # its posting is known: that came first of all
    assert (alice.cores, alice.told) == (8, [3, 5])
    ((_, state, reference),) = alice.asked()
    assert state == state_digest(SECOND_ONE)
    alice.hear("bank", none_left(6), reference)
    assert (alice.asked(), alice.changes.deadline) == ([], None)
    assert Buyer(alice.journal).cores == 8


def test_answers_that_come_in_another_order_are_taken_all_the_same(alice: Buyer) -> None:
    alice.hear("bank", posted(FIRST))
    ((_, _, reference),) = alice.asked()
    alice.hear("bank", noticed(FIRST), reference)
    alice.hear("bank", posted(FIRST), reference)
    assert (alice.cores, alice.told, len(alice.asked())) == (12, [3], 1)


def test_what_is_open_is_told_as_to_come_and_asked_for_once_more_when_it_is_posted() -> None:
    buyer = Buyer()
    ((_, _, reference),) = buyer.asked()
    buyer.hear("bank", noticed(FIRST), reference)
    assert (buyer.cores, heard(buyer), buyer.changes.taken.awaited) == (16, [(3, False)], ())
    assert buyer.changes.taken.to_come("a-1") == FIRST
    buyer.asked()
    buyer.hear("bank", posted(FIRST))
    assert (buyer.cores, [state for _, state, _ in buyer.asked()]) == (12, [state_digest(FIRST)])


def test_a_silent_bank_is_asked_again_at_most_once_a_minute() -> None:
    buyer = Buyer()
    times = [NOW, *(buyer.tick() for _ in range(12))]
    assert len(buyer.asked()) == 13
    pauses = [after - before for before, after in pairwise(times)]
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (SECOND, MINUTE)
    buyer.changes.clock_set(HOUR)
    assert buyer.changes.deadline == times[-1] + MINUTE + HOUR


def test_a_word_that_comes_while_it_asks_does_not_make_it_ask_twice(alice: Buyer) -> None:
    for _ in range(3):
        alice.hear("bank", posted(FIRST))
    assert len(alice.asked()) == 1


def test_its_own_change_that_comes_to_nothing_makes_it_ask(alice: Buyer) -> None:
    alice._take(alice.changes.resize(AgreementResized("a-1", cores=14), NOW))
    alice.hear("res1", c.AmendmentRefused("a-1", 1, "other_state", "another state"), "a-1#1")
    assert alice.asked() == []  # not before it is known how that has ended
    alice.hear("bank", c.AmendmentRefused("a-1", 1, "withdrawn", "its buyer has withdrawn it"), "a-1#1")
    ((number, state, _),) = alice.asked()
    assert (number, state) == (1, FIRST.previous)


def test_its_own_change_that_holds_makes_it_ask_for_what_was_posted_after_it(alice: Buyer) -> None:
    """A reclamation of the smaller slot overtakes the news that the slot is smaller."""
    alice._take(alice.changes.resize(AgreementResized("a-1", cores=14), NOW))
    (proposed,) = [each.content.body for each in alice.sent if isinstance(each.content, Signed)]
    assert isinstance(proposed, Amendment)
    of_smaller = replace(FIRST, previous=state_digest(proposed))
    alice.hear("bank", posted(of_smaller))
    ((_, state, reference),) = alice.asked()
    assert state == state_digest(AGREEMENT)
    alice.hear("bank", none_left(1), reference)
    word = c.AmendmentPosted("a-1", 1, "rebate", proposed.refund)
    seal = VirtualNotary("bank", Role.BANK).seal(Message(Performative.AGREE, "bank", "res1", "r-1", word), NOW).seal
    assert seal is not None
    alice.hear("res1", c.Amended(Signed(proposed, ("alice", "res1"), "text"), word, seal), "a-1#1")
    assert (alice.cores, [state for _, state, _ in alice.asked()]) == (14, [of_smaller.previous])


def test_nothing_is_asked_where_no_right_is_granted() -> None:
    buyer = Buyer(right=False)
    assert buyer.asked() == []
    buyer.hear("bank", posted(FIRST))
    assert (buyer.asked(), buyer.changes.deadline) == ([], None)


def test_a_bank_that_does_not_understand_it_is_asked_no_more() -> None:
    buyer = Buyer()
    ((_, _, reference),) = buyer.asked()

    def not_understood(sender: str) -> None:
        answer = Message(
            Performative.NOT_UNDERSTOOD, sender, "alice", "r-1", c.NotUnderstood("?"), in_reply_to=reference
        )
        assert buyer.changes.not_understood(answer, NOW) == []

    not_understood("res1")
    assert len(buyer.changes.taken.awaited) == 1
    not_understood("bank")
    assert len(buyer.changes.taken.awaited) == 0


@pytest.mark.parametrize(
    "lie",
    [
        replace(noticed(FIRST), reclamation=Signed(FIRST, ("bank",), "text")),
        replace(noticed(FIRST), reclamation=Signed(FIRST, ("res1", "bank"), "text")),
        noticed(replace(FIRST, cores=3)),
        noticed(replace(FIRST, refund=FIRST.refund - 1)),
        noticed(replace(FIRST, agreement_id="a-2")),
    ],
    ids=["signed by the bank", "signed by another too", "too few are left", "too little back", "another agreement"],
)
def test_a_bank_that_lies_is_not_believed_nor_asked_without_end(alice: Buyer, lie: c.ReclamationNoticed) -> None:
    alice.hear("bank", posted(FIRST))
    ((_, _, reference),) = alice.asked()
    with pytest.raises(RemoteProtocolError):
        alice.hear("bank", lie, reference)
    assert (alice.cores, alice.asked(), alice.told) == (16, [], [])


def test_a_document_of_another_state_than_asked_for_is_not_asked_for_at_once_again(alice: Buyer) -> None:
    alice.hear("bank", posted(FIRST))
    ((_, _, reference),) = alice.asked()
    alice.hear("bank", noticed(SECOND_ONE), reference)
    assert (alice.cores, alice.asked()) == (16, [])


def test_what_is_forgotten_is_asked_for_no_more(alice: Buyer) -> None:
    alice.hear("bank", posted(FIRST))
    alice.changes.forget(["a-1"])
    assert (alice.changes.deadline, alice.changes.taken.awaited) == (None, ())
    assert alice.changes.taken.own_change_ended("a-1", True, 5) == []


def test_that_it_knows_is_on_record(alice: Buyer) -> None:
    alice.hear("bank", posted(FIRST))
    ((_, _, reference),) = alice.asked()
    alice.hear("bank", noticed(FIRST), reference)
    (concluded,) = [each for each in alice.journal if isinstance(each, ReclamationConcluded)]
    assert (concluded.number, concluded.code, concluded.reclamation) == (3, "", noticed(FIRST).reclamation)
