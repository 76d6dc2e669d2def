"""An order that the bank has closed: the same after a restart, unit by unit, and nothing forgotten meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from ramp.model import contents as c
from ramp.model.instant import SECOND
from ramp.protocol import effects as fx
from ramp.protocol.outcome import RequestStatus
from ramp.protocol.progress import UnitAdvanced
from ramp.protocol.records import OrderClosed


def posted(alice: Any) -> c.OrderPosted:
    agreements = alice.confirmation.agreements
    transfers = tuple(c.PaymentMade(each.agreement_id, f"t-{each.agreement_id}", each.cost) for each in agreements)
    return c.OrderPosted(alice.confirmation.order_id, transfers)


def up_to_the_closing(alice: Any) -> list[Any]:
    """The journal as a crash leaves it that comes right after the bank's last word."""
    (last,) = [index for index, record in enumerate(alice.journal) if isinstance(record, OrderClosed)]
    return list(alice.journal[: last + 1])


def steps(effects: list[Any]) -> list[tuple[int, str]]:
    told = [each.progress for each in effects if isinstance(each, fx.Report)]
    return [(each.unit, each.stage) for each in told if isinstance(each, UnitAdvanced)]


def test_posted_after_all_settles_every_unit_that_has_not_failed(alice_with_two_units: Any) -> None:
    alice = alice_with_two_units
    alice.committed(same_resource=False)
    failed = alice.failed(0)
    alice.hear("res1", failed)
    effects = alice.hear("bank", posted(alice))
    assert [step for step in steps(effects) if step[1] == "settled"] == [(2, "settled")]


@pytest.mark.parametrize("fails", [False, True])
def test_a_posted_order_is_the_same_after_a_restart(
    alice_with_two_units: Any, restarted_user: Any, fails: bool
) -> None:
    alice = alice_with_two_units
    alice.committed(same_resource=False)
    if fails:
        alice.hear("res1", alice.failed(0))
    else:
        alice.tick(alice.party.deadline + 600 * SECOND)  # nobody settles, so the bank is asked to void
    alice.hear("bank", posted(alice))
    before = alice.outcome
    again, _ = restarted_user(up_to_the_closing(alice), 700 * SECOND)
    assert (again.outcome.status, again.outcome.units) == (before.status, before.units)
    states = [alice.party.agreement_state(each.agreement_id) for each in before.units]
    assert [again.party.agreement_state(each.agreement_id) for each in before.units] == states


def test_a_voided_order_is_void_after_a_restart(alice: Any, restarted_user: Any) -> None:
    alice.committed()
    alice.hear("res1", alice.failed())
    alice.hear("bank", c.OrderVoided(alice.confirmation.order_id, "withdrawn", "it burns"))
    again, _ = restarted_user(up_to_the_closing(alice), SECOND)
    assert (again.outcome.status, again.outcome.units) == (RequestStatus.FAILED, ())


def test_a_posting_of_somebody_elses_agreements_closes_nothing(alice: Any, refused: Any) -> None:
    alice.committed()
    alice.hear("res1", alice.failed())
    with refused:
        alice.hear("bank", c.OrderPosted(alice.confirmation.order_id, (c.PaymentMade("a-other", "t", 5),)))
    assert alice.confirmation.state.value == "voiding"
