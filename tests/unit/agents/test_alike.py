"""Which messages are the same for all: calls of one round, unsealed, to whom they go for the first time."""

from __future__ import annotations

from dataclasses import replace

from ramp.agents.sites import alike
from ramp.agents.sites.alike import Alike
from ramp.model.acl import Message, Performative
from ramp.model.contents import CallForProposals, Rejection
from ramp.model.instant import HOUR
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.model.seal import Role, Seal

REQUEST = RequestForQuotation((RequestUnit(1, 70, 2 * HOUR, TotalCores(8), 0, HOUR),))


def round_of(number, names, request="request-1"):
    call = CallForProposals(request, number, REQUEST)
    slots = {"reply_with": f"{request}/round/{number}", "reply_by": 5}
    return [Message(Performative.CFP, "u@x", name, request, call, **slots) for name in names]


def sizes(messages, told=None):
    return [len(run) for run in (told or Alike()).runs(messages)]


def test_a_round_is_one_run_and_the_next_round_another():
    first, second = round_of(1, "abc"), round_of(2, "abcd")
    told = Alike()
    assert sizes(first, told) == [3]
    assert sizes(second, told) == [4]
    assert Alike().runs([*first, *second]) == [first, second]


def test_a_call_that_is_sent_again_goes_by_itself():
    told = Alike()
    calls = round_of(1, "abcd")
    assert sizes(calls[:2], told) == [2]
    assert sizes([calls[0], calls[2], calls[3], calls[1]], told) == [1, 2, 1]


def test_what_differs_in_anything_or_is_sealed_goes_by_itself():
    one, two, three = round_of(1, "abc")
    seal = Seal("u@x", Role.USER, "b", "request-1", 0, b"")
    assert sizes([one, replace(two, seal=seal), three]) == [1, 1, 1]
    assert sizes([one, replace(two, reply_by=6), three]) == [1, 1, 1]
    same_text = replace(two, content=replace(two.content))
    assert sizes([one, same_text]) == [1, 1]  # equal, but nobody has looked whether it is
    rejections = [Message(Performative.REJECT_PROPOSAL, "u@x", name, "r", Rejection("r", "o", "")) for name in "ab"]
    assert sizes(rejections) == [1, 1]
    assert sizes([one, *rejections, two]) == [1, 1, 1, 1]


def test_who_has_been_called_is_remembered_within_bounds(monkeypatch):
    monkeypatch.setattr(alike, "RECEIVERS_MAX", 2)
    told = Alike()
    calls = round_of(1, "abc")
    assert sizes(calls, told) == [3]
    assert len(told._called) == 2
