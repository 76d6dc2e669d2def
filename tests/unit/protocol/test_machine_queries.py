"""Buyers ask a resource what its machine is and how busy it will be; the machine is asked, and may be slow."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ramp.model import contents as c
from ramp.model.acl import Performative
from ramp.model.instant import HOUR
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.resource import machine_queries
from ramp.protocol.resource.seller import PriceRange


def ask(resource: Any, buyer: str, query_id: str = "q", horizon: int = HOUR) -> list[fx.Effect]:
    return list(resource.hear(buyer, c.MachineQuery(query_id, horizon), performative=Performative.QUERY_REF))


def answer(resource: Any, asked: list[fx.Effect], load: float) -> list[tuple[str, str, float]]:
    """Who is told what, once the machine has answered one question."""
    (question,) = asked
    assert isinstance(question, fx.DescribeMachine)
    effects = resource.party.handle(ev.MachineDescribed(question.call_id, json.dumps({"load": load})), 0)
    told = [each.message for each in effects]
    assert all(each.in_reply_to == "w" and each.performative is Performative.INFORM for each in told)
    return [(each.receiver, each.content.query_id, json.loads(each.content.snapshot)["load"]) for each in told]


@pytest.mark.parametrize("draining", [False, True])
def test_buyers_are_told_whether_it_is_draining(resource: Any, draining: bool) -> None:
    resource.party.set_selling(PriceRange(60, 20), draining=draining, now=0)
    asked = ask(resource, "alice")
    effects = resource.party.handle(ev.MachineDescribed(asked[0].call_id, "{}"), 0)  # type: ignore[union-attr]
    (status,) = [each.message.content for each in effects]
    assert json.loads(status.snapshot).get("draining") is (True if draining else None)


def test_of_too_many_questions_the_oldest_is_given_up(resource: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_queries, "DESCRIBING_MAX", 2)
    asked = [ask(resource, "alice", f"q{number}") for number in range(3)]
    assert [answer(resource, each, 0.5) for each in asked] == [[], [("alice", "q1", 0.5)], [("alice", "q2", 0.5)]]


def test_what_drives_the_queue_is_said_when_the_machine_has_been_opened(resource: Any) -> None:
    """A guest's plug-in is opened later than its agent begins."""
    assert (resource.party.source, resource.call().content.offers[0].source) == ("synthetic", "synthetic")
    assert resource.party.handle(ev.MachineOpened("live"), 0) == []
    assert (resource.party.source, resource.call(2, 60).content.offers[0].source) == ("live", "live")
