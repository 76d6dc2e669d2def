"""The keeper: its deposits, and the overview put together from its pages."""

from __future__ import annotations

from typing import Any

import pytest

from ramp.errors import RemoteProtocolError
from ramp.model import contents as c
from ramp.model.seal import Role
from ramp.protocol import effects as fx
from ramp.protocol import events as ev

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


def test_an_older_answer_to_the_first_question_is_not_taken_for_the_last_page(keeper: Any) -> None:
    """The question was sent twice; when it was answered first there was one page only."""
    ask(keeper)
    keeper.hear("bank", FIRST)
    assert keeper.hear("bank", page(1, accounts=True)) == []
    keeper.hear("bank", SECOND)
    assert len(answer(keeper.hear("bank", LAST)).trades) == 5


def test_a_page_is_the_banks(keeper: Any) -> None:
    ask(keeper)
    with pytest.raises(RemoteProtocolError, match="mallory may not speak for bank"):
        keeper.hear("mallory", LAST, role=Role.BANK)
    with pytest.raises(RemoteProtocolError, match="must come from a bank"):
        keeper.hear("bank", LAST, role=Role.KEEPER)
