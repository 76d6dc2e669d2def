"""A bug in one conversation: it is taken up again from the journal as after a restart; what has ended leaves memory."""

from typing import Any

import pytest

from ramp.model import contents as c
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.outcome import RequestStatus
from ramp.protocol.progress import ChangeEnded, RecordsMissing, RequestEnded
from ramp.protocol.records import AcceptanceAsked, CommitDecided, FundsAsked, RequestStarted
from ramp.protocol.resource.participant import Participant
from ramp.protocol.resource.slots import kept_participants as party
from ramp.protocol.timing import Timing
from ramp.protocol.user.changing.desk import AGENT_FAILED
from ramp.protocol.user.party import EndedRequests
from tests.unit.protocol.conftest import archived, contents, reports, resource_with, restarted_resource, restarted_user

BUG = ZeroDivisionError("a bug")
RETENTION = Timing().retention
SLOT_END = 2 * HOUR


def raise_bug(*_: Any) -> Any:
    raise BUG


@pytest.mark.parametrize(
    "steps", [("auction",), ("auction", "grant"), ("commit",), ("commit", "fail"), ("commit", "settle")], ids="-".join
)
def test_a_request_goes_on_as_after_a_restart(steps: tuple[str, ...], alice: Any) -> None:
    alice.go(*steps)
    restarted, expected = restarted_user(alice.journal, SECOND)
    effects = alice.party.resume("r1", tuple(alice.journal), SECOND)
    assert effects == expected
    assert alice.party.agreements == restarted.party.agreements
    for _ in range(5):
        assert alice.party.deadline == restarted.party.deadline
        if alice.party.deadline is None:
            break
        now = alice.party.deadline
        assert alice.tick(now) == restarted.tick(now)
    assert alice.party.purchases.keys() == restarted.party.purchases.keys()


def test_a_claim_is_a_conversation_of_its_own_and_goes_on_undisturbed(alice: Any) -> None:
    alice.go("commit", "fail", "post")
    due = alice.party.deadline
    assert alice.party.resume("r1", tuple(alice.journal), SECOND) == []
    assert alice.party.deadline == due
    assert alice.party.agreement_state("agreement-alice-1") == "cancelling"


def test_all_requests_end_that_a_restart_interrupts(alice: Any) -> None:
    for request_id in ("r1", "r2"):
        alice.submit(request_id=request_id)
    _, effects = restarted_user(alice.journal, SECOND)
    assert [each.outcome.request_id for each in reports(effects, RequestEnded)] == ["r1", "r2"]


def test_a_request_of_which_nothing_is_on_record_has_failed(alice: Any) -> None:
    alice.submit(request_id="r1")
    (ended,) = reports(alice.party.resume("r1", (), 5), RequestEnded)
    assert ended.outcome.request_id == "r1"
    assert ended.outcome.status is RequestStatus.FAILED
    assert (ended.outcome.started_at, ended.outcome.duration) == (5, 0)
    assert "r1" not in alice.party.purchases
    assert alice.party.deadline is None
    assert alice.party.resume("r1", (), 5) == []  # it is told once


def test_a_cancellation_goes_on_as_after_a_restart(alice: Any) -> None:
    agreement_id = alice.bought()
    alice.command(ev.AgreementCancelled(agreement_id, "no"), 1)
    purchase = alice.party.purchases["r1"]
    restarted, expected = restarted_user(alice.journal, SECOND)
    assert alice.party.resume(agreement_id, tuple(alice.journal), SECOND) == expected
    assert expected
    assert alice.party.purchases["r1"] is purchase
    for one in (alice, restarted):
        assert one.party.agreement_state(agreement_id) == "cancelling"
        one.hear("bank", c.ChangePosted(agreement_id, 0, "t", -5), SECOND)
        assert one.party.agreement_state(agreement_id) == "cancelled"


def test_a_request_of_which_too_little_is_on_record_is_reported_and_left(alice: Any) -> None:
    alice.go("auction", "grant")
    rest = [each for each in alice.journal if isinstance(each, AcceptanceAsked)]
    again, effects = restarted_user(rest, SECOND)
    (missing,) = reports(effects, RecordsMissing)
    assert missing.request_id == "r1"
    assert again.party.purchases == {}


# -- resources -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "steps", [("hold",), ("hold", "commit"), ("hold", "commit", "pay"), ("hold", "let go")], ids="-".join
)
def test_an_accepted_offer_goes_on_as_after_a_restart(steps: tuple[str, ...], resource: Any) -> None:
    offer = resource.go(*steps).first.offer
    other, _ = resource.hold("r2")
    untouched = resource.party.participants[other.offer_id]
    its_own = [each for each in resource.journal if offer.offer_id in repr(each)]
    restarted, expected = restarted_resource(its_own, SECOND)
    effects = resource.answered(resource.party.resume(offer.offer_id, tuple(resource.journal), SECOND), SECOND)
    assert effects == expected[1:]  # the first is its registration
    assert resource.party.participants[other.offer_id] is untouched
    assert resource.state(offer) == restarted.state(offer)
    assert resource.party.participants[offer.offer_id].deadline == restarted.party.participants[offer.offer_id].deadline


