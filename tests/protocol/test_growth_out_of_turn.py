"""Growth where messages come in an order that the simulator seldom draws: late words of bank and sellers, and bugs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from ramp.errors import RemoteProtocolError
from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.agreement import ContractChange, Signed
from ramp.model.instant import HOUR, MINUTE, SECOND, Instant
from ramp.model.offer import Offer, Refusal, RefusalCode
from ramp.model.request import RequestUnit, TotalCores
from ramp.model.seal import Role, Seal
from ramp.model.sizes.amended import first_state, order_line
from ramp.protocol.conversations import Registry
from ramp.protocol.effects import Effect, Persist, Report, ResizeSlot, Send
from ramp.protocol.events import SlotResized
from ramp.protocol.outcome import ChangeOutcome
from ramp.protocol.progress import ChangeEnded
from ramp.protocol.records import ChangeConcluded, ChangeProposed
from ramp.protocol.resource.slots.seller_change import SellerChange
from ramp.protocol.timing import Pace, Timing
from ramp.protocol.transition_tables import BuyerChangeState, ParticipantState, SellerChangeState
from ramp.protocol.user.changing.change import BuyerChange
from ramp.protocol.user.changing.desk import Changes
from simulation.market.actors import CountedIds
from tests.agreements import agreement_of, change_of

S = BuyerChangeState
NOW = 100 * HOUR
OFFER = Offer("o-1", "r-1", 1, "res", 60, NOW + HOUR, NOW + 5 * HOUR, 16, 0.0, NOW + HOUR)
UNIT = RequestUnit(1, 70, NOW + 5 * HOUR, TotalCores(16), NOW + HOUR)
AGREEMENT = agreement_of(OFFER, UNIT, agreement_id="a-1", issued_at=NOW - HOUR, valid_until=NOW - MINUTE)
SOLD: Any = SimpleNamespace(conversation_id="r-1", state=ParticipantState.SOLD)
OTHER = replace(AGREEMENT, agreement_id="a-2", resource="res2")
BODY, SECOND_BODY = (
    change_of(each, 24, NOW, 60, valid_until=NOW + MINUTE, order_id="order-1") for each in (AGREEMENT, OTHER)
)
VOTE = c.FundsReserved("order-1", "alice", (order_line(BODY),), MINUTE, NOW + MINUTE, NOW)
POSTED = c.OrderPosted("order-1", (c.PaymentMade("a-1#1", "payment:a-1#1", BODY.charge),))
VOIDED = c.OrderVoided("order-1", "expired", "too late")
REFUSED = c.ChangeRefused("a-1", 1, "slot_taken", "gone")


def sealed(sender: str, role: Role, content: c.Content, performative: Performative = Performative.INFORM) -> Message:
    seal = Seal(sender, role, "alice", "r-1", NOW, "text")
    return Message(performative, sender, "alice", "r-1", content, seal=seal)


def proof(body: ContractChange) -> c.ChangeDone:
    posted = c.ChangePosted(body.agreement_id, body.number, f"payment:{body.key}", body.charge)
    seal = Seal("bank", Role.BANK, body.resource, "r-1", NOW, "posted")
    return c.ChangeDone(Signed(body, (body.user, body.resource), "<signed/>"), posted, seal)


class Buyer:
    """Alice's growth, whose events the test says."""

    def __init__(self, *bodies: ContractChange) -> None:
        agreements = {each.agreement_id: each for each in (AGREEMENT, OTHER)}
        lines = [(Signed(body), agreements[body.agreement_id]) for body in bodies or (BODY,)]
        self.growth = BuyerChange(lines, Pace(Timing()))
        self.growth.start(NOW)

    def seller(self, content: c.Content, body: ContractChange = BODY, now: Instant = NOW) -> list[Effect]:
        message = sealed(body.resource, Role.RESOURCE, content)
        return self.growth.on_message(message, body.agreement_id, content, now)  # type: ignore[arg-type]

    def bank(self, content: c.Content, now: Instant = NOW) -> list[Effect]:
        return self.growth.on_order(sealed("bank", Role.BANK, content), content, now)  # type: ignore[arg-type]

    def agreed(self) -> Buyer:
        self.seller(c.ChangeAgreed("a-1", 1))
        assert self.growth.state is S.RESERVING
        return self

    def funded(self) -> Buyer:
        self.agreed().bank(VOTE)
        assert self.growth.state is S.AGREED
        return self

    def withdrawing(self) -> Buyer:
        self.seller(REFUSED)
        assert self.growth.state is S.DECIDING
        return self

    @property
    def outcome(self) -> tuple[bool, str, int]:
        assert self.growth.state is S.ENDED
        ((outcome, _),) = self.growth.outcomes
        return outcome.done, outcome.code, outcome.charge


