"""What a user makes of amendments of what it has bought: what it proposes, whom it believes, when it gives up.

Which slots she has is said in `changing_buyer`; clocks begin at 0.
"""

from dataclasses import replace
from typing import Any

import pytest

from ramp.errors import RemoteProtocolError
from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.agreement import ContractChange, Signed, end_of
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.offer import RefusalCode
from ramp.model.request import MoldableTerms, RequestUnit, TotalCores
from ramp.model.seal import Role
from ramp.model.sizes.amended import SLOT_CHANGES_MAX, after, first_state, refund_owed, state_digest
from ramp.protocol.effects import Effect, Persist, Report, SaveAgreement, Send, TakeUpAgain
from ramp.protocol.events import AgreementResized
from ramp.protocol.outcome import ChangeOutcome
from ramp.protocol.progress import ChangeEnded
from ramp.protocol.records import ChangeConcluded, ChangeProposed
from ramp.protocol.user.changing import history
from ramp.protocol.user.changing.change import BuyerChange
from tests.agreements import change_of
from tests.unit.protocol.changing_buyer import AGREEMENT, OFFER, UNIT, Buyer
from tests.unit.protocol.conftest import messages, reports, seal_of

NOTICE = 10 * SECOND
WINDOW = 2 * MINUTE
HALF = 192_000
"""Minor units: half of what was paid."""

FIRST = change_of(AGREEMENT, 8, valid_until=NOTICE + WINDOW, amount=-HALF)
BOTH = Signed(FIRST, ("alice", "res1"), "text")
POSTED = c.ChangePosted("a1", 1, "t1", -HALF)
REFERENCE = "a1#1"
TO_SELLER = seal_of(POSTED, "bank", "res1", Role.BANK)
PROOF = c.ChangeDone(BOTH, POSTED, TO_SELLER)


class Shrinking(Buyer):
    def hears_bank(self, content: Any, now: int = 1) -> list[Effect]:
        return self.hears(content, now, "bank", Role.BANK)

    def withdrawn(self) -> list[Effect]:
        """The seller does not agree."""
        self.resize()
        return self.hears(c.ChangeRefused("a1", 1, "another_open", "its word"))


@pytest.fixture
def buyer() -> Shrinking:
    return Shrinking()


def outcome_of(effects: list[Effect]) -> ChangeOutcome:
    (ended,) = reports(effects)
    assert isinstance(ended, ChangeEnded)
    return ended.outcome


# -- what is proposed ------------------------------------------------------------------------------------------------


def test_a_quote_proposes_nothing(buyer: Shrinking) -> None:
    (told,) = buyer.resize(quote_only=True)
    outcome = ChangeOutcome("a1", 0, False, 8, 5 * HOUR, NOTICE, HALF, "quoted", "nothing is proposed")
    assert told == Report(ChangeEnded(outcome))
    assert buyer.changes.open == ()
    persisted = buyer.resize()[0]
    assert isinstance(persisted, Persist)
    assert persisted.record == ChangeProposed(Signed(FIRST), 0)  # the first number is still free


@pytest.mark.parametrize(("standing", "said"), [("cancelled", "a1 is cancelled"), ("settled", "a1 is settled")])
def test_only_what_is_active_can_be_changed(buyer: Shrinking, standing: str, said: str) -> None:
    buyer.standing = standing
    outcome = outcome_of(buyer.resize())
    assert (outcome.agreement_id, outcome.number, outcome.done, outcome.code) == ("a1", 0, False, "not_active")
    assert (outcome.cores, outcome.until, outcome.effective_at) == (0, 0, 0)
    assert said in outcome.detail


def test_what_is_unknown_cannot_be_changed(buyer: Shrinking) -> None:
    outcome = outcome_of(buyer.changes.resize(AgreementResized("a9", 8), 0))
    assert (outcome.agreement_id, outcome.done, outcome.code) == ("a9", False, "not_active")
    assert "a9 is unknown" in outcome.detail


