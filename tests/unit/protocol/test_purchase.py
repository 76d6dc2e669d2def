"""One purchase: its machines side by side, and what is kept of it once it has ended."""

from __future__ import annotations

from typing import Any

import pytest

from ramp.model import contents as c
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.outcome import RequestStatus


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