def contents(effects: Sequence[Effect]) -> list[tuple[str, str]]:
    messages = [each.message for each in effects if isinstance(each, Send)]
    return [(each.receiver, type(each.content).__name__) for each in messages]


def test_the_bank_says_late_that_it_is_posted() -> None:
    """Of a question of an earlier life: whatever goes on now, it is posted, and the copies are asked for."""
    for buyer in (Buyer(), Buyer().agreed(), Buyer().funded(), Buyer().withdrawing()):
        assert contents(buyer.bank(POSTED)) == [("res", "ChangeAgreed")]
        assert buyer.outcome == (True, "", BODY.charge)


def test_the_bank_says_late_that_it_is_void() -> None:
    for buyer in (Buyer(), Buyer().agreed(), Buyer().funded()):
        assert contents(buyer.bank(VOIDED)) == [("res", "ChangeWithdrawal")]
        assert buyer.outcome == (False, "expired", 0)


def test_the_seller_proves_early_that_it_is_posted() -> None:
    for buyer in (Buyer(), Buyer().agreed(), Buyer().funded(), Buyer().withdrawing()):
        buyer.seller(proof(BODY))
        ((outcome, seal),) = buyer.growth.outcomes
        assert outcome == ChangeOutcome("a-1", 1, True, 24, OFFER.end, BODY.effective_at, charge=BODY.charge)
        assert seal == proof(BODY).posted_seal


def test_the_seller_gives_it_up() -> None:
    """Whatever it says, the bank's word ends it."""
    for buyer in (Buyer(), Buyer().agreed(), Buyer().funded()):
        assert contents(buyer.seller(REFUSED)) == [("bank", "OrderWithdrawal")]
        buyer.seller(REFUSED)
        buyer.bank(c.OrderVoided("order-1", "withdrawn", "her wish"))
        assert buyer.outcome == (False, "slot_taken", 0)


def test_the_seller_says_no_more_than_a_code() -> None:
    buyer = Buyer()
    buyer.seller(replace(REFUSED, detail=""))
    buyer.bank(VOIDED)
    assert buyer.outcome == (False, "slot_taken", 0)


def test_all_that_is_said_bears_the_name_by_which_who_does_not_understand_answers() -> None:
    buyer = Buyer(BODY, SECOND_BODY)
    said = buyer.growth.on_timer(NOW + SECOND)
    said += buyer.seller(c.ChangeAgreed("a-1", 1)) + buyer.seller(c.ChangeAgreed("a-2", 1), SECOND_BODY)
    said += buyer.bank(replace(VOTE, lines=(order_line(BODY), order_line(SECOND_BODY))))
    named = [(each.message.receiver, each.message.reply_with) for each in said if isinstance(each, Send)]
    assert named == [("res", "a-1#1"), ("res2", "a-2#1"), ("bank", "a-1#1"), ("res", "a-1#1"), ("res2", "a-2#1")]


def test_the_order_is_refused_after_it_was_withdrawn() -> None:
    buyer = Buyer().withdrawing()
    assert buyer.seller(c.ChangeAgreed("a-1", 1)) == []  # it comes too late
    buyer.bank(c.OrderRefused("order-1", "insufficient_funds", "poor"))
    assert buyer.outcome == (False, "slot_taken", 0)
    late = Buyer().funded()
    assert late.bank(c.OrderRefused("order-1", "insufficient_funds", "poor")) == []


def test_somebody_does_not_understand_it() -> None:
    buyer = Buyer()
    assert buyer.growth.on_not_understood("bank", NOW) == []  # it has not been asked yet
    assert contents(buyer.growth.on_not_understood("res", NOW)) == [("bank", "OrderWithdrawal")]
    buyer = Buyer().agreed()
    assert buyer.growth.on_not_understood("res", NOW) == []
    assert contents(buyer.growth.on_not_understood("bank", NOW)) == [("bank", "OrderWithdrawal")]
    buyer.bank(VOIDED)
    assert buyer.outcome == (False, "not_understood", 0)