def test_a_change_that_does_not_fit_is_told_with_the_slot_as_it_stands(buyer: Shrinking) -> None:
    outcome = outcome_of(buyer.resize(cores=16))
    assert (outcome.agreement_id, outcome.number, outcome.done) == ("a1", 0, False)
    assert (outcome.cores, outcome.until, outcome.code) == (16, 5 * HOUR, "no_change")
    assert "16 cores" in outcome.detail


@pytest.mark.parametrize(
    ("other", "code"),
    [({"bank": "other"}, "not_together"), ({"offer": replace(OFFER, start_probability=0.9)}, "not_reserved")],
    ids=["one order pays at one bank", "the size of a submitted job is fixed"],
)
def test_what_cannot_be_added_with_another_is_told_of_both(other: dict[str, Any], code: str) -> None:
    changes = Buyer(agreements=(AGREEMENT, replace(AGREEMENT, agreement_id="a2", **other))).changes
    ended = changes.resize(AgreementResized("a1", 24, together=("a2",)), 0)
    told = [each.outcome for each in reports(ended)]
    assert [(each.agreement_id, each.done, each.code) for each in told] == [("a1", False, code), ("a2", False, code)]
    assert (len(ended), changes.open) == (2, ())


MOLDABLE = replace(UNIT, wall_time=4 * HOUR, moldable=MoldableTerms(8, 16, "amdahl:0.1"))


@pytest.mark.parametrize(
    ("unit", "slot", "cores", "price"),
    [
        # the run may cost 16 * 4 * 70 = 4 480 credits, which are 80 for each of the 8 * 7 core hours bought
        (MOLDABLE, {"cores": 8, "end": 8 * HOUR}, 12, 80),
        # 4 of 16 cores asked for four hours at 70 may cost 1 120 credits, 17.5 for each core-hour charged
        (replace(UNIT, cores=TotalCores(4)), {}, 24, 17),
    ],
    ids=["moldable", "more cores than asked"],
)
def test_more_of_a_slot_may_cost_what_a_core_hour_of_it_may(
    unit: RequestUnit, slot: dict[str, int], cores: int, price: int
) -> None:
    offer = replace(OFFER, **slot)
    changes = Buyer(agreements=(replace(AGREEMENT, request=unit, offer=offer),)).changes
    (call,) = messages(changes.resize(AgreementResized("a1", cores), 0))
    assert call.content == c.ChangeCall("a1", 1, cores, offer.end, price)


def test_an_agreement_has_a_thousand_numbers_and_no_more(buyer: Shrinking) -> None:
    def proposed(number: int) -> tuple[ChangeProposed, ChangeConcluded]:
        refused = ChangeOutcome("a1", number, False, 8, 5 * HOUR, NOTICE, 0, "withdrawn")
        return ChangeProposed(Signed(replace(FIRST, number=number)), 0), ChangeConcluded(refused, TO_SELLER, 1)

    buyer.changes.recover(proposed(999), HOUR)
    (call,) = messages(buyer.resize(cores=24))
    assert call.content == c.ChangeCall("a1", 1_000, 24, 5 * HOUR, 70)
    buyer = Shrinking()
    buyer.changes.recover(proposed(1_000), HOUR)
    outcome = outcome_of(buyer.resize(cores=24))
    assert (outcome.done, outcome.code) == (False, "old_number")
    assert buyer.changes.open == ()


# -- whom it believes ------------------------------------------------------------------------------------------------


def _by_kind(effects: list[Effect]) -> list[Effect | None]:
    kinds = (SaveAgreement, Persist, Report, Send)
    assert all(isinstance(each, kinds) for each in effects)
    return [next((each for each in effects if isinstance(each, kind)), None) for kind in kinds]


