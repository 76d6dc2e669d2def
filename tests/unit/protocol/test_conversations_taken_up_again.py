"""A bug in one conversation: it is taken up again from the journal exactly as after a restart, and no other is touched.

What a restart does with a journal is the measure, and is tested by itself (test_user_party.py, test_resource_party.py).
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import pytest

from ramp.model import contents as c
from ramp.model.agreement import Signed
from ramp.model.instant import SECOND
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.outcome import RequestStatus
from ramp.protocol.progress import CancellationEnded, QueryAnswered, RecordsMissing, RequestEnded
from ramp.protocol.records import AcceptanceAsked, CancellationStarted, CommitDecided, FundsAsked, RequestStarted
from ramp.protocol.resource.participant import Participant
from ramp.protocol.resource.slots import kept_participants as party
from ramp.protocol.user.changing.desk import AGENT_FAILED

BUG = ZeroDivisionError("a bug")


def raise_bug(*_: Any) -> Any:
    raise BUG


def reports(effects: list[Any], kind: type) -> list[Any]:
    return [
        effect.progress for effect in effects if isinstance(effect, fx.Report) and isinstance(effect.progress, kind)
    ]


def submit(one: Any, request_id: str) -> list[Any]:
    unit = RequestUnit(1, 70, 3 * 3600 * SECOND, TotalCores(16), not_before=3600 * SECOND, wall_time=3600 * SECOND)
    request = RequestForQuotation((unit,))
    return list(one.command(ev.RequestSubmitted(request_id, request, ev.AuctionOptions(rounds=1))))


def bidding(one: Any) -> None:
    one.auction()


def held(one: Any) -> None:
    one.auction()
    one.grant()


def decided(one: Any) -> None:
    one.committed()


def voiding(one: Any) -> None:
    one.committed()
    one.hear("res1", one.failed())


def settled(one: Any) -> None:
    one.bought()


def claiming(one: Any) -> None:
    one.committed()
    one.hear("res1", one.failed())
    agreement = one.confirmation.agreements[0]
    paid = c.PaymentMade(agreement.agreement_id, f"payment:{agreement.agreement_id}", agreement.cost)
    one.hear("bank", c.OrderPosted(agreement.order_id, (paid,)))


@pytest.mark.parametrize("story", [bidding, held, decided, voiding, settled])
def test_a_request_goes_on_as_after_a_restart(story: Any, alice: Any, restarted_user: Any) -> None:
    story(alice)
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
    claiming(alice)
    due = alice.party.deadline
    assert alice.party.resume("r1", tuple(alice.journal), SECOND) == []
    assert alice.party.deadline == due
    assert alice.party.agreement_state("agreement-alice-1") == "cancelling"


def test_a_bug_is_noticed_where_it_happens_and_no_other_request_is_touched(alice: Any) -> None:
    alice.auction()
    submit(alice, "r2")
    other = alice.party.purchases["r2"]
    alice.party.purchases["r1"].on_message = raise_bug
    assert alice.grant() == [fx.TakeUpAgain("r1", BUG)]
    alice.party.resume("r1", tuple(alice.journal), SECOND)
    assert alice.party.purchases["r2"] is other
    assert alice.party.purchases["r1"].on_message is not raise_bug


def test_a_request_of_which_nothing_is_on_record_has_failed(alice: Any) -> None:
    submit(alice, "r1")
    (ended,) = reports(alice.party.resume("r1", (), 5), RequestEnded)
    assert ended.outcome.request_id == "r1"
    assert ended.outcome.status is RequestStatus.FAILED
    assert (ended.outcome.started_at, ended.outcome.duration) == (5, 0)
    assert "r1" not in alice.party.purchases
    assert alice.party.deadline is None
    assert alice.party.resume("r1", (), 5) == []  # it is told once


def test_a_cancellation_goes_on_as_after_a_restart(alice: Any, restarted_user: Any) -> None:
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


def test_a_cancellation_of_which_nothing_is_on_record_has_failed(alice: Any) -> None:
    agreement_id = alice.bought()
    journal = tuple(alice.journal)
    alice.command(ev.AgreementCancelled(agreement_id, "no"), 1)
    (ended,) = reports(alice.party.resume(agreement_id, journal, SECOND), CancellationEnded)
    assert (ended.outcome.agreement_id, ended.outcome.done, ended.outcome.refund) == (agreement_id, False, 0)
    assert (ended.outcome.code, ended.outcome.detail) == (AGENT_FAILED, "the user agent failed before it was sent")
    assert alice.party.agreement_state(agreement_id) == "active"
    assert alice.party.resume(agreement_id, journal, SECOND) == []  # it is told once


def test_a_cancellation_that_rests_is_out_of_memory(alice: Any, said: Any) -> None:
    agreement_id = alice.bought()
    alice.command(ev.AgreementCancelled(agreement_id, "no"), 1)
    alice.party.forget(agreement_id)
    assert alice.party.agreement_state(agreement_id) == "active"
    alice.party.forget(agreement_id)  # which is not there any more
    alice.party.forget("r1")
    assert "r1" not in alice.party.purchases


def renamed(value: Any, number: int) -> Any:
    """A record of another request: the same, with all its names changed."""
    if isinstance(value, str) and not isinstance(value, Enum):
        return (
            value.replace("r1", f"r{number}").replace("alice-1", f"alice-{number}").replace("offer", f"offer{number}")
        )
    if isinstance(value, tuple | frozenset):
        return type(value)(renamed(each, number) for each in value)
    if is_dataclass(value) and not isinstance(value, type):
        changed = {each.name: renamed(getattr(value, each.name), number) for each in fields(value) if each.init}
        return type(value)(**changed)
    return value


def test_a_restart_takes_every_request_and_every_claim_up_again(alice: Any, said: Any, restarted_user: Any) -> None:
    """Two requests that were bought, and whose resource has said that it failed, in one journal."""
    claiming(alice)
    journal = [renamed(record, number) for record in alice.journal for number in (1, 2)]
    again, effects = restarted_user(journal, SECOND)
    claims = [each.body.agreement_id for each in said(effects) if isinstance(each, Signed)]
    assert claims == ["agreement-alice-1", "agreement-alice-2"]
    without = [each for each in journal if not isinstance(each, CancellationStarted)]
    again, effects = restarted_user(without, SECOND)  # it went down before they were on record
    claims = [each.body.agreement_id for each in said(effects) if isinstance(each, Signed)]
    assert claims == ["agreement-alice-1", "agreement-alice-2"]
    assert set(again.party.purchases) == {"r1", "r2"}


def test_what_was_bought_before_stays_bought_when_more_is(alice: Any, restarted_user: Any) -> None:
    alice.bought()
    again, _ = restarted_user([renamed(record, 2) for record in alice.journal], 0)
    assert again.bought() == "agreement-alice-1"
    assert [again.party.agreement_state(f"agreement-alice-{number}") for number in (1, 2)] == ["active", "active"]


def test_every_open_request_goes_on_after_a_restart(alice: Any, said: Any, restarted_user: Any) -> None:
    voiding(alice)
    journal = [renamed(record, number) for record in alice.journal for number in (1, 2)]
    _, effects = restarted_user(journal, SECOND)
    asked = [each.order_id for each in said(effects) if isinstance(each, c.OrderWithdrawal)]
    assert asked == ["order-alice-1", "order-alice-2"]


def test_a_request_of_which_too_little_is_on_record_is_reported_and_left(alice: Any, restarted_user: Any) -> None:
    held(alice)
    rest = [each for each in alice.journal if isinstance(each, AcceptanceAsked)]
    again, effects = restarted_user(rest, SECOND)
    (missing,) = reports(effects, RecordsMissing)
    assert missing.request_id == "r1"
    assert again.party.purchases == {}


def test_a_question_that_a_bug_has_met_is_dropped(alice: Any) -> None:
    alice.command(ev.AccountAsked("q", None, None))
    effects = alice.party.resume("q", tuple(alice.journal), SECOND)
    assert len(effects) == 1
    assert isinstance(effects[0], fx.Report)
    assert alice.party.deadline is None


@pytest.mark.parametrize("name", ["r1", "agreement-alice-1"])
def test_all_that_goes_by_one_name_is_taken_up_or_told(alice: Any, name: str) -> None:
    """Whoever asks names the question, and may name it like a request or an agreement."""
    alice.committed()
    if name != "r1":
        alice.hear("res1", alice.proof())
        alice.command(ev.AgreementCancelled(name, "no"), 1)
    expected = alice.party.resume(name, tuple(alice.journal), SECOND)
    assert expected
    alice.command(ev.AccountAsked(name, None, None), 1)
    dropped = fx.Report(QueryAnswered(name, None))
    assert alice.party.resume(name, tuple(alice.journal), SECOND) == [dropped, *expected]


# -- resources -------------------------------------------------------------------------------------------------------


def promised(one: Any) -> Any:
    return one.hold()[0]


def committed(one: Any) -> Any:
    offer = promised(one)
    one.commit(offer)
    return offer


def sold(one: Any) -> Any:
    return one.sell()


def let_go(one: Any) -> Any:
    offer = promised(one)
    one.hear("alice", c.HoldCancelled("r1", offer.offer_id))
    return offer


class Journalled:
    """A resource, and what it writes."""

    def __init__(self, one: Any, written: Any) -> None:
        self.journal: list[Any] = []
        answered = one.answered

        def kept(effects: list[Any], now: int) -> list[Any]:
            self.journal += written(effects)
            return list(answered(effects, now))

        one.answered = kept


@pytest.mark.parametrize("story", [promised, committed, sold, let_go])
def test_an_accepted_offer_goes_on_as_after_a_restart(
    story: Any, resource: Any, written: Any, restarted_resource: Any
) -> None:
    kept = Journalled(resource, written)
    offer = story(resource)
    other, _ = resource.hold("r2")
    untouched = resource.party.participants[other.offer_id]
    its_own = [each for each in kept.journal if offer.offer_id in repr(each)]
    restarted, expected = restarted_resource(its_own, SECOND)
    effects = resource.answered(resource.party.resume(offer.offer_id, tuple(kept.journal), SECOND), SECOND)
    assert effects == expected[1:]  # the first is its registration
    assert resource.party.participants[other.offer_id] is untouched
    assert resource.state(offer) == restarted.state(offer)
    assert resource.party.participants[offer.offer_id].deadline == restarted.party.participants[offer.offer_id].deadline


def test_a_bug_in_one_slot_leaves_the_others_alone(resource: Any) -> None:
    offer, _ = resource.hold()
    resource.party.participants[offer.offer_id].on_commitment = raise_bug
    assert resource.commit(offer) == [fx.TakeUpAgain(offer.offer_id, BUG)]


def test_a_bug_in_what_is_asked_of_a_sold_slot_leaves_the_others_alone(resource: Any) -> None:
    offer = resource.sell()
    resource.party.sizes.on_growth = raise_bug
    call = c.ChangeCall("a1", 1, 32, offer.end, 70)
    assert resource.hear("alice", call, SECOND) == [fx.TakeUpAgain(offer.offer_id, BUG)]


def test_a_sale_that_could_not_be_taken_up_at_the_start_is_taken_up_after_it(
    resource: Any, written: Any, restarted_resource: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Journalled(resource, written)
    offer = committed(resource)
    with monkeypatch.context() as broken:
        broken.setattr(Participant, "recover", raise_bug)
        again, effects = restarted_resource(kept.journal, SECOND)
        assert fx.TakeUpAgain(offer.offer_id, BUG) in effects
    _, expected = restarted_resource(kept.journal, SECOND)
    assert again.answered(again.party.resume(offer.offer_id, tuple(kept.journal), SECOND), SECOND) == expected[1:]
    assert again.state(offer) == "settling"


def test_what_is_forgotten_takes_no_other_sale_with_it(
    resource: Any, written: Any, restarted_resource: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two slots under one agreement id, the second since the first had gone; after a restart both are there again."""
    kept = Journalled(resource, written)
    first = committed(resource)
    with monkeypatch.context() as small:
        small.setattr(party, "RELEASED_MAX", 0)
        resource.hear("bank", c.PaymentRefused("a1", "withdrawn"))
    second, _ = resource.hold("r2")
    resource.commit(second)
    again, _ = restarted_resource(kept.journal, SECOND)
    again.party.forget(first.offer_id)
    again.hear("bank", c.PaymentMade("a1", "t1", second.cost), SECOND)
    assert again.state(second) == "sold"