def test_nobody_answers() -> None:
    for buyer in (Buyer(), Buyer().agreed(), Buyer().funded()):
        state, now = buyer.growth.state, NOW
        while buyer.growth.state is state:
            now = buyer.growth.deadline or now
            buyer.growth.on_timer(now)
        assert buyer.growth.state is S.DECIDING
        if state is S.AGREED:  # so long as it can be posted, and then as long as an answer may take
            assert now == BODY.valid_until + Timing().cancellation_limit


def test_it_ended_in_part_before_a_crash() -> None:
    """One of two conclusions is on record: the bank is asked once more, and nothing is proposed again."""
    growth = BuyerChange([(Signed(BODY), AGREEMENT)], Pace(Timing()))
    (asked,) = growth.decide(NOW)
    assert isinstance(asked, Send)
    why = "the buyer does not know how the amendment ended"
    assert asked.message.content == c.OrderWithdrawal("order-1", BODY.valid_until, why)


def test_two_sellers_have_to_agree() -> None:
    buyer = Buyer(BODY, SECOND_BODY)
    assert contents(buyer.seller(c.ChangeAgreed("a-1", 1))) == []
    assert buyer.seller(c.ChangeAgreed("a-1", 1)) == []
    assert contents(buyer.seller(c.ChangeAgreed("a-2", 1), SECOND_BODY)) == [("bank", "PaymentOrder")]
    both = replace(VOTE, lines=(order_line(BODY), order_line(SECOND_BODY)))
    assert contents(buyer.bank(both)) == [("res", "ChangeAgreed"), ("res2", "ChangeAgreed")]
    buyer.seller(proof(BODY))
    assert buyer.growth.state is S.AGREED  # the other's copy is still to come
    buyer.seller(proof(SECOND_BODY), SECOND_BODY)
    assert [each.done for each, _ in buyer.growth.outcomes] == [True, True]


def test_a_machine_never_answers_the_seller() -> None:
    growth = SellerChange(Signed(BODY, ("alice",), ""), SOLD, first_state(AGREEMENT), Pace(Timing()))
    growth.start(NOW)
    (asked,) = growth.on_timer(BODY.valid_until)
    assert isinstance(asked, ResizeSlot)
    assert (growth.state, asked.cores) == (SellerChangeState.RESTORING, 16)
    gone = SlotResized("o-1", asked.step, Refusal(0, RefusalCode.CANCELLED, detail="gone"))
    growth.on_resized(gone, BODY.valid_until)
    assert growth.state is SellerChangeState.ENDED
    assert growth.stranded == ""  # the slot itself is as it was


def test_a_machine_refuses_after_a_restart_what_it_may_have_set_aside_before() -> None:
    """The question of before the restart may be done yet, so it is asked for the old size."""
    growth = SellerChange(Signed(BODY, ("alice",), ""), SOLD, first_state(AGREEMENT), Pace(Timing()))
    (asked,) = growth.recover(NOW)
    assert isinstance(asked, ResizeSlot)
    assert asked.cores == 24
    (restored,) = growth.on_resized(SlotResized("o-1", asked.step, Refusal(0, RefusalCode.SLOT_TAKEN)), NOW)
    assert restored == ResizeSlot("o-1", asked.step + 1, 16, OFFER.end)
    assert growth.state is SellerChangeState.RESTORING


def test_who_is_silent_is_named() -> None:
    """To the bank as the reason, and so to the owner."""

    def reason(buyer: Buyer) -> str:
        state, effects = buyer.growth.state, list[Effect]()
        while buyer.growth.state is state:
            assert buyer.growth.deadline is not None
            effects = buyer.growth.on_timer(buyer.growth.deadline)
        (told,) = [each.message.content for each in effects if isinstance(each, Send)]
        assert isinstance(told, c.OrderWithdrawal)
        return told.reason

    buyer = Buyer(BODY, SECOND_BODY)
    buyer.seller(c.ChangeAgreed("a-1", 1))
    assert reason(buyer) == "res2 did not respond in time"
    assert reason(Buyer().agreed()) == "bank did not respond in time"
    buyer = Buyer(BODY, SECOND_BODY)
    buyer.seller(c.ChangeAgreed("a-1", 1))
    buyer.seller(c.ChangeAgreed("a-2", 1), SECOND_BODY)
    buyer.bank(replace(VOTE, lines=(order_line(BODY), order_line(SECOND_BODY))))
    buyer.seller(proof(BODY))
    assert reason(buyer) == "res2 did not respond in time"


