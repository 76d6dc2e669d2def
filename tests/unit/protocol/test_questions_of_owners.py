"""Questions of owners to bank, machine and directory, and the keeper's deposits and overview."""

from dataclasses import replace
from typing import Any

import pytest

from ramp.errors import RemoteProtocolError
from ramp.model import contents as c
from ramp.model.instant import HOUR
from ramp.model.seal import Role
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.progress import QueryAnswered
from ramp.protocol.questions import unknown_agreements
from ramp.protocol.timing import Timing
from tests.unit.protocol.conftest import contents, reports


def test_a_resource_asks_for_its_statement_until_the_bank_answers(resource: Any) -> None:
    (query,) = contents(resource.party.handle(ev.AccountAsked("q", HOUR, 2 * HOUR), 0))
    assert query == c.AccountQuery("q", "res", HOUR, 2 * HOUR)
    asked: list[Any] = []
    while query not in asked:
        assert resource.party.deadline < Timing().query_limit
        asked += contents(resource.party.tick(resource.party.deadline))
    told = c.AccountStatement("q", "res", 5, 0, 0, 0)
    with pytest.raises(RemoteProtocolError):
        resource.hear("alice", told)
    assert reports(resource.hear("bank", told), QueryAnswered) == [QueryAnswered("q", told)]


def test_a_resource_compares_its_clock_with_the_banks(resource: Any) -> None:
    assert contents(resource.party.handle(ev.ClockAsked("clock-1"), 0)) == [c.ClockQuery("clock-1")]
    (compared,) = reports(resource.hear("bank", c.ClockReading("clock-1", HOUR)))
    assert (compared, compared.wrong) == (resource.party.clock, True)


def test_an_owner_reads_all_pages_of_a_listing(alice: Any) -> None:
    (query,) = contents(alice.command(ev.ResourcesAsked("l")))
    first, last = (c.DirectoryListing("l", query.service, names, len(names) > 1) for names in (("a", "b"), ("c",)))
    assert contents(alice.hear("directory", first)) == [replace(query, after="b")]
    assert reports(alice.hear("directory", last)) == [QueryAnswered("l", replace(last, names=("a", "b", "c")))]


def line(agreement_id: str, kind: str, amount: int) -> c.StatementLine:
    return c.StatementLine(f"{agreement_id}-{kind}", HOUR, kind, "res1", agreement_id, amount, 0)


def test_only_payments_that_nothing_mentions_and_nobody_refunded_are_unknown() -> None:
    lines = (
        line("d", "deposit", 1000),
        line("known", "payment", -10),
        line("lost", "payment", -10),
        line("lost", "payment", -5),  # a growth of the same agreement
        line("refunded", "payment", -10),
        line("partly", "payment", -10),
        line("partly", "refund", 4),
        line("long ago", "refund", 10),
        line("refunded", "refund", 10),
    )
    statement = c.AccountStatement("q", "alice", 0, 0, 0, 0, lines)
    assert unknown_agreements(statement, lambda each: each == "known") == ["lost", "partly"]


def test_bank_and_directory_answer_in_their_own_roles(alice: Any) -> None:
    alice.command(ev.AccountAsked("q", None, None))
    alice.command(ev.ResourcesAsked("l"))
    for sender, answer in (
        ("bank", c.AccountStatement("q", "alice", 5, 0, 0, 0)),
        ("directory", c.DirectoryListing("l", "resource-trader", ("res1",))),
    ):
        with pytest.raises(RemoteProtocolError, match="certified as resource"):
            alice.hear(sender, answer, role=Role.RESOURCE)
        (told,) = reports(alice.hear(sender, answer), QueryAnswered)
        assert told.answer == answer


ACCOUNTS = (c.AccountLine("alice", "user", 5, 0, 0),)


def trade(number: int) -> c.TradeLine:
    return c.TradeLine(f"t{number}", number, "payment", "alice", "res", f"a{number}", f"o{number}", 5)


def page(*numbers: int, following: int = 0, accounts: bool = False) -> c.MarketOverview:
    trades = tuple(trade(number) for number in numbers)
    return c.MarketOverview("v1", 9, ACCOUNTS if accounts else (), trades, following)


FIRST, SECOND, LAST = page(1, 2, following=2, accounts=True), page(3, 4, following=4), page(5)


def ask(keeper: Any) -> list[Any]:
    return list(keeper.party.handle(ev.KeeperAsked(c.OverviewQuery("v1", 3, 7)), 0))


def answer(effects: list[Any]) -> Any:
    reports = [each.progress.answer for each in effects if isinstance(each, fx.Report)]
    return reports[0] if reports else None


def test_the_overview_is_put_together_from_its_pages(keeper: Any) -> None:
    """Doubled pages, pages of before, and a lost one."""
    assert contents(ask(keeper)) == [c.OverviewQuery("v1", 3, 7, 0)]
    assert contents(keeper.hear("bank", FIRST)) == [c.OverviewQuery("v1", 3, 7, 2)]
    assert keeper.hear("bank", FIRST) == []
    assert keeper.hear("bank", page(following=2)) == []
    assert contents(keeper.party.tick(keeper.party.deadline)) == [c.OverviewQuery("v1", 3, 7, 2)]
    assert contents(keeper.hear("bank", SECOND)) == [c.OverviewQuery("v1", 3, 7, 4)]
    assert keeper.hear("bank", FIRST) == []
    assert keeper.hear("bank", SECOND) == []
    whole = answer(keeper.hear("bank", LAST))
    assert whole == c.MarketOverview("v1", 9, ACCOUNTS, tuple(trade(number) for number in range(1, 6)))
    assert keeper.hear("bank", LAST) == []
    assert keeper.party.deadline is None


def test_a_page_does_not_lengthen_the_time_for_the_whole_answer(keeper: Any) -> None:
    ask(keeper)
    keeper.hear("bank", FIRST, 1)
    assert reports(keeper.party.tick(Timing().query_limit), QueryAnswered) == [QueryAnswered("v1", None)]


def test_an_older_answer_to_the_first_question_is_not_taken_for_the_last_page(keeper: Any) -> None:
    """The question was sent twice; when it was answered first there was one page only."""
    ask(keeper)
    keeper.hear("bank", FIRST)
    assert keeper.hear("bank", page(1, accounts=True)) == []
    keeper.hear("bank", SECOND)
    assert len(answer(keeper.hear("bank", LAST)).trades) == 5


def test_a_deposit_is_ordered_with_its_memo(keeper: Any) -> None:
    order = c.DepositOrder("d1", "alice", 5, "for tests")
    assert contents(keeper.party.handle(ev.KeeperAsked(c.DepositOrder("d1", "alice", 5, "for tests")), 0)) == [order]


def test_a_machine_is_asked_until_its_resource_answers(alice: Any) -> None:
    asked = [c.MachineQuery("q", 2 * HOUR)]
    effects = alice.command(ev.MachineAsked("q", "res1", 2 * HOUR))
    assert contents(effects) == asked
    assert (effects[0].message.receiver, effects[0].message.reply_by) == ("res1", Timing().query_limit)
    assert contents(alice.tick(alice.party.deadline)) == asked
    status = c.MachineStatus("q", "{}")
    with pytest.raises(RemoteProtocolError, match="res2 may not speak for res1"):
        alice.hear("res2", status)
    assert reports(alice.hear("res1", status), QueryAnswered) == [QueryAnswered("q", status)]
    assert alice.hear("res1", status) == []  # a copy
    assert alice.party.deadline is None