def test_an_accepted_offer_of_which_nothing_is_on_record_binds_nobody(resource_with: Any, said: Any) -> None:
    one = resource_with(holds_max=1)
    offer, _ = one.hold()
    assert one.party.resume(offer.offer_id, (), SECOND) == []
    assert not one.party.has_open_participants
    assert one.party.participants == {}
    _, effects = one.hold("r2")  # the buyer's only slot is free again
    assert isinstance(said(effects)[-1], c.HoldGranted)


def test_a_sale_that_rests_is_out_of_memory(resource: Any) -> None:
    offer = resource.sell()
    resource.party.forget(offer.offer_id)
    assert resource.hear("bank", c.ChangePosted("a1", 0, "t2", -offer.cost)) == []
    assert not resource.party.has_open_participants
    resource.party.forget(offer.offer_id)  # which is not there any more


def told(effects: list[Any]) -> list[str]:
    progress = [each.progress for each in effects if isinstance(each, fx.Report)]
    return [each.what for each in progress if isinstance(each, RecordsMissing) and each.request_id == "r1"]


def without(journal: list[Any], *kinds: type) -> list[Any]:
    return [each for each in journal if not isinstance(each, kinds)]


@pytest.mark.parametrize(
    ("lost", "names"),
    [
        ((RequestStarted,), "no RequestStarted of it"),
        ((FundsAsked,), "no FundsAsked of it"),
        ((FundsAsked, CommitDecided), "no FundsAsked of it"),
        ((RequestStarted, FundsAsked), "no RequestStarted and no FundsAsked of it"),
    ],
)
def test_it_is_told_and_not_taken_up(lost: tuple[type, ...], names: str, alice: Any, restarted_user: Any) -> None:
    alice.bought()
    again, effects = restarted_user(without(alice.journal, *lost), SECOND)
    (reason,) = told(effects)
    assert reason == f"the journal has {names}, so it is not resumed; restore a backup"
    assert again.party.purchases == {}
    assert again.party.agreements == {}


def test_a_whole_journal_lacks_nothing(alice: Any, restarted_user: Any) -> None:
    alice.bought()
    again, effects = restarted_user(alice.journal, SECOND)
    assert told(effects) == []
    assert again.party.agreements == alice.party.agreements != {}
