"""The keeper: its deposits, and the overview put together from its pages."""

from __future__ import annotations

from typing import Any

import pytest

from ramp.errors import RemoteProtocolError
from ramp.model import contents as c
from ramp.model.acl import Performative
from ramp.model.seal import Role
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.timing import Timing

ACCOUNTS = (c.AccountLine("alice", "user", 5, 0, 0),)


def trade(number: int) -> c.TradeLine:
    return c.TradeLine(f"t{number}", number, "payment", "alice", "res", f"a{number}", f"o{number}", 5)


def page(*numbers: int, following: int = 0, accounts: bool = False) -> c.MarketOverview:
    trades = tuple(trade(number) for number in numbers)
    return c.MarketOverview("v1", 9, ACCOUNTS if accounts else (), trades, following)


FIRST, SECOND, LAST = page(1, 2, following=2, accounts=True), page(3, 4, following=4), page(5)


def ask(keeper: Any) -> list[Any]:
    return list(keeper.party.handle(ev.OverviewAsked("v1", None, 7), 0))


def answer(effects: list[Any]) -> Any:
    reports = [each.progress.answer for each in effects if isinstance(each, fx.Report)]
    return reports[0] if reports else None


def test_the_overview_is_put_together_from_its_pages(keeper: Any, said: Any) -> None:
    """Doubled pages, pages of before, and a lost one."""
    assert said(ask(keeper)) == [c.OverviewQuery("v1", None, 7, 0)]
    assert said(keeper.hear("bank", FIRST)) == [c.OverviewQuery("v1", None, 7, 2)]
    assert keeper.hear("bank", FIRST) == []
    assert said(keeper.party.tick(keeper.party.deadline)) == [c.OverviewQuery("v1", None, 7, 2)]
    assert said(keeper.hear("bank", SECOND)) == [c.OverviewQuery("v1", None, 7, 4)]
    assert keeper.hear("bank", FIRST) == []
    assert keeper.hear("bank", SECOND) == []
    whole = answer(keeper.hear("bank", LAST))
    assert whole == c.MarketOverview("v1", 9, ACCOUNTS, tuple(trade(number) for number in range(1, 6)))
    assert keeper.hear("bank", LAST) == []
    assert keeper.party.deadline is None


def test_an_overview_without_trades_is_one_page(keeper: Any) -> None:
    ask(keeper)
    assert answer(keeper.hear("bank", page(accounts=True))) == c.MarketOverview("v1", 9, ACCOUNTS)


def test_an_older_answer_to_the_first_question_is_not_taken_for_the_last_page(keeper: Any) -> None:
    """The question was sent twice; when it was answered first there was one page only."""
    ask(keeper)
    keeper.hear("bank", FIRST)
    assert keeper.hear("bank", page(1, accounts=True)) == []
    keeper.hear("bank", SECOND)
    assert len(answer(keeper.hear("bank", LAST)).trades) == 5


@pytest.mark.parametrize("following", [1, 2])
def test_a_bank_that_goes_in_circles_is_not_followed(keeper: Any, following: int) -> None:
    ask(keeper)
    keeper.hear("bank", FIRST)
    assert keeper.hear("bank", page(6, 7, following=following)) == []


def test_the_overview_is_asked_for_a_period(keeper: Any, said: Any) -> None:
    assert said(keeper.party.handle(ev.OverviewAsked("v1", 3, 7), 0)) == [c.OverviewQuery("v1", 3, 7, 0)]


def test_an_overview_nobody_asked_for_is_old_news(keeper: Any) -> None:
    assert keeper.hear("bank", LAST) == []


def test_a_page_is_the_banks(keeper: Any) -> None:
    ask(keeper)
    with pytest.raises(RemoteProtocolError, match="mallory may not speak for bank"):
        keeper.hear("mallory", LAST, role=Role.BANK)
    with pytest.raises(RemoteProtocolError, match="must come from a bank"):
        keeper.hear("bank", LAST, role=Role.KEEPER)


def test_a_deposit_is_ordered_until_it_is_answered_or_given_up(keeper: Any, said: Any) -> None:
    order = c.DepositOrder("d1", "alice", 500, "prize")
    effects = keeper.party.handle(ev.DepositOrdered("d1", "alice", 500, "prize"), 0)
    (message,) = [each.message for each in effects]
    assert (message.performative, message.receiver, message.content) == (Performative.REQUEST, "bank", order)
    assert said(keeper.party.tick(keeper.party.deadline)) == [order]  # the same order again: it counts once
    made = c.DepositMade("d1", "t", 500)
    assert answer(keeper.hear("bank", made)) == made
    keeper.party.handle(ev.DepositOrdered("d2", "alice", 500, ""), 0)
    (given_up,) = [each for each in keeper.party.tick(Timing().query_limit) if isinstance(each, fx.Report)]
    assert given_up.progress.answer is None


def test_a_refusal_is_told(keeper: Any) -> None:
    ask(keeper)
    refused = c.RequestRefused("v1", "malformed_value", "since is after until")
    assert answer(keeper.hear("bank", refused)) == refused


def test_what_is_nothing_for_a_keeper(keeper: Any) -> None:
    with pytest.raises(RemoteProtocolError, match="Confirmed is not a message for a keeper"):
        keeper.hear("res1", c.Confirmed("a1", "o1"))


def test_a_keeper_that_comes_back_waits_for_its_owner(keeper: Any) -> None:
    """What was not answered is asked again by a person, who has seen no answer."""
    assert keeper.party.recover((), 5) == []
    assert keeper.party.deadline is None


@pytest.mark.parametrize(
    "answered", [c.ChangePosted("a1", 0, "refund:a1", -700), c.RequestRefused("a1", "unknown_transfer", "no payment")]
)
def test_a_refund_is_ordered_until_the_bank_answers(keeper: Any, said: Any, answered: Any) -> None:
    order = c.RefundOrder("a1", "the machine was down")
    assert said(keeper.party.handle(ev.RefundOrdered("a1", "the machine was down"), 7)) == [order]
    assert said(keeper.party.tick(keeper.party.deadline)) == [order]
    assert answer(keeper.hear("bank", answered)) == answered
    assert keeper.party.deadline is None
