"""A journal whose first records are lost: a decision that was made is kept wherever its agreements can be found."""

from __future__ import annotations

from typing import Any

import pytest

from ramp.model import contents as c
from ramp.model.instant import SECOND
from ramp.protocol import effects as fx
from ramp.protocol.outcome import RequestStatus
from ramp.protocol.progress import RecordsMissing
from ramp.protocol.records import CommitDecided, FundsAsked, RequestConcluded, RequestStarted, UnitSettled


def told(effects: list[Any]) -> list[str]:
    progress = [each.progress for each in effects if isinstance(each, fx.Report)]
    return [each.what for each in progress if isinstance(each, RecordsMissing) and each.request_id == "r1"]


def without(journal: list[Any], *kinds: type) -> list[Any]:
    return [each for each in journal if not isinstance(each, (*kinds, RequestConcluded))]


def settled_both(one: Any) -> None:
    """Two units, one from each resource, both paid."""
    one.committed(same_resource=False)
    for index, resource in enumerate(("res1", "res2")):
        one.hear(resource, one.proof(index))


@pytest.mark.parametrize(
    ("lost", "says"),
    [
        ((RequestStarted,), ["its RequestStarted is not in the journal; it is taken up from its agreements"]),
        (
            (FundsAsked,),
            ["the FundsAsked of order order-alice-1 is not in the journal; 2 of its 2 agreements"],
        ),
        (
            (FundsAsked, CommitDecided),
            ["the FundsAsked of order order-alice-1 is not in the journal; 2 of its 2 agreements"],
        ),
        (
            (RequestStarted, FundsAsked),
            [
                "its RequestStarted is not in the journal; it is taken up from its agreements",
                "the FundsAsked of order order-alice-1 is not in the journal; 2 of its 2 agreements",
            ],
        ),
    ],
)
def test_what_was_paid_is_known_from_what_is_left(
    lost: tuple[type, ...], says: list[str], alice_with_two_units: Any, restarted_user: Any
) -> None:
    one = alice_with_two_units
    settled_both(one)
    again, effects = restarted_user(without(one.journal, *lost), SECOND)
    assert [reason[: len(expected)] for reason, expected in zip(told(effects), says, strict=True)] == says
    assert again.party.agreements == one.party.agreements
    assert again.outcome.status is RequestStatus.COMMITTED
    assert [unit.agreement_id for unit in again.outcome.units] == [unit.agreement_id for unit in one.outcome.units]


def test_a_whole_journal_lacks_nothing(alice_with_two_units: Any, restarted_user: Any) -> None:
    settled_both(alice_with_two_units)
    _, effects = restarted_user(without(alice_with_two_units.journal), SECOND)
    assert told(effects) == []


def test_of_two_units_one_is_found(alice_with_two_units: Any, said: Any, restarted_user: Any) -> None:
    """One proof only is on record: that unit is bought, and the bank is asked what became of the order."""
    one = alice_with_two_units
    one.committed(same_resource=False)
    one.hear("res2", one.proof(1))
    found = one.confirmation.agreements[1]
    again, effects = restarted_user(without(one.journal, RequestStarted, FundsAsked), SECOND)
    (_, reason) = told(effects)
    assert "1 of its 2 agreements" in reason
    assert again.party.agreements == {found.agreement_id: found}
    started = again.party.purchases["r1"].request
    assert [unit.number for unit in started.units] == [2]
    assert said(effects) == []  # that unit is paid, and the bank posts all or nothing


@pytest.mark.parametrize("lost", [(FundsAsked,), (FundsAsked, CommitDecided)])
def test_the_only_unit_is_found_by_its_proof(lost: tuple[type, ...], alice: Any, restarted_user: Any) -> None:
    agreement_id = alice.bought()
    again, effects = restarted_user(without(alice.journal, *lost), SECOND)
    (reason,) = told(effects)
    assert "1 of its 1 agreements" in reason
    assert [unit.agreement_id for unit in again.outcome.units] == [agreement_id]


def test_one_of_two_units_is_found_where_the_decision_is_lost_too(
    alice_with_two_units: Any, restarted_user: Any
) -> None:
    one = alice_with_two_units
    one.committed(same_resource=False)
    one.hear("res2", one.proof(1))
    _, effects = restarted_user(without(one.journal, FundsAsked, CommitDecided), SECOND)
    (reason,) = told(effects)
    assert "1 of its 2 agreements" in reason


def test_a_decision_without_any_agreement_is_reported(alice: Any, said: Any, restarted_user: Any) -> None:
    alice.committed()
    again, effects = restarted_user(without(alice.journal, RequestStarted, FundsAsked, UnitSettled), SECOND)
    (of_request, of_order) = told(effects)
    assert of_request == "its RequestStarted is not in the journal; nothing says what was to be bought"
    assert "0 of its 1 agreements" in of_order
    assert again.party.purchases == {}
    assert [each for each in said(effects) if isinstance(each, c.Commitment)] == []


def test_what_was_not_decided_without_its_first_record_is_voided(alice: Any, said: Any, restarted_user: Any) -> None:
    alice.auction()
    alice.grant()
    _, effects = restarted_user(without(alice.journal, RequestStarted), SECOND)
    assert len(told(effects)) == 1
    assert {type(each) for each in said(effects)} == {c.HoldCancelled, c.OrderWithdrawal}
