"""What a buyer makes of cores that its seller takes back: whom it believes, what it keeps, and when it asks the bank.

The slot has 16 cores from the first hour to the fifth and cost 16 * 4 * 60 = 3 840 credits. Its seller may leave 8,
with a minute's notice and 10 credits/core-hour on top. The cores go at the third hour: half of the cores for half of
the time, 960 credits back and 8 * 2 * 10 = 160 on top.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ramp.errors import RemoteProtocolError
from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.agreement import Agreement, Amendment, Reclamation, Signed
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.offer import Offer
from ramp.model.request import ReclaimTerms, RequestUnit, TotalCores
from ramp.model.seal import Role, Seal
from ramp.model.sizes.amended import first_state
from ramp.model.sizes.reclaimed import reclaimed
from ramp.protocol.amending.asking import AmendmentOutcome
from ramp.protocol.amending.memory import AmendmentConcluded, AmendmentProposed
from ramp.protocol.effects import Effect, Persist, Report, SaveAgreement, Send
from ramp.protocol.progress import ReclamationAdvanced
from ramp.protocol.reclaiming.memory import NoticeHeard, ReclamationConcluded
from ramp.protocol.timing import Pace, Timing
from ramp.protocol.user.resizing.changes import Changes
from simulation.market.counted_ids import CountedIds
from simulation.market.virtual_notary import VirtualNotary

GOES = 3 * HOUR
TOLD = GOES - 65 * SECOND
"""The notice, and 5 s for the way."""

OFFER = Offer("o1", "r1", 1, "res", 60, HOUR, 5 * HOUR, 16, 0.0, HOUR)
UNIT = RequestUnit(1, 70, 5 * HOUR, TotalCores(16), HOUR, reclaim=ReclaimTerms(8, MINUTE, 10))
AGREEMENT = Agreement("a1", "r1", 1, "alice", "res", "bank", UNIT, OFFER, "R1", OFFER.cost, 0, "order-1", MINUTE)
BOUGHT = {"a1": AGREEMENT, "a2": replace(AGREEMENT, agreement_id="a2")}
BODY = Reclamation(
    "a1", 1, first_state(AGREEMENT).digest, "o1", "alice", "res", "bank", 8, 5 * HOUR, GOES, 960_00, 160_00, TOLD,
    GOES + 2 * MINUTE,
)  # fmt: skip
ASKS = BODY.valid_until + Timing().cancellation_limit
"""When it should be over, and its answer be here."""


def signed(body: Reclamation = BODY) -> Signed:
    return Signed(body, ("res",), "text")


def noticed(body: Reclamation = BODY) -> c.ReclamationNoticed:
    return c.ReclamationNoticed("a1", body.number, TOLD, signed(body))


def paid(body: Reclamation = BODY) -> c.ReclamationPosted:
    return c.ReclamationPosted("a1", body.number, f"rebate:a1#r{body.number}", body.refund, body.compensation)


def to_seller(content: Any) -> Seal:
    message = Message(Performative.AGREE, "bank", "res", "r1", content)
    seal = VirtualNotary("bank", Role.BANK).seal(message, TOLD).seal
    assert seal is not None
    return seal


def taken(body: Reclamation = BODY) -> c.Reclaimed:
    return c.Reclaimed(signed(body), paid(body), to_seller(paid(body)))


class Buyer:
    """Alice, who has bought two slots of which cores may be taken back."""

    def __init__(self) -> None:
        pace, ids = Pace(Timing()), CountedIds("alice")
        self.changes = Changes(BOUGHT, lambda _: "active", pace, ids)
        self.taken = self.changes.taken

    def hears(self, content: Any, now: int = TOLD, sender: str = "bank", role: Role = Role.BANK) -> list[Effect]:
        message = Message(Performative.INFORM, sender, "alice", "r1", content)
        return self.changes.handle(VirtualNotary(sender, role).seal(message, now), content, now)

    def hears_seller(self, content: Any, now: int = TOLD) -> list[Effect]:
        return self.hears(content, now, "res", Role.RESOURCE)

    def recovers(self, *records: Any) -> list[Effect]:
        return self.changes.recover(records, TOLD)


@pytest.fixture
def buyer() -> Buyer:
    return Buyer()


def messages(effects: list[Effect]) -> list[tuple[str, Any]]:
    return [(each.message.receiver, each.message.content) for each in effects if isinstance(each, Send)]


def asked(agreement_id: str, number: int) -> tuple[str, Any]:
    """That the bank is asked what has changed a slot since it was bought."""
    return "bank", c.ReclamationQuery(agreement_id, number, first_state(BOUGHT[agreement_id]).digest)


def heard(number: int = 1, *, posted: bool = False) -> list[tuple[str, Any]]:
    return [("res", c.ReclamationHeard("a1", number, posted))]


# -- what is announced -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["bank", "seller"])
def test_what_is_to_come_is_kept_and_the_seller_hears_that_it_is_known(buyer: Buyer, by: str) -> None:
    if by == "bank":
        effects = buyer.hears(noticed())
    else:
        effects = buyer.hears_seller(c.ReclamationAnnounced(noticed(), to_seller(noticed())))
    assert effects[0] == Persist(NoticeHeard(signed(), TOLD))
    assert messages(effects) == heard()
    assert effects[2:] == [Report(ReclamationAdvanced(BODY, "noticed"))]
    assert (buyer.taken.to_come("a1"), buyer.taken.to_come("a2")) == (BODY, None)
    assert buyer.changes.state("a1") == first_state(AGREEMENT)
    assert messages(buyer.hears(noticed(), TOLD + 1)) == heard()  # once more, and nothing else


WRONG: dict[str, dict[str, Any]] = {
    "below the minimum": {"cores": 7},
    "on a shorter notice": {"effective_at": TOLD + MINUTE - 1},
    "less back": {"refund": 960_00 - 1},
    "less on top": {"compensation": 160_00 - 1},
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_not_by_right_is_not_believed(buyer: Buyer, case: str) -> None:
    with pytest.raises(RemoteProtocolError, match="is not by right"):
        buyer.hears(noticed(replace(BODY, **WRONG[case])))
    assert buyer.taken.open == ()


def test_what_changes_a_state_that_is_not_known_yet_is_waited_for(buyer: Buyer) -> None:
    """It is said again; the word on what came before may be on its way, and the bank is asked for it."""
    later = replace(BODY, number=2, previous="another")
    assert messages(buyer.hears(noticed(later))) == [asked("a1", 1)]
    assert buyer.hears_seller(taken(later)) == []
    assert (buyer.taken.open, buyer.changes.reclaimed("a1")) == ((), ())


def test_of_two_the_later_one_comes(buyer: Buyer) -> None:
    """The bank voids the one before by it."""
    second = replace(BODY, number=2)
    for body in (BODY, second):
        buyer.hears(noticed(body))
    assert buyer.taken.to_come("a1") == second


def test_what_changes_a_state_that_is_no_more_does_not_come(buyer: Buyer) -> None:
    buyer.hears(noticed())
    larger = Amendment(
        "a1", 1, first_state(AGREEMENT).digest, "o1", "alice", "res", "bank", 12, 5 * HOUR, 2 * HOUR, 720_00, HOUR,
        3 * HOUR,
    )  # fmt: skip
    done = AmendmentOutcome("a1", 1, True, 12, 5 * HOUR, 2 * HOUR, 720_00)
    buyer.recovers(AmendmentProposed(larger, HOUR), AmendmentConcluded(done, to_seller(paid()), HOUR))
    assert (buyer.taken.to_come("a1"), buyer.taken.open) == (None, (("a1", 1),))


# -- how it ends -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("known", [True, False])
def test_the_sellers_proof_ends_it(buyer: Buyer, known: bool) -> None:
    """Also where the notice was never heard."""
    if known:
        buyer.hears(noticed())
    effects = buyer.hears_seller(taken(), GOES)
    assert effects[0] == SaveAgreement("a1.reclamation-1", signed(), to_seller(paid()).text)
    assert effects[1] == Persist(ReclamationConcluded("a1", 1, signed(), "", "", GOES))
    assert effects[2] == Report(ReclamationAdvanced(BODY, "posted"))
    assert messages(effects) == heard(posted=True)
    assert (buyer.taken.open, buyer.taken.deadline, buyer.taken.to_come("a1")) == ((), None, None)
    assert buyer.changes.reclaimed("a1") == (BODY,)
    assert buyer.changes.state("a1") == reclaimed(first_state(AGREEMENT), BODY)
    assert messages(buyer.hears_seller(taken(), GOES + 1)) == heard(posted=True)  # nothing is written twice
    assert buyer.hears(paid(), GOES + 1) == []


def test_the_bank_ends_it_where_the_document_is_known(buyer: Buyer) -> None:
    buyer.hears(noticed())
    effects = buyer.hears(paid(), GOES)
    assert Persist(ReclamationConcluded("a1", 1, signed(), "", "", GOES)) in effects
    assert messages(effects) == []


@pytest.mark.parametrize(
    "wrong", [{"agreement_id": "a2"}, {"number": 2}, {"refund": 960_00 - 1}, {"compensation": 160_00 - 1}]
)
def test_what_was_posted_is_what_the_seller_has_signed(buyer: Buyer, wrong: dict[str, Any]) -> None:
    buyer.hears(noticed())
    posted = replace(paid(), **wrong)
    with pytest.raises(RemoteProtocolError, match=r"another (reclamation, or another amount|agreement)"):
        buyer.hears_seller(c.Reclaimed(signed(), posted, to_seller(posted)))
    assert buyer.changes.reclaimed("a1") == ()


@pytest.mark.parametrize("by", ["bank", "seller"])
def test_what_comes_to_nothing_is_told(buyer: Buyer, by: str) -> None:
    void = c.ReclamationRefused("a1", 1, "expired", "too late")
    hears = buyer.hears if by == "bank" else buyer.hears_seller
    assert hears(void) == []  # of what was never announced
    buyer.hears(noticed())
    assert hears(c.ReclamationRefused("a1", 1, "still_open", "nothing is decided of it yet")) == []
    ended, told = hears(void, GOES)
    assert ended == Persist(ReclamationConcluded("a1", 1, None, "expired", "too late", GOES))
    assert told == Report(ReclamationAdvanced(BODY, "dropped", "expired", "too late"))
    assert (buyer.taken.to_come("a1"), buyer.changes.reclaimed("a1"), hears(void, GOES)) == (None, (), [])


@pytest.mark.parametrize(
    ("content", "sender", "role"),
    [
        (noticed(), "res", Role.RESOURCE),
        (noticed(), "bank", Role.RESOURCE),
        (paid(), "res", Role.RESOURCE),
        (c.ReclamationAnnounced(noticed(), to_seller(noticed())), "bank", Role.BANK),
        (taken(), "bank", Role.BANK),
        (taken(), "mallory", Role.RESOURCE),
        (c.ReclamationRefused("a1", 1, "expired"), "mallory", Role.BANK),
        (c.ReclamationRefused("a1", 1, "expired"), "res", Role.BANK),
    ],
    ids=lambda it: it if isinstance(it, str) else type(it).__name__,
)
def test_nobody_speaks_for_another(buyer: Buyer, content: Any, sender: str, role: Role) -> None:
    buyer.hears(noticed())
    with pytest.raises(RemoteProtocolError):
        buyer.hears(content, GOES, sender, role)
    assert buyer.taken.open == (("a1", 1),)


FORGED: dict[str, dict[str, Any]] = {
    "of another": {"signer": "mallory"},
    "in another role": {"role": Role.RESOURCE},
    "to another": {"receiver": "alice"},
}


@pytest.mark.parametrize("case", FORGED)
def test_the_banks_word_that_is_passed_on_was_said_to_the_seller(buyer: Buyer, case: str) -> None:
    for word in (
        c.ReclamationAnnounced(noticed(), replace(to_seller(noticed()), **FORGED[case])),
        replace(taken(), posted_seal=replace(to_seller(paid()), **FORGED[case])),
    ):
        with pytest.raises(RemoteProtocolError, match="not the bank's word to the seller"):
            buyer.hears_seller(word)


@pytest.mark.parametrize(
    "document",
    [
        replace(signed(), signers=("alice",)),
        replace(signed(), signers=("res", "alice")),
        replace(signed(), body=AGREEMENT),
        signed(replace(BODY, agreement_id="a2")),
        signed(replace(BODY, user="mallory")),
        signed(replace(BODY, resource="other")),
    ],
)
def test_the_document_is_the_sellers_own_of_this_agreement(buyer: Buyer, document: Signed) -> None:
    for word in (replace(noticed(), reclamation=document), replace(taken(), reclamation=document)):
        with pytest.raises(RemoteProtocolError):
            buyer.hears(word) if isinstance(word, c.ReclamationNoticed) else buyer.hears_seller(word)
    assert buyer.taken.open == ()


def test_of_what_was_never_bought_nothing_is_done(buyer: Buyer) -> None:
    assert buyer.hears(replace(noticed(), agreement_id="a9")) == []
    assert buyer.hears(c.ReclamationRefused("a9", 1, "expired"), sender="mallory") == []


# -- when the bank is asked ------------------------------------------------------------------------------------------


def test_the_bank_is_asked_when_it_should_be_over_and_nobody_has_said_so(buyer: Buyer) -> None:
    buyer.hears(noticed())
    assert buyer.taken.deadline == buyer.changes.deadline == ASKS
    assert buyer.changes.tick(ASKS - 1) == []
    (asked,) = buyer.changes.tick(ASKS)
    question = c.ReclamationQuery("a1", 1)
    assert asked == Send(Message(Performative.REQUEST, "alice", "bank", "r1", question, reply_with="a1#r1"))
    assert buyer.taken.deadline == ASKS + SECOND
    assert buyer.changes.tick(ASKS + SECOND - 1) == []
    assert buyer.changes.tick(ASKS + SECOND) == [asked]
    assert buyer.taken.deadline == ASKS + 3 * SECOND  # twice the pause


def test_waiting_is_counted_by_the_clock_that_is_set(buyer: Buyer) -> None:
    buyer.hears(noticed())
    buyer.changes.clock_set(HOUR)
    assert buyer.taken.deadline == ASKS + HOUR
    buyer.changes.tick(ASKS + HOUR)
    buyer.changes.clock_set(-HOUR)
    assert buyer.taken.deadline == ASKS + SECOND


def test_each_is_asked_about_when_it_is_due(buyer: Buyer) -> None:
    """Whichever was heard first."""
    state = first_state(replace(AGREEMENT, agreement_id="a2"))
    other = replace(BODY, agreement_id="a2", previous=state.digest, valid_until=GOES + MINUTE)
    buyer.hears(noticed())
    buyer.hears(c.ReclamationNoticed("a2", 1, TOLD, signed(other)))
    assert messages(buyer.changes.tick(ASKS - MINUTE)) == [("bank", c.ReclamationQuery("a2", 1))]
    about = [("bank", c.ReclamationQuery(each, 1)) for each in ("a1", "a2")]
    assert messages(buyer.changes.tick(ASKS)) == about


def test_a_bank_that_does_not_understand_what_it_is_asked_is_asked_no_more(buyer: Buyer) -> None:
    """What it says of another message, or somebody else says, stops nothing."""
    (question,) = buyer.hears(noticed(replace(BODY, number=2, previous="another")))
    assert messages([question]) == [asked("a1", 1)]
    assert isinstance(question, Send)

    def not_understood(sender: str, about: str) -> list[Effect]:
        word = c.NotUnderstood("?")
        message = Message(Performative.NOT_UNDERSTOOD, sender, "alice", "r1", word, in_reply_to=about)
        return buyer.changes.not_understood(message, TOLD + 1)

    assert not_understood("bank", "") == not_understood("res", question.message.reply_with) == []
    assert buyer.changes.tick(TOLD + SECOND) == [question]
    assert not_understood("bank", question.message.reply_with) == []
    assert buyer.changes.deadline is None


# -- restarts and archives -------------------------------------------------------------------------------------------


def test_what_was_heard_is_known_after_a_restart(buyer: Buyer) -> None:
    lost = NoticeHeard(signed(replace(BODY, agreement_id="a9")), TOLD)
    buyer.recovers(NoticeHeard(signed(), TOLD), lost)
    assert (buyer.taken.to_come("a1"), buyer.taken.open) == (BODY, (("a1", 1),))


def test_after_a_restart_the_bank_is_asked_what_was_missed(buyer: Buyer) -> None:
    assert messages(buyer.recovers(NoticeHeard(signed(), TOLD))) == [asked("a1", 2), asked("a2", 1)]


@pytest.mark.parametrize("known", [True, False])
def test_what_was_taken_stays_so_after_a_restart(buyer: Buyer, known: bool) -> None:
    notice = [NoticeHeard(signed(), TOLD)] if known else []
    lost = ReclamationConcluded("a9", 1, signed(replace(BODY, agreement_id="a9")), "", "", GOES)
    buyer.recovers(*notice, lost, ReclamationConcluded("a1", 1, signed(), "", "", GOES))
    assert (buyer.taken.open, buyer.changes.reclaimed("a1")) == ((), (BODY,))
    assert buyer.changes.state("a1") == reclaimed(first_state(AGREEMENT), BODY)
    assert messages(buyer.hears_seller(taken(), GOES + 1)) == heard(posted=True)
    assert messages(buyer.hears(noticed(), GOES + 1)) == heard(posted=True)


def test_what_came_to_nothing_stays_so_after_a_restart(buyer: Buyer) -> None:
    buyer.recovers(NoticeHeard(signed(), TOLD), ReclamationConcluded("a1", 1, None, "expired", "too late", GOES))
    assert (buyer.taken.open, buyer.changes.reclaimed("a1")) == ((), ())
    assert messages(buyer.hears(noticed(), GOES)) == heard()


def test_what_is_archived_is_forgotten(buyer: Buyer) -> None:
    buyer.hears(noticed())
    buyer.changes.forget(["a2"])
    assert buyer.taken.open == (("a1", 1),)
    buyer.changes.forget(["a1"])
    assert (buyer.taken.open, buyer.taken.deadline) == ((), None)
    assert messages(buyer.hears(noticed())) == heard()
    buyer.hears_seller(taken(), GOES)
    buyer.changes.forget(["a1", "a2"])
    assert buyer.changes.reclaimed("a1") == ()
    assert len(buyer.hears_seller(taken(), GOES)) == 4  # as if nothing had been