@pytest.mark.parametrize(
    "asked", [c.ChangeCall("a1", 1, 32, SLOT_END, 70), c.JobOrder("job-1", "a1", 16, 1, HOUR, ("./run",))], ids=type
)
def test_a_bug_in_what_is_asked_of_a_sold_slot_leaves_the_others_alone(resource: Any, asked: Any) -> None:
    offer = resource.sell()
    resource.party.sizes.on_growth = resource.party.jobs.on_message = raise_bug
    assert resource.hear("alice", asked, SECOND) == [fx.TakeUpAgain(offer.offer_id, BUG)]


def test_the_last_of_what_was_released_is_remembered(resource: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(party, "RELEASED_MAX", 1)
    offers = []
    for request_id in ("r1", "r2"):
        offer, _ = resource.hold(request_id)
        resource.hear("alice", c.HoldCancelled(request_id, offer.offer_id))
        offers.append(offer.offer_id)
        assert list(resource.party.participants) == [offer.offer_id]


def test_a_sale_that_could_not_be_taken_up_at_the_start_is_taken_up_after_it(
    resource: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer = resource.go("hold", "commit").first.offer
    with monkeypatch.context() as broken:
        broken.setattr(Participant, "recover", raise_bug)
        again, effects = restarted_resource(resource.journal, SECOND)
        assert fx.TakeUpAgain(offer.offer_id, BUG) in effects
    _, expected = restarted_resource(resource.journal, SECOND)
    assert again.answered(again.party.resume(offer.offer_id, tuple(resource.journal), SECOND), SECOND) == expected[1:]
    assert again.state(offer) == "settling"


def test_what_is_forgotten_takes_no_other_sale_with_it(resource: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two slots under one agreement id, the second since the first had gone; after a restart both are there again."""
    first = resource.go("hold", "commit").first.offer
    with monkeypatch.context() as small:
        small.setattr(party, "RELEASED_MAX", 0)
        resource.hear("bank", c.PaymentRefused("a1", "withdrawn"))
    second, _ = resource.hold("r2")
    resource.commit(second)
    again, _ = restarted_resource(resource.journal, SECOND)
    again.party.forget(first.offer_id)
    again.hear("bank", c.PaymentMade("a1", "t1", second.cost), SECOND)
    assert again.state(second) == "sold"


def test_a_sale_that_rests_is_out_of_memory(resource: Any) -> None:
    offer = resource.sell()
    resource.party.forget(offer.offer_id)
    assert resource.hear("bank", c.ChangePosted("a1", 0, "t2", -offer.cost)) == []
    assert not resource.party.participants
    resource.party.forget(offer.offer_id)  # which is not there any more


def test_a_cancellation_that_rests_is_out_of_memory(alice: Any) -> None:
    agreement_id = alice.bought()
    alice.command(ev.AgreementCancelled(agreement_id, "no"), 1)
    alice.party.forget(agreement_id)
    assert alice.party.agreement_state(agreement_id) == "active"
    alice.party.forget(agreement_id)  # which is not there any more
    alice.party.forget("r1")
    assert "r1" not in alice.party.purchases


def test_a_cancellation_of_which_nothing_is_on_record_has_failed(alice: Any) -> None:
    agreement_id = alice.bought()
    journal = tuple(alice.journal)
    alice.command(ev.AgreementCancelled(agreement_id, "no"), 1)
    (ended,) = reports(alice.party.resume(agreement_id, journal, SECOND), ChangeEnded)
    assert (ended.outcome.agreement_id, ended.outcome.done, ended.outcome.refund) == (agreement_id, False, 0)
    assert (ended.outcome.code, ended.outcome.detail) == (AGENT_FAILED, "the user agent failed before it was sent")
    assert alice.party.agreement_state(agreement_id) == "active"
    assert alice.party.resume(agreement_id, journal, SECOND) == []  # it is told once


def test_an_accepted_offer_of_which_nothing_is_on_record_binds_nobody() -> None:
    one = resource_with(holds_max=1)
    offer, _ = one.hold()
    assert one.party.resume(offer.offer_id, (), SECOND) == []
    assert one.party.participants == {}
    _, effects = one.hold("r2")  # the buyer's only slot is free again
    assert isinstance(contents(effects)[-1], c.HoldGranted)


@pytest.mark.parametrize(
    ("lost", "names"),
    [
        ((RequestStarted,), "no RequestStarted of it"),
        ((FundsAsked,), "no FundsAsked of it"),
        ((FundsAsked, CommitDecided), "no FundsAsked of it"),
        ((RequestStarted, FundsAsked), "no RequestStarted and no FundsAsked of it"),
    ],
)
def test_it_is_told_and_not_taken_up(lost: tuple[type, ...], names: str, alice: Any) -> None:
    alice.bought()
    again, effects = restarted_user([each for each in alice.journal if not isinstance(each, lost)], SECOND)
    (told,) = reports(effects, RecordsMissing)
    assert told.what == f"the journal has {names}, so it is not resumed; restore a backup"
    assert again.party.purchases == {}
    assert again.party.agreements == {}


def test_a_bug_is_noticed_where_it_happens_and_no_other_request_is_touched(alice: Any) -> None:
    alice.auction()
    alice.submit(request_id="r2")
    other = alice.party.purchases["r2"]
    alice.party.purchases["r1"].on_message = raise_bug
    assert alice.grant() == [fx.TakeUpAgain("r1", BUG)]
    alice.party.resume("r1", tuple(alice.journal), SECOND)
    assert alice.party.purchases["r2"] is other
    assert alice.party.purchases["r1"].on_message is not raise_bug


# -- users -----------------------------------------------------------------------------------------------------------


def test_what_nobody_offered_for_is_kept_for_an_hour(alice: Any) -> None:
    alice.submit(now=5)
    while alice.outcome is None:
        ended = alice.party.deadline
        alice.tick(ended)
    assert alice.party.deadline == ended + RETENTION
    assert archived(alice.tick(ended + RETENTION)) == ["r1"]


def come_to_nothing(one: Any, *request_ids: str) -> int:
    """Several requests end at the same time, for the directory is silent; when."""
    for request_id in request_ids:
        one.submit(request_id=request_id)
    limit = Timing().discovery_limit
    one.tick(limit)
    assert {one.party.purchases[each].outcome.reason for each in request_ids} == {"the directory does not answer"}
    return limit


def test_a_request_that_a_bug_has_struck_keeps_no_other_in_memory(alice: Any) -> None:
    ended = come_to_nothing(alice, "r1", "r2", "r3")
    alice.party.forget("r1")
    assert archived(alice.tick(ended + RETENTION)) == ["r2", "r3"]


def test_what_has_to_wait_for_a_later_end_keeps_nothing_behind_it_in_memory(
    alice: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    agreement_id = alice.bought()
    bought = alice.party.purchases["r1"]
    alice.submit(request_id="r2", now=SLOT_END)
    while alice.party.purchases["r2"].outcome is None:
        alice.tick(alice.party.deadline)
    both_due = SLOT_END + RETENTION + HOUR
    monkeypatch.setattr(alice.party.changes.history, "new_end", lambda _: both_due)
    ended = EndedRequests(alice.party.purchases, {}, alice.party.changes, Timing())
    ended.drew_up(alice.party.agreements[agreement_id])
    for each in (bought, alice.party.purchases["r2"]):
        ended.ended(each, SLOT_END)
    assert ended.due(both_due) == ("r2",)


@pytest.mark.parametrize("by", [-HOUR, HOUR])
@pytest.mark.parametrize(("later", "rounds"), [(10 * MINUTE - 1, 1), (10 * MINUTE, 0)])
def test_rounds_stay_in_memory_as_long_when_the_clock_is_set(alice: Any, later: int, rounds: int, by: int) -> None:
    alice.bought()
    alice.party.clock_set(by)
    alice.submit(request_id="r2", now=later - Timing().discovery_limit + by)
    while alice.party.purchases["r2"].outcome is None:
        alice.tick(alice.party.deadline)
    assert len(alice.outcome.rounds) == rounds


def test_what_is_being_given_back_is_kept_until_the_bank_has_answered_and_keeps_no_other(alice: Any) -> None:
    agreement_id, failed, late = alice.bought(), alice.failed(), SLOT_END + RETENTION
    alice.submit(request_id="r2", now=SLOT_END - Timing().discovery_limit)
    alice.tick(SLOT_END)
    alice.hear("res1", failed, late - SECOND)  # its own word, long after: the buyer claims its money
    assert archived(alice.tick(late)) == ["r2"]
    assert archived(alice.tick(late + RETENTION)) == []
    assert agreement_id in alice.party.agreements
    alice.hear("bank", c.ChangePosted(agreement_id, 0, "t", -5), late + RETENTION + SECOND)
    assert alice.party.deadline == late + 2 * RETENTION
    assert archived(alice.tick(late + 2 * RETENTION)) == ["r1", agreement_id]