def test_the_banks_word_after_a_withdrawal_ends_it_and_the_proof_is_asked_for(buyer: Shrinking) -> None:
    (withdrawal,) = messages(buyer.withdrawn())
    wish = c.ChangeWithdrawal("a1", 1)
    assert withdrawal == Message(Performative.REQUEST, "alice", "bank", "r1", wish, reply_with=REFERENCE)
    saved, persisted, told, again = _by_kind(buyer.hears_bank(POSTED, 9))
    outcome = ChangeOutcome("a1", 1, True, 8, 5 * HOUR, NOTICE, HALF)
    assert saved is None
    assert isinstance(persisted, Persist)
    assert isinstance(persisted.record, ChangeConcluded)
    assert (persisted.record.outcome, persisted.record.at) == (outcome, 9)
    assert told == Report(ChangeEnded(outcome))
    assert isinstance(again, Send)
    assert (again.message.receiver, again.message.content) == ("res1", Signed(FIRST))
    assert buyer.hears(PROOF, 10) == [SaveAgreement("a1.amendment-1", BOTH, TO_SELLER.text)]


def test_a_withdrawal_that_the_bank_confirms_tells_why_the_seller_refused(buyer: Shrinking) -> None:
    buyer.withdrawn()
    effects = buyer.hears_bank(c.ChangeRefused("a1", 1, "withdrawn", "by its buyer"))
    outcome = outcome_of(effects)
    assert (outcome.number, outcome.done, outcome.refund) == (1, False, 0)
    assert (outcome.code, outcome.detail) == ("another_open", "its word")
    assert messages(effects) == []
    assert buyer.changes.history.posted("a1") == ()
    assert buyer.changes.history.state("a1") == first_state(AGREEMENT)


def test_the_bank_decides_nothing_before_it_was_asked(buyer: Shrinking) -> None:
    buyer.resize()
    assert buyer.hears_bank(c.ChangeRefused("a1", 1, "expired")) == []
    assert buyer.hears_bank(POSTED) == []
    assert buyer.changes.open == ("a1",)


FORGED: dict[str, c.ChangeDone] = {
    "other terms": replace(PROOF, change=replace(BOTH, body=replace(FIRST, cores=9))),
    "one signature": replace(PROOF, change=replace(BOTH, signers=("alice",))),
    "another signature": replace(PROOF, change=replace(BOTH, signers=("alice", "mallory"))),
    "the seller's own word that it is paid": replace(PROOF, posted_seal=replace(TO_SELLER, signer="res1")),
    "not said as a bank": replace(PROOF, posted_seal=replace(TO_SELLER, role=Role.RESOURCE)),
    "said to another": replace(PROOF, posted_seal=replace(TO_SELLER, receiver="mallory")),
    "posted for another agreement": replace(PROOF, posted=replace(POSTED, agreement_id="a2")),
    "another one posted": replace(PROOF, posted=replace(POSTED, number=2)),
    "less posted": replace(PROOF, posted=replace(POSTED, amount=1 - HALF)),
}


@pytest.mark.parametrize("forged", FORGED)
@pytest.mark.parametrize("when", ["open", "withdrawn", "over"])
def test_a_proof_that_proves_nothing_is_refused(buyer: Shrinking, forged: str, when: str) -> None:
    if when == "open":
        buyer.resize()
    else:
        buyer.withdrawn()
        if when == "over":
            buyer.hears_bank(POSTED)
    before = buyer.changes.open, buyer.changes.history.posted("a1")
    with pytest.raises(RemoteProtocolError):
        buyer.hears(FORGED[forged])
    assert (buyer.changes.open, buyer.changes.history.posted("a1")) == before


@pytest.mark.parametrize(
    "content",
    [c.ChangeAgreed("a1", 1), c.ChangeRefused("a1", 1, "cannot_resize"), PROOF],
    ids=lambda it: type(it).__name__,
)
def test_nobody_speaks_for_the_seller(buyer: Shrinking, content: Any) -> None:
    buyer.resize()
    for said in ({"sealed": False}, {"sender": "mallory"}, {"role": Role.USER}):
        with pytest.raises(RemoteProtocolError):
            buyer.hears(content, **said)
    assert buyer.changes.open == ("a1",)


