"""The User Agent: whom it believes, when it decides, how it goes on, and what it still knows after a restart."""

from dataclasses import replace
from typing import Any

import pytest

from ramp.errors import RemoteProtocolError
from ramp.model import contents as c
from ramp.model.agreement import Signed
from ramp.model.instant import MINUTE, SECOND
from ramp.model.offer import RefusalCode
from ramp.model.seal import Role
from ramp.protocol.records import CommitDecided, FailureTold, FundsAsked, OrderClosed, UnitSettled, VoidAsked
from ramp.protocol.timing import Timing
from tests.unit.protocol.conftest import PARTIES, contents, messages, records, restarted_user, seal_of

MARGIN = Timing().decision_margin
HOLD = 2 * MINUTE


def types(contents: list[Any]) -> list[type]:
    return [type(each) for each in contents]


# -- bidding and voting ----------------------------------------------------------------------------------------------


def test_a_listing_comes_from_the_directory_only(alice: Any) -> None:
    alice.submit()
    with pytest.raises(RemoteProtocolError, match="res1 may not speak for directory"):
        alice.hear("res1", c.DirectoryListing("r1", "resource-trader", ("res1",)), role=Role.DIRECTORY)


def test_an_answer_of_somebody_who_was_not_called(alice: Any) -> None:
    alice.open("res1", "res2")
    with pytest.raises(RemoteProtocolError, match="mallory was not called"):
        alice.hear("mallory", c.Proposal("r1", 1, (alice.offer("mallory", 60),)))


@pytest.mark.parametrize(
    "vote",
    [
        c.HoldGranted("r1", "offer-res1-1", "R1", 120 * SECOND),
        c.HoldRefused("r1", "offer-res1-1", RefusalCode.SLOT_TAKEN),
    ],
)
def test_only_the_resource_asked_votes(alice: Any, vote: Any) -> None:
    alice.auction()
    with pytest.raises(RemoteProtocolError, match="res2 votes on another resource's offer"):
        alice.hear("res2", vote)


# -- the bank's vote and the decision --------------------------------------------------------------------------------


@pytest.mark.parametrize(("left", "decides"), [(0, True), (-1, False)])
def test_the_decision_needs_its_margin_of_every_hold(alice: Any, left: int, decides: bool) -> None:
    """The hold counts from the first sending of the question, which was at 0."""
    alice.auction()
    alice.grant(now=SECOND)
    effects = alice.vote(now=HOLD - MARGIN - left)
    assert types(records(effects)) == ([CommitDecided] if decides else [VoidAsked])


@pytest.mark.parametrize(("valid_for", "decides"), [(MARGIN + 10, True), (MARGIN + 9, False)])
def test_the_decision_needs_its_margin_of_the_money_set_aside(alice: Any, valid_for: int, decides: bool) -> None:
    """A duration counts from the first sending of the question, at 0; the vote comes at 10."""
    alice.go("auction", "grant")
    effects = alice.vote(now=10, valid_for=valid_for)
    assert types(records(effects)) == ([CommitDecided] if decides else [VoidAsked])
    assert types(contents(effects)) == ([c.Commitment] if decides else [c.HoldCancelled, c.OrderWithdrawal])


@pytest.mark.parametrize(
    "change",
    [{"user": "mallory"}, {"lines": ()}, {"valid_until": 5}],
    ids=lambda change: next(iter(change)),
)
def test_a_vote_for_other_terms_decides_nothing(alice: Any, change: dict[str, Any]) -> None:
    alice.go("auction", "grant")
    with pytest.raises(RemoteProtocolError, match="for another order"):
        alice.vote(**change)
    assert not alice.confirmation.decided


# -- settlement ------------------------------------------------------------------------------------------------------


