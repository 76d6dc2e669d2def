"""One purchase: its machines side by side, and what is kept of it once it has ended."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ramp.model import contents as c
from ramp.model.acl import Performative
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.outcome import RequestStatus
from ramp.protocol.progress import ApprovalAsked
from ramp.protocol.timing import Timing


def kinds(effects: list[Any]) -> set[type]:
    return {type(effect.message.content) for effect in effects if isinstance(effect, fx.Send)}


def test_a_hold_is_let_go_while_the_money_is_asked_for(alice: Any) -> None:
    """res1 stays silent, res2 holds: the cancelled hold and the order are both repeated, at one tick."""
    alice.auction()
    while c.HoldCancelled not in kinds(alice.tick(alice.party.deadline)):
        assert alice.party.deadline < MINUTE
    now = alice.party.deadline
    assert c.PaymentOrder in kinds(alice.grant("res2", now=now))
    assert kinds(alice.tick(now + 2 * SECOND)) >= {c.HoldCancelled, c.PaymentOrder}


def test_rounds_are_told_once_and_then_on_record_only(alice: Any, restarted_user: Any) -> None:
    alice.bought()
    told = alice.outcome
    assert len(told.rounds) == 1
    again, _ = restarted_user(alice.journal, SECOND)
    assert again.outcome.status is RequestStatus.COMMITTED
    assert again.outcome.units == told.units
    assert again.outcome.rounds == ()


@pytest.mark.parametrize("registered", [None, ()])
def test_why_there_was_nobody_to_ask(alice: Any, registered: tuple[str, ...] | None) -> None:
    """A directory that is silent, or one that knows of nobody: the owner does different things about the two."""
    unit = RequestUnit(1, 70, 3 * HOUR, TotalCores(16), not_before=HOUR, wall_time=HOUR)
    alice.command(ev.RequestSubmitted("r1", RequestForQuotation((unit,)), ev.AuctionOptions(rounds=1)))
    if registered is not None:
        alice.hear("directory", c.DirectoryListing("r1", "resource-trader", registered))
    while alice.outcome is None:
        assert alice.party.deadline <= MINUTE
        alice.tick(alice.party.deadline)
    told = "the directory does not answer" if registered is None else "no resource is registered in the market"
    assert (alice.outcome.status, alice.outcome.reason) == (RequestStatus.NO_OFFERS, told)
    assert alice.outcome.code == ""  # codes are of rules that have failed


# -- what the owner reads of the units -------------------------------------------------------------------------------


def unmet(one: Any, *offers: Any, units: int = 1, **options: Any) -> list[Any]:
    """Nobody meets the request; in the extra round res1 makes its best offers."""
    unit = RequestUnit(1, 70, 3 * HOUR, TotalCores(16), not_before=HOUR, wall_time=HOUR)
    wanted = RequestForQuotation(tuple(replace(unit, number=number) for number in range(1, units + 1)))
    one.command(ev.RequestSubmitted("r1", wanted, ev.AuctionOptions(rounds=1, **options)))
    one.hear("directory", c.DirectoryListing("r1", "resource-trader", ("res1",)))
    refused = tuple(Refusal(number, RefusalCode.PRICE) for number in range(1, units + 1))
    one.hear("res1", c.Proposal("r1", 1, refusals=refused), performative=Performative.REFUSE)
    return list(one.hear("res1", c.Proposal("r1", 2, offers), performative=Performative.PROPOSE))


def late_offer(one: Any, unit: int = 1) -> Any:
    return replace(one.offer("res1", 60, unit), start=3 * HOUR, end=4 * HOUR)


def test_a_unit_that_is_bought_as_offered_and_as_wanted(alice: Any) -> None:
    alice.bought()
    (unit,) = alice.outcome.units
    assert (unit.meets_request, unit.paid, unit.cost) == (True, None, unit.offer.cost)


def test_an_approved_best_offer_is_bought_as_one_that_does_not_meet_the_request(alice: Any) -> None:
    offer = late_offer(alice)
    effects = unmet(alice, offer, approval=ev.Approval.ASK)
    (asked,) = [each.progress for each in effects if isinstance(each.progress, ApprovalAsked)]
    assert (asked.offers, asked.meets) == ((offer,), (False,))
    alice.command(ev.OffersApproved("r1", True))
    alice.grant()
    alice.vote()
    alice.hear("res1", alice.proof())
    (unit,) = alice.outcome.units
    assert (alice.outcome.status, unit.offer, unit.meets_request) == (RequestStatus.COMMITTED, offer, False)


def test_best_offers_are_shown_as_such_where_nothing_is_bought(alice: Any) -> None:
    offer = late_offer(alice)
    unmet(alice, offer)
    (unit,) = alice.outcome.units
    assert alice.outcome.status is RequestStatus.NO_OFFERS
    assert (unit.offer, unit.meets_request, unit.paid) == (offer, False, None)
    assert alice.outcome.reason == "no offer meets the request for unit 1; the best other offers are shown"


def test_the_units_are_named_that_have_no_offer_at_all(alice: Any) -> None:
    """Unit 1 has a best offer, unit 2 none: it is not worth asking the owner."""
    unmet(alice, late_offer(alice), units=2, approval=ev.Approval.ASK)
    assert alice.outcome.status is RequestStatus.NO_OFFERS
    assert alice.outcome.reason == "no offer meets the request for unit 2"
    assert [unit.unit for unit in alice.outcome.units] == [1]


def test_several_units_without_an_offer_are_named_one_by_one(alice: Any) -> None:
    unmet(alice, late_offer(alice), units=3, approval=ev.Approval.ASK)
    assert alice.outcome.reason == "no offer meets the request for unit 2, 3"


def test_a_quotation_at_the_price_offered_says_no_other(alice: Any) -> None:
    unit = RequestUnit(1, 70, 3 * HOUR, TotalCores(16), not_before=HOUR, wall_time=HOUR)
    options = ev.AuctionOptions(rounds=1, quote_only=True)
    alice.command(ev.RequestSubmitted("r1", RequestForQuotation((unit,)), options))
    alice.hear("directory", c.DirectoryListing("r1", "resource-trader", ("res1",)))
    alice.hear("res1", c.Proposal("r1", 1, (alice.offer("res1", 50),)), performative=Performative.PROPOSE)
    (quoted,) = alice.outcome.units
    assert alice.outcome.status is RequestStatus.QUOTED
    assert (quoted.meets_request, quoted.paid, quoted.cost) == (True, None, quoted.offer.cost)


# -- many at once ----------------------------------------------------------------------------------------------------


def test_requests_that_are_due_at_the_same_time_all_act(alice: Any) -> None:
    unit = RequestUnit(1, 70, 3 * HOUR, TotalCores(16), not_before=HOUR, wall_time=HOUR)
    for request_id in ("r1", "r2"):
        alice.command(ev.RequestSubmitted(request_id, RequestForQuotation((unit,)), ev.AuctionOptions()))
    sent = [each.message.conversation_id for each in alice.tick(alice.party.deadline) if isinstance(each, fx.Send)]
    assert sent == ["r1", "r2"]


def test_a_request_that_a_wrong_clock_forbids_has_not_begun(alice: Any) -> None:
    alice.command(ev.ClockAsked("clock-1"))
    alice.hear("bank", c.ClockReading("clock-1", HOUR))
    unit = RequestUnit(1, 70, 3 * HOUR, TotalCores(16), not_before=HOUR, wall_time=HOUR)
    (said,) = alice.command(ev.RequestSubmitted("r1", RequestForQuotation((unit,)), ev.AuctionOptions()), 5)
    outcome = said.progress.outcome
    assert (outcome.status, outcome.started_at, outcome.duration) == (RequestStatus.FAILED, 5, 0)
    assert outcome.code == ""  # codes are of rules that have failed
    assert "3600.000 s behind the bank's" in outcome.reason


# -- what answers refer to -------------------------------------------------------------------------------------------


def replies(effects: list[Any]) -> list[tuple[str, Any]]:
    return [(each.message.reply_with, each.message.reply_by) for each in effects if isinstance(each, fx.Send)]


def test_what_wants_an_answer_names_itself_and_says_until_when(alice: Any) -> None:
    """FIPA ACL: the answer's `in-reply-to` repeats `reply-with`, and is awaited for as long as `reply-by` says."""
    asked = alice.command(ev.AccountAsked("q", None, None))
    assert replies(asked) == [("q", Timing().query_limit)]
    alice.auction()
    alice.command(ev.RequestWithdrawn("r1"))
    assert ("offer-res1-1", None) in replies(alice.tick(alice.party.deadline))


def test_a_conversation_of_many_questions_names_each(alice: Any) -> None:
    """Directory, round, vote, order and commitment; only what is over at a known time says when."""
    unit = RequestUnit(1, 70, 3 * HOUR, TotalCores(16), not_before=HOUR, wall_time=HOUR)
    options = ev.AuctionOptions(rounds=1, round_time=9 * SECOND)
    said = replies(alice.command(ev.RequestSubmitted("r1", RequestForQuotation((unit,)), options)))
    said += replies(alice.hear("directory", c.DirectoryListing("r1", "resource-trader", ("res1",))))
    made = c.Proposal("r1", 1, (alice.offer("res1", 50),))
    said += replies(alice.hear("res1", made, performative=Performative.PROPOSE))
    said += replies(alice.grant())
    agreement = alice.confirmation.agreements[0]
    said += replies(alice.vote())
    assert said == [
        ("r1/directory", Timing().discovery_limit),
        ("r1/round/1", 9 * SECOND),
        ("offer-res1-1", Timing().vote_limit),
        (agreement.order_id, None),
        (agreement.agreement_id, None),
    ]