def test_a_proof_of_something_else_is_refused(buyer: Shrinking) -> None:
    buyer.resize()
    bought = Signed(AGREEMENT, ("alice", "res1"))
    with pytest.raises(RemoteProtocolError, match="must be of a ContractChange, got Agreement"):
        buyer.hears(replace(PROOF, change=bought))


def test_words_of_what_was_never_proposed_are_ignored(buyer: Shrinking) -> None:
    assert buyer.hears(PROOF) == []
    assert buyer.hears(c.ChangeAgreed("a2", 1)) == []
    buyer.resize()
    assert buyer.hears(c.ChangeAgreed("a1", 2)) == []
    assert buyer.changes.open == ("a1",)


# -- when it gives up ------------------------------------------------------------------------------------------------


def test_only_the_sellers_lack_of_understanding_counts(buyer: Shrinking) -> None:
    assert buyer.is_not_understood() == []
    buyer.resize()
    for sender, reference in (("bank", REFERENCE), ("res1", "a1#2"), ("res1", "a2#1")):
        assert buyer.is_not_understood(sender, reference) == []
    buyer.hears(c.ChangeAgreed("a1", 1))
    assert buyer.is_not_understood() == []  # it has agreed already
    other = Shrinking()
    other.resize()
    assert len(messages(other.is_not_understood())) == 1
    outcome = outcome_of(other.hears_bank(c.ChangeRefused("a1", 1, "withdrawn")))
    assert outcome.code == "not_understood"
    assert "res1 does not understand the amendment" in outcome.detail


def test_a_user_whose_seller_does_not_understand_gives_the_change_up(alice: Any) -> None:
    bought = alice.bought()
    (proposal,) = messages(alice.command(AgreementResized(bought, 8)))
    what = Message(
        Performative.NOT_UNDERSTOOD, "res1", "alice", "r1", c.NotUnderstood("?"), in_reply_to=proposal.reply_with
    )
    (withdrawal,) = messages(alice.take(what, 1))
    assert (withdrawal.receiver, withdrawal.content) == ("bank", c.ChangeWithdrawal(bought, 1))


def test_an_agreement_may_have_the_mark_in_its_name_that_stands_before_a_number() -> None:
    agreement = replace(AGREEMENT, agreement_id="a#1")
    buyer = Buyer(agreements=(agreement,))
    (proposal,) = messages(buyer.changes.resize(AgreementResized("a#1", 8), 0))
    (withdrawal,) = messages(buyer.is_not_understood(reference=proposal.reply_with))
    assert withdrawal.content == c.ChangeWithdrawal("a#1", 1)


def test_what_is_not_known_yet_is_said(buyer: Shrinking) -> None:
    assert buyer.changes.doubts == {}
    buyer.resize()
    said = "amendment 1 of a1 awaits res1; the slot stays unchanged until bank has posted it"
    assert buyer.changes.doubts == {"a1": said}
    buyer.hears(c.ChangeRefused("a1", 1, "too_late"))
    assert buyer.changes.doubts == {"a1": "bank has been asked to void amendment 1 of a1; its answer decides"}


# -- restarts and archives -------------------------------------------------------------------------------------------


