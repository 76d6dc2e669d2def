"""What an owner asks of bank and resources: what is asked, of whom, and what is told of the answer."""

from __future__ import annotations

from typing import Any

import pytest

from ramp.errors import RemoteProtocolError
from ramp.model import contents as c
from ramp.model.instant import DAY, HOUR
from ramp.model.seal import Role
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.progress import QueryAnswered
from ramp.protocol.questions import unknown_agreements
from ramp.protocol.timing import Timing


def answers(effects: list[Any]) -> list[QueryAnswered]:
    found = [each.progress for each in effects if isinstance(each, fx.Report)]
    return [each for each in found if isinstance(each, QueryAnswered)]


def test_a_statement_is_asked_for_a_period(alice: Any, said: Any) -> None:
    (query,) = said(alice.command(ev.AccountAsked("q", HOUR, DAY)))
    assert query == c.AccountQuery("q", "alice", HOUR, DAY)
    again = said(alice.tick(alice.party.deadline))
    assert again == [c.AccountQuery("q#2", "alice", HOUR, DAY)]  # a nonce is good for one answer
    told = c.AccountStatement("q#2", "alice", 5, 0, 0, 0)
    assert answers(alice.hear("bank", told)) == [QueryAnswered("q", told)]


def test_a_resource_asks_for_its_statement_until_the_bank_answers(resource: Any, said: Any) -> None:
    (query,) = said(resource.party.handle(ev.AccountAsked("q", HOUR, None), 0))
    assert query == c.AccountQuery("q", "res", HOUR, None)
    asked: list[Any] = []
    while c.AccountQuery("q#2", "res", HOUR, None) not in asked:
        assert resource.party.deadline < Timing().query_limit
        asked += said(resource.party.tick(resource.party.deadline))
    told = c.AccountStatement("q#2", "res", 5, 0, 0, 0)
    with pytest.raises(RemoteProtocolError):
        resource.hear("alice", told)
    assert answers(resource.hear("bank", told)) == [QueryAnswered("q", told)]


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


def test_a_copy_of_a_query_is_refused_and_the_answer_awaited(alice: Any) -> None:
    alice.command(ev.AccountAsked("q", None, None))
    assert alice.hear("bank", c.RequestRefused("q", "replayed")) == []
    refused = c.RequestRefused("q", "unknown_account")
    assert answers(alice.hear("bank", refused)) == [QueryAnswered("q", refused)]


def test_a_machine_is_asked_until_its_resource_answers(alice: Any, said: Any) -> None:
    asked = [c.MachineQuery("q", 2 * HOUR)]
    effects = alice.command(ev.MachineAsked("q", "res1", 2 * HOUR))
    assert said(effects) == asked
    assert effects[0].message.receiver == "res1"
    assert said(alice.tick(alice.party.deadline)) == asked
    status = c.MachineStatus("q", "{}")
    with pytest.raises(RemoteProtocolError, match="res2 may not speak for res1"):
        alice.hear("res2", status)
    assert answers(alice.hear("res1", status)) == [QueryAnswered("q", status)]
    assert alice.hear("res1", status) == []  # a copy
    assert alice.party.deadline is None


def test_what_is_never_answered_is_given_up(alice: Any) -> None:
    alice.command(ev.MachineAsked("q", "res1", HOUR), 5)
    while alice.party.deadline < 5 + Timing().query_limit:
        assert answers(alice.tick(alice.party.deadline)) == []
    assert answers(alice.tick(5 + Timing().query_limit)) == [QueryAnswered("q", None)]
    assert alice.party.deadline is None


def test_an_answer_that_is_late_by_a_restart_is_no_news(alice: Any) -> None:
    for content in (c.MachineStatus("q", "{}"), c.DirectoryListing("q", "resource-trader", ("res1",))):
        sender = "res1" if isinstance(content, c.MachineStatus) else "directory"
        assert alice.hear(sender, content, conversation="q") == []


def test_bank_and_directory_answer_in_their_own_roles(alice: Any) -> None:
    alice.command(ev.AccountAsked("q", None, None))
    alice.command(ev.ResourcesAsked("l"))
    for sender, answer in (
        ("bank", c.AccountStatement("q", "alice", 5, 0, 0, 0)),
        ("directory", c.DirectoryListing("l", "resource-trader", ("res1",))),
    ):
        with pytest.raises(RemoteProtocolError, match="certified as resource"):
            alice.hear(sender, answer, role=Role.RESOURCE)
        (told,) = answers(alice.hear(sender, answer))
        assert told.answer == answer