def test_a_proof_that_lacks_anything_settles_nothing(alice: Any) -> None:
    alice.committed()
    right = alice.proof()
    agreement, paid = right.agreement.body, right.payment
    for wrong in (
        replace(right, agreement=Signed(replace(agreement, cost=1), ("alice", "res1"))),
        replace(right, payment=replace(paid, amount=paid.amount - 1)),
        replace(right, payment=replace(paid, agreement_id="another")),
        replace(right, payment_seal=seal_of(paid, "res1", "res1")),
        replace(right, payment_seal=seal_of(paid, "bank", "res1", Role.KEEPER)),
        replace(right, payment_seal=seal_of(paid, "bank", "res2")),
        replace(right, payment_seal=seal_of(paid, "mallory", "res1", Role.BANK)),
    ):
        with pytest.raises(RemoteProtocolError, match="the proof"):
            alice.hear("res1", wrong)
    assert alice.outcome is None


# -- voiding and going on --------------------------------------------------------------------------------------------


def test_who_has_confirmed_can_refuse_no_more(alice: Any) -> None:
    alice.committed()
    agreement = alice.confirmation.agreements[0]
    alice.hear("res1", c.Confirmed(agreement.agreement_id, agreement.offer.offer_id))
    assert alice.hear("res1", c.HoldRefused("r1", "offer-res1-1", RefusalCode.HOLD_EXPIRED)) == []


def limit(alice: Any) -> int:
    """Let time pass to the instant at which the user gives the purchase up."""
    while alice.confirmation.state.value == "confirming":
        before = alice.party.deadline
        if before >= Timing().confirm_limit:
            return int(before)
        alice.tick(before)
    raise AssertionError


@pytest.mark.parametrize("silent", ["res1", "res2"])
def test_the_silent_one_is_passed_over_and_the_other_asked_again(alice_with_two_units: Any, silent: str) -> None:
    alice = alice_with_two_units
    alice.committed(same_resource=False)
    for each in alice.confirmation.agreements:
        if each.resource != silent:
            alice.hear(each.resource, c.Confirmed(each.agreement_id, each.offer.offer_id))
    now = limit(alice)
    effects = alice.tick(now)
    assert [each.receiver for each in messages(effects, c.OrderWithdrawal)] == ["bank"]
    lines = tuple(
        c.OrderLine(e.agreement_id, e.resource, e.cost, e.offer.offer_id) for e in alice.confirmation.agreements
    )
    alice.hear("bank", c.OrderVoided(alice.confirmation.order_id, "withdrawn", "", lines), now)
    assert alice.confirmation.result.blamed == {silent}


# -- claims ----------------------------------------------------------------------------------------------------------


def test_a_slot_that_is_paid_back_unasked_is_its_sellers_loss(alice: Any) -> None:
    """The bank's word may come before the seller's."""
    agreement_id = alice.bought()
    alice.hear("bank", c.ChangePosted(agreement_id, 0, "t", -5000))
    assert alice.party.changes.history.ended[agreement_id].cause == "res1 has given it back"
    assert alice.party.agreement_state(agreement_id) == "lost"


# -- restarts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("why", ["failed", "refused", "silent"])
def test_a_restart_after_the_void_was_asked_for_asks_again(why: str, alice: Any) -> None:
    alice.committed()
    if why == "failed":
        alice.hear("res1", alice.failed())
    elif why == "refused":
        alice.hear("res1", c.HoldRefused("r1", "offer-res1-1", RefusalCode.HOLD_EXPIRED))
    else:
        alice.tick(limit(alice))
    assert isinstance(alice.journal[-1], VoidAsked)
    _, effects = restarted_user(alice.journal, MINUTE)
    assert types(contents(effects)) == [c.OrderWithdrawal]
    if why == "failed":  # the crash came between the two records
        again, effects = restarted_user(alice.journal[:-1], MINUTE)
        assert types(contents(effects)) == [c.OrderWithdrawal]
        assert again.party.doubts()["r1"].startswith("a unit has failed; ")


STORIES = {
    "settled": ("commit", "settle"),
    "void": ("commit", "fail", "void"),
    "posted after failure": ("commit", "fail", "post", "refund"),
    "cancelled": ("commit", "settle", "cancel", "not cancelled", "refund"),
    "next best": ("commit", "fail", "void", "grant next", "vote", "settle"),
}
"""Purchases with different ends."""