def test_what_is_not_concluded_is_taken_up_again(buyer: Shrinking) -> None:
    concluded = ChangeConcluded(ChangeOutcome("a1", 1, True, 8, 5 * HOUR, NOTICE, HALF), TO_SELLER, 1)
    second = replace(FIRST, number=2, previous=state_digest(FIRST), cores=4, amount=-(HALF // 2))
    records = (ChangeProposed(Signed(FIRST), 0), concluded, ChangeProposed(Signed(second), 2))
    (again,) = messages(buyer.changes.recover(records, HOUR))
    assert again.content == Signed(second)
    assert buyer.changes.open == ("a1",)
    assert buyer.changes.history.posted("a1") == (FIRST,)
    assert buyer.registry.deadline == HOUR + SECOND
    assert buyer.changes.recover((ChangeProposed(Signed(replace(FIRST, agreement_id="a9")), 0),), HOUR) == []


def test_the_end_that_amendments_have_given_is_that_of_the_last(buyer: Shrinking) -> None:
    assert buyer.changes.history.new_end("a1") == 0
    first, second = replace(FIRST, until=4 * HOUR), replace(FIRST, number=2, until=3 * HOUR)
    for body in (first, second):
        buyer.changes.recover((ChangeProposed(Signed(body), 0), ChangeConcluded(_done(body), TO_SELLER, 1)), HOUR)
        assert buyer.changes.history.new_end("a1") == body.until


def test_every_change_is_taken_up_again_and_one_that_is_lost_is_no_obstacle() -> None:
    buyer = Buyer(agreements=(AGREEMENT, replace(AGREEMENT, agreement_id="a2")))
    proposed = [ChangeProposed(Signed(replace(FIRST, agreement_id=each.agreement_id)), 0) for each in buyer.agreements]
    lost = ChangeConcluded(ChangeOutcome("a9", 1, False, 8, 5 * HOUR, NOTICE, 0, "withdrawn"), TO_SELLER, 1)
    again = messages(buyer.changes.recover((lost, *proposed), HOUR))
    assert [each.content for each in again] == [each.signed for each in proposed]
    assert messages(buyer.registry.tick(HOUR + SECOND)) == again  # both are due at once


def test_a_change_that_a_bug_has_ended_is_taken_up_or_told(buyer: Shrinking) -> None:
    buyer.resize()
    (again,) = messages(buyer.changes.resume("a1", (ChangeProposed(Signed(FIRST), 0),), 5))
    assert again.content == Signed(FIRST)
    outcome = outcome_of(buyer.changes.resume("a1", (), 6))  # nothing of it is on record
    assert (outcome.done, outcome.code) == (False, "agent_failed")
    assert outcome.detail == "the user agent failed before it was proposed"
    assert buyer.changes.resume("a1", (), 7) == []
    assert buyer.changes.open == ()


def test_an_addition_that_a_bug_has_ended_before_it_was_on_record_is_told_with_the_slot_as_it_stands(
    buyer: Shrinking, monkeypatch: pytest.MonkeyPatch
) -> None:
    priced = c.ChangePriced("a1", 1, 60, MINUTE, 24, 5 * HOUR, first_state(AGREEMENT).digest)

    def raise_bug(*_: object) -> list[Effect]:
        raise AssertionError("a bug")

    buyer.resize(cores=24)
    with monkeypatch.context() as patched:
        patched.setattr(BuyerChange, "start", raise_bug)
        (again,) = buyer.hears(priced)
    assert isinstance(again, TakeUpAgain)
    assert (again.reference, buyer.changes.open) == ("a1", ("a1",))
    (told,) = buyer.changes.resume("a1", (), 2)
    why = "the user agent failed before it was proposed"
    outcome = ChangeOutcome("a1", 0, False, 16, 5 * HOUR, code="agent_failed", detail=why)
    assert told == Report(ChangeEnded(outcome))
    assert (buyer.changes.open, buyer.changes.resume("a1", (), 3)) == ((), [])


BURNS = Signed(end_of(AGREEMENT, "it burns", 0, RefusalCode.NOT_DELIVERED), ("res1",), "text")
ON_RECORD = (ChangeProposed(Signed(FIRST), 0), ChangeProposed(BURNS, 0))


@pytest.mark.parametrize("rested", [False, True])
def test_a_change_and_a_claim_are_both_taken_up_after_a_bug(buyer: Shrinking, rested: bool) -> None:
    buyer.resize()
    buyer.changes.claim(BURNS, 1)
    if rested:
        buyer.changes.rest("a1")
    again = messages(buyer.changes.resume("a1", ON_RECORD, 5))
    assert [(each.receiver, each.content) for each in again] == [("res1", Signed(FIRST)), ("bank", BURNS)]


def test_a_change_and_a_claim_that_a_bug_has_ended_before_they_were_on_record_are_both_told(buyer: Shrinking) -> None:
    buyer.resize()
    buyer.changes.claim(BURNS, 1)
    told = reports(buyer.changes.resume("a1", (), 5), ChangeEnded)
    assert [each.outcome.ends for each in told] == [False, True]


@pytest.mark.parametrize("lost", [False, True])
def test_what_has_ended_is_not_cancelled_again_and_is_told_as_it_ended(buyer: Shrinking, lost: bool) -> None:
    if lost:
        buyer.changes.claim(BURNS, 1)
    else:
        buyer.changes.cancel("a1", "no", 1)
    buyer.hears_bank(c.ChangePosted("a1", 0, "t1", -500), 2)
    buyer.standing = "refunded"
    (report,) = buyer.changes.cancel("a1", "no", 3)
    assert isinstance(report, Report)
    assert isinstance(report.progress, ChangeEnded)
    outcome = report.progress.outcome
    assert (outcome.done, outcome.refund, outcome.code) == (True, 0, "already_cancelled")
    assert f"it was {'lost by its seller' if lost else 'cancelled'} before, with a refund of 5.00" in outcome.detail


def test_what_is_archived_is_forgotten(buyer: Shrinking) -> None:
    buyer.resize()
    buyer.hears(PROOF)
    buyer.changes.forget(["a2"])
    assert buyer.changes.history.posted("a1") == (FIRST,)
    buyer.changes.forget(["a1", "a2"])
    assert buyer.changes.history.posted("a1") == ()
    persisted = buyer.resize()[0]
    assert isinstance(persisted, Persist)
    assert persisted.record == ChangeProposed(Signed(FIRST), 0)
    buyer.changes.forget(["a1"])
    assert buyer.changes.open == ()


def test_that_a_refund_was_refused_is_forgotten_with_the_agreement(buyer: Shrinking) -> None:
    buyer.changes.claim(BURNS, 1)
    buyer.hears_bank(c.ChangeRefused("a1", 0, "started"), 2)
    assert buyer.changes.history.was_refused("a1")
    buyer.changes.forget(["a1"])
    assert not buyer.changes.history.was_refused("a1")


def test_a_slot_that_was_changed_too_often_is_read_and_not_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each state is made of the one before, once."""
    buyer, records, state, made = Buyer(), [], first_state(AGREEMENT), []
    for number in range(1, SLOT_CHANGES_MAX + 3):
        at = number * 20 * SECOND
        until = state.until - MINUTE
        owed = refund_owed(AGREEMENT, state, 16, until, at + NOTICE)
        body = replace(FIRST, number=number, previous=state.digest, cores=16, until=until, amount=-owed, issued_at=at)
        body = replace(body, effective_at=at + NOTICE, valid_until=at + NOTICE + WINDOW)
        records += [ChangeProposed(Signed(body), at), ChangeConcluded(_done(body), TO_SELLER, at)]
        state = after(state, body)
    monkeypatch.setattr(history, "after", lambda before, change: made.append(change) or after(before, change))
    buyer.changes.recover(records, HOUR)
    assert [buyer.changes.history.state("a1") for _ in range(3)] == [state] * 3
    assert len(made) == SLOT_CHANGES_MAX + 2
    (report,) = buyer.resize(HOUR)
    assert isinstance(report, Report)
    assert isinstance(report.progress, ChangeEnded)
    assert report.progress.outcome.code == "too_many_changes"


def _done(body: ContractChange) -> ChangeOutcome:
    return ChangeOutcome("a1", body.number, True, body.cores, body.until, body.effective_at, body.refund)
