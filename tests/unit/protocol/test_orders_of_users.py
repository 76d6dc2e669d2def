"""Orders of one user: the limit on the total cost, what the bank's last word settles, and what outlives a restart."""

from dataclasses import replace
from typing import Any

import pytest

from ramp.errors import RemoteProtocolError
from ramp.model import contents as c
from ramp.model.agreement import Signed
from ramp.model.instant import HOUR, SECOND
from ramp.model.offer import RefusalCode
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.outcome import RequestStatus
from ramp.protocol.progress import UnitAdvanced
from ramp.protocol.records import OrderClosed
from ramp.protocol.timing import Timing
from ramp.protocol.user.confirmation import ORDER_EXPIRED
from ramp.protocol.user.evaluator import over_limit
from tests.unit.protocol.conftest import contents, messages, reports, restarted_user


@pytest.mark.parametrize(
    ("limit", "told"),
    [
        (None, ""),
        (80_000, ""),
        (79_999, "the offers cost 800.00 credits together, more than the limit of 799.99"),
    ],
)
def test_all_units_together_must_not_cost_more(limit: int | None, told: str) -> None:
    assert over_limit([30_000, 50_000], limit) == told


@pytest.mark.parametrize(("limit", "bought"), [(96_000, True), (95_999, False)])
def test_a_purchase_hands_its_owners_limit_on_to_the_vote(alice: Any, limit: int, bought: bool) -> None:
    """res1 asks 800.00 credits and has sold its slot meanwhile; res2, who is asked next, wants 960.00."""
    alice.open("res1", "res2", max_cost=limit)
    for resource, price in (("res1", 50), ("res2", 60)):
        alice.propose(resource, alice.offer(resource, price))
    alice.hear("res1", c.HoldRefused("r1", "offer-res1-1", RefusalCode.SLOT_TAKEN, "gone"))
    said_next = [type(each) for each in contents(alice.grant("res2"))]
    assert said_next == ([c.PaymentOrder] if bought else [c.HoldCancelled])
    assert alice.outcome is None, "it waits until the hold is let go"
    if not bought:
        alice.hear("res2", c.HoldCancelled("r1", "offer-res2-1"))
        assert alice.outcome.status is RequestStatus.REJECTED
        assert "960.00 credits together, more than the limit of 959.99" in alice.outcome.reason


# -- many at once ----------------------------------------------------------------------------------------------------


def test_a_request_that_a_wrong_clock_forbids_has_not_begun(alice: Any) -> None:
    alice.command(ev.ClockAsked("clock-1"))
    alice.hear("bank", c.ClockReading("clock-1", HOUR))
    (said,) = alice.submit(now=5)
    outcome = said.progress.outcome
    assert (outcome.status, outcome.started_at, outcome.duration) == (RequestStatus.FAILED, 5, 0)
    assert outcome.code == ""  # codes are of rules that have failed
    assert "3600.000 s behind the bank's" in outcome.reason


def up_to_the_closing(alice: Any) -> list[Any]:
    """The journal as a crash leaves it that comes right after the bank's last word."""
    (last,) = [index for index, record in enumerate(alice.journal) if isinstance(record, OrderClosed)]
    return list(alice.journal[: last + 1])


def test_posted_after_all_settles_every_unit_that_has_not_failed(alice_with_two_units: Any) -> None:
    alice = alice_with_two_units
    alice.committed(same_resource=False)
    failed = alice.failed(0)
    alice.hear("res1", failed)
    effects = alice.hear("bank", alice.posted())
    assert [step for step in stages(effects) if step[1] == "settled"] == [(2, "settled")]


@pytest.mark.parametrize("fails", [False, True])
def test_a_posted_order_is_the_same_after_a_restart(alice_with_two_units: Any, fails: bool) -> None:
    alice = alice_with_two_units
    alice.committed(same_resource=False)
    if fails:
        alice.hear("res1", alice.failed(0))
    else:
        alice.tick(alice.party.deadline + 600 * SECOND)  # nobody settles, so the bank is asked to void
    alice.hear("bank", alice.posted())
    before = alice.outcome
    again, _ = restarted_user(up_to_the_closing(alice), 700 * SECOND)
    assert (again.outcome.status, again.outcome.units) == (before.status, before.units)
    states = [alice.party.agreement_state(each.agreement_id) for each in before.units]
    assert [again.party.agreement_state(each.agreement_id) for each in before.units] == states


def test_a_posting_of_somebody_elses_agreements_closes_nothing(alice: Any, refused: Any) -> None:
    alice.go("commit", "fail")
    with refused:
        alice.hear("bank", c.OrderPosted(alice.confirmation.order_id, (c.PaymentMade("a-other", "t", 5),)))
    assert alice.confirmation.state.value == "voiding"


def stages(effects: list[Any]) -> list[tuple[int, str]]:
    return [(each.unit, each.stage) for each in reports(effects, UnitAdvanced)]


def compare_clocks(one: Any, offset: int) -> None:
    """The user's clock is ahead of the bank's by so much."""
    one.command(ev.ClockAsked("clock-1"), 10 * SECOND)
    one.hear("bank", c.ClockReading("clock-1", 10 * SECOND - offset), 10 * SECOND)