@pytest.mark.parametrize("name", STORIES)
@pytest.mark.parametrize("bank_says", ["posted", "void"])
def test_cut_anywhere_the_journal_never_pays_and_forgets(name: str, bank_says: str) -> None:
    """The journal is cut behind every record, the user restarted, and the bank says how its order stands.

    Whatever the bank has posted the user then has, or claims back or has back; whatever it has voided the user has
    not. A bank that has said one of the two never says the other.
    """
    journal = PARTIES["alice"]().go(*STORIES[name]).journal
    for cut in range(1, len(journal) + 1):
        prefix = journal[:cut]
        again, effects = restarted_user(prefix, SECOND)
        orders = [each for each in prefix if isinstance(each, FundsAsked)]
        if not orders:
            assert not again.party.agreements
            continue
        order = orders[-1]
        closed = next((e for e in prefix if isinstance(e, OrderClosed) and e.order_id == order.order_id), None)
        settled = any(isinstance(e, UnitSettled) and e.agreement_id == order.agreements[0].agreement_id for e in prefix)
        is_posted = settled or (bool(closed.transfers) if closed is not None else bank_says == "posted")
        decided = any(isinstance(e, CommitDecided) and e.order_id == order.order_id for e in prefix)
        if is_posted and not decided:
            continue  # no agreement has been signed, so the bank cannot have posted
        finish(again, effects, order, is_posted)
        (agreement,) = order.agreements
        state = again.party.agreement_state(agreement.agreement_id)
        assert state in (("active", "cancelling", "cancelled", "lost") if is_posted else ("void",)), (cut, prefix[-1])
        assert again.outcome is not None
        bought = [unit.agreement_id for unit in again.outcome.units]
        assert bought == ([agreement.agreement_id] if is_posted else [])
        told = [each.failure.body.agreement_id for each in prefix if isinstance(each, FailureTold)]
        failed = agreement.agreement_id in told
        if failed and is_posted:
            assert state != "active", (cut, prefix[-1])


def finish(again: Any, effects: list[Any], order: FundsAsked, is_posted: bool) -> None:
    """Answer for the resource and the bank until the request has ended."""
    (agreement,) = order.agreements
    transfers = (c.PaymentMade(agreement.agreement_id, "t", agreement.cost),)
    for _ in range(20):
        if again.outcome is not None:
            return
        for content in contents(effects):
            if isinstance(content, c.OrderWithdrawal) and is_posted:
                again.hear("bank", c.OrderPosted(order.order_id, transfers), SECOND)
            elif isinstance(content, c.OrderWithdrawal):
                again.hear("bank", c.OrderVoided(order.order_id, "withdrawn"), SECOND)
            elif isinstance(content, c.Commitment) and is_posted:
                again.hear(agreement.resource, again.proof(), SECOND)
            elif isinstance(content, c.Commitment):
                again.hear("bank", c.OrderVoided(order.order_id, "expired"), SECOND)
            elif isinstance(content, c.HoldCancelled):
                again.hear(f"res{content.offer_id[9]}", content, SECOND)
        waits = again.outcome is None and again.party.deadline is not None  # an ended one waits for the archive only
        effects = again.tick(again.party.deadline) if waits else []


# -- questions and listings ------------------------------------------------------------------------------------------


def test_the_bank_may_take_as_long_as_the_holds_last(alice: Any) -> None:
    alice.go("auction", "grant")
    asked = []
    while alice.party.deadline < HOLD - MARGIN:
        now = alice.party.deadline
        asked += types(contents(alice.tick(now)))
    assert set(asked) == {c.PaymentOrder}
    assert alice.party.deadline == HOLD - MARGIN
    assert types(contents(alice.tick(HOLD - MARGIN))) == [c.HoldCancelled, c.OrderWithdrawal]
