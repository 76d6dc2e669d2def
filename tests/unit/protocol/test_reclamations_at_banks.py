"""What the bank makes of cores that a seller takes back: by right only, told in time, posted once, paid to the unit.

The slot: 16 cores from the first hour to the second for 960.00; 8 of them for the second half are worth 240.00. The
right: 8 cores stay, a minute's notice, 30 credits/core-hour on top: 8 cores for half an hour are 120.00.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ramp.errors import RemoteProtocolError
from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.agreement import Amendment, Reclamation, Signed
from ramp.model.instant import HOUR, MINUTE
from ramp.model.request import ReclaimTerms
from ramp.model.sizes.amended import after, first_state, state_digest
from ramp.model.sizes.reclaimed import reclaimed
from ramp.protocol import effects as fx

NOW = HOUR
HALF = HOUR + 30 * MINUTE
RIGHT = ReclaimTerms(8, MINUTE, 30)
BODY = Reclamation(
    "a1", 1, "", "offer-a1", "alice", "res1", "bank", 8, 2 * HOUR, HALF, 24_000, 12_000, NOW, HALF + 2 * MINUTE
)


@pytest.fixture
def paid(bank: Any) -> Any:
    """Alice has paid 960.00 of her 2 000.00 to res1, and granted the right."""
    bank.order()
    granted = replace(bank.agreement(bank.line()).request, reclaim=RIGHT)
    bank.countersign(bank.line(), request=granted)
    bank.bought = replace(bank.agreement(bank.line()), request=granted)
    assert (bank.posted("alice"), bank.posted("res1")) == (104_000, 96_000)
    return bank


def body_of(paid: Any, **changes: Any) -> Reclamation:
    return replace(BODY, previous=state_digest(paid.bought), **changes)


def noted(paid: Any, body: Reclamation, now: int = NOW, sender: str = "res1", **brought: Any) -> list[Message]:
    """What the bank says to a notice."""
    signers = brought.pop("signers", ("res1",))
    agreement = brought.pop("agreement", Signed(paid.bought, ("alice", "res1"), "text"))
    notice = c.ReclamationNotice(Signed(body, signers, "text"), agreement, brought.pop("changes", ()))
    return said(paid.hear(sender, notice, now, performative=Performative.REQUEST))


def taken(paid: Any, now: int, number: int = 1, sender: str = "res1") -> list[Message]:
    return said(paid.hear(sender, c.ReclamationTaken("a1", number), now, performative=Performative.REQUEST))


def asked(paid: Any, now: int, sender: str = "alice") -> Any:
    (answer,) = said(paid.hear(sender, c.ReclamationQuery("a1", 1), now, performative=Performative.REQUEST))
    return answer.content


def said(effects: list[fx.Effect]) -> list[Message]:
    return [each.message for each in effects if isinstance(each, fx.Send)]


def refusal(messages: list[Message]) -> str:
    (answer,) = messages
    assert answer.performative is Performative.REFUSE
    assert isinstance(answer.content, c.ReclamationRefused)
    return answer.content.code


def test_what_is_by_right_is_noted_told_to_both_and_posted_with_its_compensation(paid: Any) -> None:
    body = body_of(paid)
    to_seller, to_buyer = noted(paid, body)
    assert (to_seller.performative, to_seller.receiver) == (Performative.AGREE, "res1")
    assert (to_buyer.performative, to_buyer.receiver) == (Performative.INFORM, "alice")
    assert to_buyer.content == c.ReclamationNoticed("a1", 1, NOW, Signed(body, ("res1",), "text"))
    assert paid.posted("alice") == 104_000  # nothing is paid before the cores are taken
    to_seller, to_buyer = taken(paid, HALF)
    assert to_seller.content == to_buyer.content == c.ReclamationPosted("a1", 1, "rebate:a1#r1", 24_000, 12_000)
    assert (paid.posted("alice"), paid.posted("res1")) == (140_000, 60_000)
    again, _ = taken(paid, 2 * HOUR)
    assert again.content == to_seller.content  # the same again, long after its time
    assert (paid.posted("alice"), paid.posted("res1")) == (140_000, 60_000)
    assert paid.ledger.audit() == []


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"cores": 7, "refund": 27_000, "compensation": 13_500}, "below_minimum"),
        ({"compensation": 11_999}, "bad_compensation"),
        ({"compensation": 0}, "bad_compensation"),
        ({"refund": 23_999}, "bad_price"),
        ({"issued_at": HALF - MINUTE + 1}, "short_notice"),
        ({"cores": 16}, "not_smaller"),
        ({"until": 2 * HOUR - 1}, "not_smaller"),
        ({"previous": "elsewhere"}, "other_state"),
        ({"user": "mallory"}, "other_parties"),
        ({"bank": "other"}, "other_parties"),
        ({"offer_id": "offer-a2"}, "other_parties"),
        ({"number": 1_001}, "old_number"),
        ({"valid_until": 2 * HOUR + 1}, "bad_times"),
    ],
)
def test_what_is_not_by_right_is_refused(paid: Any, changes: dict[str, Any], code: str) -> None:
    assert refusal(noted(paid, replace(body_of(paid), **changes))) == code
    assert refusal(taken(paid, HALF)) == "not_noticed"
    assert (paid.posted("alice"), paid.ledger.reclamations("a1")) == (104_000, ())


def test_without_the_right_nothing_is_taken(paid: Any) -> None:
    plain = replace(paid.bought, request=replace(paid.bought.request, reclaim=None))
    body = replace(BODY, previous=state_digest(plain))
    assert refusal(noted(paid, body, agreement=Signed(plain, ("alice", "res1"), "text"))) == "no_right"


def test_the_notice_counts_from_when_the_bank_has_it_whatever_the_seller_dates(paid: Any) -> None:
    assert refusal(noted(paid, body_of(paid), now=HALF - MINUTE + 1)) == "short_notice"
    assert len(noted(paid, body_of(paid), now=HALF - MINUTE)) == 2


def test_a_notice_lacks_no_signature(paid: Any, refused: Any) -> None:
    unsigned = Signed(paid.bought, ("alice",), "text")
    by_seller_alone = Signed(paid.bought, ("res1",), "text")
    other_bank = Signed(replace(paid.bought, bank="other"), ("alice", "res1"), "text")
    last = Amendment(
        "a1", 1, state_digest(paid.bought), "offer-a1", "alice", "res1", "bank", 12, 2 * HOUR, NOW, 1, 0, NOW + 1
    )
    cases: tuple[dict[str, Any], ...] = (
        {"signers": ()},
        {"signers": ("alice",)},
        {"signers": ("res1", "alice")},
        {"sender": "res2"},
        {"agreement": unsigned},
        {"agreement": by_seller_alone},
        {"agreement": other_bank},
        {"changes": (Signed(last, ("res1",), "text"),)},
        {"changes": (Signed(last, ("alice",), "text"),)},
        {"changes": (Signed(replace(last, previous="elsewhere"), ("alice", "res1"), "text"),)},
        {"changes": (Signed(replace(last, user="mallory"), ("mallory", "res1"), "text"),)},
        {"changes": (Signed(body_of(paid), ("alice",), "text"),)},
    )
    for case in cases:
        with refused:
            noted(paid, body_of(paid), **case)
    assert paid.ledger.reclamations("a1") == ()


def test_nothing_is_posted_before_its_time_nor_after_it(paid: Any) -> None:
    noted(paid, body_of(paid))
    assert refusal(taken(paid, HALF - 1)) == "too_early"
    assert asked(paid, HALF) == c.ReclamationRefused("a1", 1, "still_open", "nothing is decided of it yet")
    assert refusal(taken(paid, HALF + 2 * MINUTE)) == "expired"
    assert refusal(taken(paid, HALF)) == "expired"  # for good
    assert paid.posted("alice") == 104_000


def test_what_is_set_aside_for_one_that_nobody_posts_is_free_again_once_its_time_is_over(paid: Any) -> None:
    noted(paid, body_of(paid))
    assert (paid.ledger.balance("res1").reserved, paid.party.deadline) == (12_000, HALF + 2 * MINUTE)
    paid.tick(HALF + 2 * MINUTE - 1)
    assert paid.ledger.balance("res1").reserved == 12_000
    paid.tick(HALF + 2 * MINUTE)
    assert (paid.ledger.balance("res1").reserved, paid.party.deadline) == (0, None)


def test_the_first_of_several_that_nobody_posts_is_over_in_time(paid: Any) -> None:
    noted(paid, body_of(paid))
    assert paid.party.deadline == HALF + 2 * MINUTE
    later = replace(body_of(paid), number=2, valid_until=HALF + 3 * MINUTE)
    noted(paid, later)
    assert paid.party.deadline == HALF + 2 * MINUTE


def test_a_bank_that_starts_anew_knows_for_what_money_is_set_aside(paid: Any) -> None:
    noted(paid, body_of(paid))
    paid.restart(NOW + 1)
    assert paid.party.deadline == HALF + 2 * MINUTE
    paid.tick(HALF + 2 * MINUTE)
    assert (paid.ledger.balance("res1").reserved, paid.party.deadline) == (0, None)
    assert refusal(taken(paid, HALF)) == "expired"


def test_another_seller_posts_nothing_and_another_buyer_learns_nothing(paid: Any) -> None:
    noted(paid, body_of(paid))
    assert refusal(taken(paid, HALF, sender="res2")) == "unknown_transfer"
    assert asked(paid, HALF, sender="mallory").code == "unknown_transfer"
    assert len(taken(paid, HALF)) == 2


def test_a_buyer_can_void_its_own_amendments_only(paid: Any) -> None:
    noted(paid, body_of(paid))
    paid.hear("alice", c.AmendmentWithdrawal("a1", 1), NOW, performative=Performative.REQUEST)
    paid.hear("alice", c.AmendmentWithdrawal("a1", 1_000), NOW, performative=Performative.REQUEST)
    assert len(taken(paid, HALF)) == 2


def test_who_asks_when_the_time_is_over_is_told_that_it_is_void(paid: Any) -> None:
    noted(paid, body_of(paid))
    assert asked(paid, HALF + 2 * MINUTE).code == "expired"
    assert refusal(taken(paid, HALF)) == "expired"


def test_who_asks_after_it_was_posted_is_told_so(paid: Any) -> None:
    noted(paid, body_of(paid))
    taken(paid, HALF)
    assert asked(paid, 2 * HOUR) == c.ReclamationPosted("a1", 1, "rebate:a1#r1", 24_000, 12_000)


def followed(paid: Any, state: str, now: int, sender: str = "alice") -> list[Any]:
    """What the bank says to who asks what has changed a state of the slot, with the number that it knows nothing of."""
    query = c.ReclamationQuery("a1", 1, state)
    answers = said(paid.hear(sender, query, now, performative=Performative.REQUEST))
    assert {each.receiver for each in answers} == {sender}
    return [each.content for each in answers]


def test_who_does_not_know_what_was_taken_is_given_the_document(paid: Any) -> None:
    """The seller takes twice, under numbers of its choice, and says nothing to its buyer."""
    first = body_of(paid, number=4, cores=12, refund=12_000, compensation=6_000)
    (nothing,) = followed(paid, first.previous, NOW)
    assert nothing.code == "not_noticed"
    noted(paid, first)
    signed = Signed(first, ("res1",), "text")
    assert followed(paid, first.previous, NOW) == [c.ReclamationNoticed("a1", 4, NOW, signed)]
    taken(paid, HALF, number=4)
    at = HALF + 10 * MINUTE
    second = body_of(
        paid, number=9, effective_at=at, issued_at=HALF, valid_until=at + MINUTE, refund=8_000, compensation=4_000
    )  # 4 cores for 20 minutes
    second = replace(second, previous=state_digest(first))
    noted(paid, second, now=HALF, changes=(signed,))
    taken(paid, at, number=9)
    posted = c.ReclamationPosted("a1", 4, "rebate:a1#r4", 12_000, 6_000)
    assert followed(paid, first.previous, at) == [posted, c.ReclamationNoticed("a1", 4, NOW, signed)]
    of_second = c.ReclamationNoticed("a1", 9, HALF, Signed(second, ("res1",), "text"))
    assert followed(paid, second.previous, at)[1:] == [of_second]
    (nothing,) = followed(paid, state_digest(second), at)
    assert nothing.code == "not_noticed"
    paid.restart(at)
    assert followed(paid, first.previous, 2 * HOUR)[1:] == [c.ReclamationNoticed("a1", 4, NOW, signed)]


def test_the_document_is_for_its_buyer_alone(paid: Any) -> None:
    body = body_of(paid)
    noted(paid, body)
    taken(paid, HALF)
    for sender in ("mallory",):
        (answer,) = followed(paid, body.previous, HALF, sender)
        assert (answer.code, answer.detail.count("8")) == ("unknown_transfer", 0)
    with pytest.raises(RemoteProtocolError):
        followed(paid, body.previous, HALF, "res1")


def test_what_was_never_posted_is_not_told_as_if_it_was(paid: Any) -> None:
    body = body_of(paid)
    noted(paid, body)
    (void,) = followed(paid, body.previous, HALF + 2 * MINUTE)
    assert void == c.ReclamationRefused("a1", 1, "expired", "it was valid until 1970-01-01T01:32:00Z")
    (nothing,) = followed(paid, body.previous, HALF + 2 * MINUTE)
    assert nothing.code == "not_noticed"


def amended(paid: Any, **changes: Any) -> Amendment:
    """Alice and res1 make the slot four cores smaller from half of it on: 120.00 back."""
    body = Amendment(
        "a1", 1, state_digest(paid.bought), "offer-a1", "alice", "res1", "bank", 12, 2 * HOUR, HALF, 12_000, NOW,
        HALF + MINUTE,
    )  # fmt: skip
    return replace(body, **changes)


def bring(paid: Any, body: Amendment, now: int) -> Any:
    signed = Signed(body, ("alice", "res1"), "text")
    (answer,) = said(paid.hear("res1", signed, now, performative=Performative.REQUEST))
    return answer.content


def test_an_amendment_that_was_posted_first_voids_what_was_noticed_of_the_state_before(paid: Any) -> None:
    noted(paid, body_of(paid))
    assert isinstance(bring(paid, amended(paid), HALF), c.AmendmentPosted)
    assert refusal(taken(paid, HALF)) == "other_state"
    assert paid.posted("alice") == 116_000


def test_a_reclamation_that_was_posted_first_voids_the_amendment_of_the_state_before(paid: Any) -> None:
    noted(paid, body_of(paid))
    taken(paid, HALF)
    answer = bring(paid, amended(paid), HALF)
    assert isinstance(answer, c.AmendmentRefused)
    assert answer.code == "other_state"


def test_changes_of_both_kinds_follow_each_other(paid: Any) -> None:
    """Amended to 12 cores, taken back to 8, amended to 4: each of the state that the one before has made."""
    first = amended(paid)
    bring(paid, first, HALF)
    state = after(first_state(paid.bought), first)
    at = HALF + 10 * MINUTE
    second = body_of(
        paid, effective_at=at, issued_at=HALF, valid_until=at + MINUTE, refund=8_000, compensation=4_000
    )  # 4 cores for 20 minutes
    second = replace(second, previous=state.digest)
    last = Signed(first, ("alice", "res1"), "text")
    assert len(noted(paid, second, now=HALF, changes=(last,))) == 2
    assert len(taken(paid, at)) == 2
    third = amended(
        paid, number=2, previous=reclaimed(state, second).digest, cores=4, effective_at=at + MINUTE, issued_at=at,
        refund=7_600, valid_until=at + 2 * MINUTE,
    )  # fmt: skip
    assert isinstance(bring(paid, third, at + MINUTE), c.AmendmentPosted)
    assert paid.posted("alice") == 104_000 + 12_000 + 12_000 + 7_600
    assert paid.ledger.refund("a1", at=at + 2 * MINUTE).amount == 96_000 - 12_000 - 8_000 - 7_600
    assert paid.ledger.audit() == []


def test_what_was_taken_back_is_signed_by_its_seller_alone_and_taken_from_again(paid: Any, refused: Any) -> None:
    first = body_of(paid, cores=12, refund=12_000, compensation=6_000)
    noted(paid, first)
    taken(paid, HALF)
    at = HALF + 10 * MINUTE
    second = body_of(
        paid, number=2, effective_at=at, issued_at=HALF, valid_until=at + MINUTE, refund=8_000, compensation=4_000
    )  # 4 cores for 20 minutes
    second = replace(second, previous=state_digest(first))
    with refused:
        noted(paid, second, now=HALF, changes=(Signed(first, ("alice", "res1"), "text"),))
    assert len(noted(paid, second, now=HALF, changes=(Signed(first, ("res1",), "text"),))) == 2
    assert len(taken(paid, at, number=2)) == 2
    assert paid.posted("alice") == 104_000 + 18_000 + 12_000


def test_what_was_never_posted_is_no_state_to_take_from(paid: Any) -> None:
    """Both have signed an amendment that its buyer has withdrawn: less would be owed for what is left of it."""
    void = amended(paid)
    paid.hear("alice", c.AmendmentWithdrawal("a1", 1), NOW, performative=Performative.REQUEST)
    body = replace(
        body_of(paid), previous=after(first_state(paid.bought), void).digest, refund=12_000, compensation=6_000
    )
    assert refusal(noted(paid, body, changes=(Signed(void, ("alice", "res1"), "text"),))) == "other_state"


def test_the_next_notice_takes_the_place_of_one_that_is_open(paid: Any) -> None:
    noted(paid, body_of(paid))
    noted(paid, body_of(paid, number=2))
    assert refusal(taken(paid, HALF)) == "out_of_order"
    assert refusal(noted(paid, body_of(paid, number=1, compensation=12_000, cores=8, valid_until=HALF + MINUTE))) == (
        "duplicate_differs"
    )
    assert len(taken(paid, HALF, number=2)) == 2
    assert refusal(noted(paid, body_of(paid, number=3))) == "other_state"


def test_a_slot_that_was_given_back_is_not_taken_from(paid: Any) -> None:
    noted(paid, body_of(paid))
    paid.ledger.refund("a1", at=NOW)
    assert refusal(taken(paid, HALF)) == "refunded"
    assert refusal(noted(paid, body_of(paid, number=2))) == "refunded"


def test_words_of_a_seller_without_its_seal_or_too_old_are_not_heard(paid: Any, refused: Any) -> None:
    with refused:
        paid.take(Message(Performative.REQUEST, "res1", "bank", "r1", c.ReclamationTaken("a1", 1)), NOW)
    with refused:
        paid.take(Message(Performative.REQUEST, "alice", "bank", "r1", c.ReclamationQuery("a1", 1)), NOW)
    with refused:
        paid.hear("res1", c.Unverified("reclamation", "a1", "bad_signature", "changed"), NOW)


def test_a_seller_without_the_money_takes_nothing(bank: Any) -> None:
    """A compensation may be more than the price: two could share what nobody has paid."""
    bank.order()
    granted = replace(bank.agreement(bank.line()).request, reclaim=replace(RIGHT, compensation=1_000))
    bank.countersign(bank.line(), request=granted)
    bank.bought = replace(bank.agreement(bank.line()), request=granted)
    assert refusal(noted(bank, body_of(bank, compensation=400_000))) == "insufficient_funds"
    assert refusal(taken(bank, HALF)) == "not_noticed"
    assert (bank.posted("alice"), bank.posted("res1")) == (104_000, 96_000)
    bank.ledger.deposit("d-res1", "res1", 400_000, at=NOW)
    assert len(noted(bank, body_of(bank, compensation=400_000))) == 2
    assert len(taken(bank, HALF)) == 2
    assert (bank.posted("alice"), bank.posted("res1")) == (528_000, 96_000 - 24_000)