def test_every_unit_of_a_void_order_is_said_to_be_void_but_those_that_have_failed(alice_with_two_units: Any) -> None:
    one = alice_with_two_units
    one.committed(same_resource=False)
    assert stages(one.hear("res1", one.failed())) == [(1, "failed")]
    effects = one.hear("bank", c.OrderVoided(one.confirmation.order_id, "withdrawn"))
    assert [each for each in stages(effects) if each[1] != "asking"] == [(2, "voided")]


@pytest.mark.parametrize("offset", [0, 3 * SECOND])
@pytest.mark.parametrize("code", [ORDER_EXPIRED, "no_funds"])
def test_whose_order_has_run_out_too_early_reads_that_the_clock_is_wrong(alice: Any, code: str, offset: int) -> None:
    compare_clocks(alice, offset)
    alice.go("auction", "grant")
    alice.hear("bank", c.OrderRefused(alice.confirmation.order_id, code, "it says why"))
    refused, _, warning = alice.outcome.reason.partition("; ")
    assert refused == "the bank refuses the order: it says why"
    assert bool(warning) is (code == ORDER_EXPIRED and offset > 0)
    assert warning.startswith("the clock here is 3.000 s ahead of the bank's" if warning else "")


def test_a_claim_that_the_bank_has_refused_is_not_made_again_when_the_request_hears_more(alice: Any) -> None:
    alice.committed()
    (agreement,) = alice.confirmation.agreements
    alice.hear("res1", alice.failed())
    paid = (c.PaymentMade(agreement.agreement_id, "t1", agreement.cost),)
    effects = alice.hear("bank", c.OrderPosted(agreement.order_id, paid))
    assert [type(each) for each in contents(effects) if isinstance(each, Signed)] == [Signed]
    alice.hear("bank", c.ChangeRefused(agreement.agreement_id, 0, "no_funds"))
    effects = alice.propose("res2", replace(alice.offer("res2", 40), offer_id="late"), round_number=2)
    assert [type(each) for each in contents(effects)] == [c.Rejection]
    assert alice.party.agreement_state(agreement.agreement_id) == "active"


def test_an_owner_who_changes_their_mind_before_the_bank_has_voted_lets_everything_go(alice: Any) -> None:
    alice.go("auction", "grant")
    order_id = alice.confirmation.order_id
    sent = [type(each) for each in contents(alice.command(ev.RequestWithdrawn("r1"), SECOND))]
    assert sorted(kind.__name__ for kind in sent) == ["HoldCancelled", "OrderWithdrawal"]
    assert alice.vote(now=SECOND) == []  # a late yes decides nothing any more
    alice.hear("bank", c.OrderVoided(order_id, "withdrawn"), 2 * SECOND)
    assert alice.outcome.units == ()
    assert "the user withdrew the request" in alice.outcome.reason


def line(agreement: Any) -> c.OrderLine:
    return c.OrderLine(agreement.agreement_id, agreement.resource, agreement.cost, agreement.offer.offer_id)


def accepted(effects: list[Any]) -> list[str]:
    return [each.receiver for each in messages(effects, c.Acceptance)]


def test_what_is_paid_before_a_void_is_asked_for_is_proved_by_the_resources(alice: Any) -> None:
    """The bank says so only to who asks for a void: unasked it is a copy, and the proof is still awaited."""
    alice.committed()
    (agreement,) = alice.confirmation.agreements
    paid = (c.PaymentMade(agreement.agreement_id, "t1", agreement.cost),)
    assert alice.hear("bank", c.OrderPosted(agreement.order_id, paid)) == []
    alice.hear("res1", alice.proof())
    assert alice.outcome.status is RequestStatus.COMMITTED


def test_what_is_no_word_of_a_commitment_is_refused_and_who_was_not_understood_answers_nothing(alice: Any) -> None:
    alice.committed()
    assert alice.hear("res1", c.NotUnderstood("garbled")) == []
    with pytest.raises(RemoteProtocolError, match="Rejection is not a message of a commitment"):
        alice.hear("res1", c.Rejection("r1", "offer-res1-1", "no"))
    assert alice.confirmation.state.value == "confirming"


def test_when_the_bank_voids_by_itself_it_says_who_is_passed_over(alice: Any) -> None:
    """The order has run out there: its buyer has not given anybody up yet."""
    alice.committed()
    (agreement,) = alice.confirmation.agreements
    effects = alice.hear("bank", c.OrderVoided(agreement.order_id, ORDER_EXPIRED, "", (line(agreement),)))
    assert accepted(effects) == ["res2"]
    assert alice.outcome is None


def replies(effects: list[Any]) -> list[tuple[str, Any]]:
    return [(each.message.reply_with, each.message.reply_by) for each in effects if isinstance(each, fx.Send)]


def test_a_conversation_of_many_questions_names_each(alice: Any) -> None:
    """Directory, round, vote, order and commitment; only what is over at a known time says when."""
    said = replies(alice.submit(round_time=9 * SECOND))
    said += replies(alice.hear("directory", c.DirectoryListing("r1", "resource-trader", ("res1",))))
    said += replies(alice.propose("res1", alice.offer("res1", 50)))
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


def test_an_owner_reads_at_each_stage_whether_the_end_is_in_doubt(alice: Any) -> None:
    read = []
    for step in ("auction", "grant", "vote", "fail", "void"):
        purchase = alice.go(step).party.purchases["r1"]
        read.append((purchase.stage, purchase.doubt != ""))
    assert read[:3] == [("voting", False), ("reserving", False), ("confirming", False)]
    assert read[3:] == [("voiding", True), ("voting", False)]  # of the next best