@pytest.mark.parametrize(
    "wrong",
    [
        replace(VOTE, lines=()),
        replace(VOTE, user="bob"),
        replace(VOTE, valid_until=NOW),
        replace(POSTED, transfers=()),
    ],
    ids=["other lines", "another's", "another end", "other payments"],
)
def test_another_order_is_not_believed(wrong: c.FundsReserved | c.OrderPosted) -> None:
    with pytest.raises(RemoteProtocolError):
        Buyer().agreed().bank(wrong)


def test_nobody_speaks_for_seller_or_bank() -> None:
    buyer = Buyer()
    agreed = c.ChangeAgreed("a-1", 1)
    with pytest.raises(RemoteProtocolError):
        buyer.growth.on_message(sealed("mallory", Role.RESOURCE, agreed), "a-1", agreed, NOW)
    with pytest.raises(RemoteProtocolError):
        buyer.growth.on_order(sealed("res", Role.BANK, VOIDED), VOIDED, NOW)


def recovered(*records: Any) -> tuple[Changes, list[Effect]]:
    agreements = {each.agreement_id: each for each in (AGREEMENT, OTHER)}
    changes = Changes(agreements, lambda _: "active", Pace(Timing()), CountedIds("alice"), Registry())
    return changes, changes.recover(records, NOW)


BOTH = ("a-1", "a-2")


def test_what_is_not_on_record_as_a_whole_was_never_said() -> None:
    changes, effects = recovered(ChangeProposed(Signed(BODY), NOW, BOTH))
    assert contents(effects) == []
    (told,) = [each.progress for each in effects if isinstance(each, Report)]
    assert isinstance(told, ChangeEnded)
    assert (told.outcome.done, told.outcome.code, changes.open) == (False, "agent_failed", ())


def test_an_order_that_was_never_said_is_no_obstacle_to_another() -> None:
    """In one journal, in either order."""
    other = replace(SECOND_BODY, order_id="order-2")
    records = [ChangeProposed(Signed(BODY), NOW, BOTH), ChangeProposed(Signed(other), NOW, ("a-2",))]
    for journal in (records, records[::-1]):
        changes, effects = recovered(*journal)
        assert contents(effects) == [("res2", "Signed")]
        assert [type(each.progress) for each in effects if isinstance(each, Report)] == [ChangeEnded]
        assert changes.open == ("a-2",)


def test_what_is_on_record_goes_on_together() -> None:
    proposed = [ChangeProposed(Signed(body), NOW, BOTH) for body in (BODY, SECOND_BODY)]
    changes, effects = recovered(*proposed)
    assert contents(effects) == [("res", "Signed"), ("res2", "Signed")]
    assert sorted(changes.open) == ["a-1", "a-2"]


def test_what_a_bug_has_met_goes_on_as_after_a_restart() -> None:
    proposed = [ChangeProposed(Signed(body), NOW, BOTH) for body in (BODY, SECOND_BODY)]
    changes, first = recovered(*proposed)
    assert changes.resume("a-2", proposed, NOW) == first
    assert sorted(changes.open) == ["a-1", "a-2"]
    changes.rest("a-1")  # a bug has met it once more
    assert changes.resume("a-1", proposed, NOW) == []  # and then one something else of that name
    assert changes.open == ()


def test_what_has_ended_in_part_asks_the_bank_only() -> None:
    proposed = [ChangeProposed(Signed(body), NOW, BOTH) for body in (BODY, SECOND_BODY)]
    ended = ChangeOutcome("a-1", 1, True, 24, OFFER.end, charge=BODY.charge)
    changes, effects = recovered(
        *proposed, ChangeConcluded(ended, Seal("bank", Role.BANK, "alice", "r-1", NOW, "posted"), NOW)
    )
    assert contents(effects) == [("bank", "OrderWithdrawal")]
    assert (changes.open, changes.history.posted("a-1")) == (("a-2",), (BODY,))
    both = c.OrderPosted(
        "order-1", tuple(c.PaymentMade(each.key, f"payment:{each.key}", each.charge) for each in (BODY, SECOND_BODY))
    )
    word = sealed("bank", Role.BANK, both)
    effects = changes.handle(word, both, NOW)
    assert contents(effects) == [("res2", "ChangeAgreed")]
    other = ChangeOutcome("a-2", 1, True, 24, OFFER.end, SECOND_BODY.effective_at, charge=SECOND_BODY.charge)
    assert Persist(ChangeConcluded(other, word.seal, NOW)) in effects
    assert changes.history.posted("a-2") == (SECOND_BODY,)
