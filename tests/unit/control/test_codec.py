"""The control channel's table: every request, answer and event goes over the wire and comes back; nothing else does."""

import json
import subprocess
import sys
from typing import get_args

import pytest
from example_counts import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ramp.control.codec import decode_event, decode_request, encode_event, encode_request
from ramp.control.events import EVENTS, Event, Last, Progress
from ramp.control.requests import VERBS, Request, UserRequest
from ramp.errors import ConfigurationError, ControlLineError
from ramp.protocol import events as ev

few = settings(max_examples=examples(15))
WRITABLE = st.text(st.characters(min_codepoint=0x20, exclude_categories=("Cs",), exclude_characters="\ufffe\uffff"))
"""What a document of a request can carry."""


def leaves(union: object) -> set[type]:
    """The classes of a union, of unions in it too."""
    found: set[type] = set()
    for each in get_args(union) or (union,):
        found |= leaves(each) if get_args(each) else {each}
    return found


def test_the_table_names_every_class_once() -> None:
    assert set(VERBS.values()) == leaves(Request)
    assert leaves(UserRequest) | {ev.KeeperAsked} < leaves(Request)
    assert set(EVENTS.values()) == leaves(Event) == leaves(Progress) | leaves(Last)
    assert len(set(VERBS.values())) == len(VERBS)
    assert len(set(EVENTS.values())) == len(EVENTS)


@pytest.mark.parametrize("name", sorted(VERBS))
@few
@given(data=st.data())
def test_every_request_round_trips(name: str, data: st.DataObject) -> None:
    st.register_type_strategy(str, WRITABLE)
    try:
        request = data.draw(st.from_type(VERBS[name]))
    finally:
        st.register_type_strategy(str, st.text())
    line = encode_request(request)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert json.loads(line)["verb"] == name
    assert decode_request(line) == request


def test_a_request_that_no_agent_reads_is_not_sent() -> None:
    with pytest.raises(ConfigurationError, match="request too long: got 10000"):
        encode_request(ev.RequestWithdrawn("x" * 1_000_000))


@pytest.mark.parametrize("name", sorted(EVENTS))
@few
@given(data=st.data())
def test_every_event_round_trips(name: str, data: st.DataObject) -> None:
    event = data.draw(st.from_type(EVENTS[name]))
    line = encode_event(event)
    assume(b"NaN" not in line)  # equal to nothing, itself included
    assert line.count(b"\n") == 1
    assert json.loads(line)["event"] == name
    assert decode_event(line) == event


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b"", "not a JSON object"),
        (b"[" * 100_000, "not a JSON object"),
        (b"no json", "not a JSON object"),
        (b"[]", "unknown verb None: expected one of hello, submit"),
        (b'{"verb": "sell"}', "unknown verb 'sell'"),
        (b'{"verb": ["submit"]}', "unknown verb"),
        (b'{"verb": "watch", "request_id": "r", "since": 0}', "extra fields found (since)"),
        (b'{"verb": "agreement_cancelled"}', "required field missing at $.agreement_id"),
        (b'{"verb": "add_user", "name": "a", "deposit": "100"}', "$.deposit"),
        (b'{"verb": "add_user", "name": "a", "deposit": 1.5}', "$.deposit"),
        (b'{"verb": "add_user", "name": "a", "deposit": true}', "$.deposit"),
        (b'{"verb": "offers_approved", "request_id": "r", "approved": 1}', "$.approved"),
        (b'{"verb": "watch", "request_id": null}', "$.request_id"),
        (b'{"verb": "submit", "document": "", "options": {"preference": "best"}}', "$.options.preference"),
        (b'{"verb": "submit", "document": "", "options": []}', "$.options"),
    ],
)
def test_what_is_no_request_is_refused_with_the_field(line: bytes, told: str) -> None:
    with pytest.raises(ControlLineError) as raised:
        decode_request(line)
    assert told in str(raised.value)
    assert len(str(raised.value)) < 500, "the verbs are all named, and the line is not told again"


def test_an_event_of_a_later_version_is_refused() -> None:
    with pytest.raises(ControlLineError, match="extra fields found"):
        decode_event(b'{"event": "done", "warnings": []}')
    with pytest.raises(ControlLineError, match="unknown event 'moved'"):
        decode_event(b'{"event": "moved"}')


def test_enumerations_come_back_as_themselves() -> None:
    line = encode_request(VERBS["submit"](document="<x/>", options=ev.AuctionOptions(approval=ev.Approval.ASK)))
    read = decode_request(line)
    assert read.options.approval is ev.Approval.ASK


def test_the_table_needs_neither_spade_nor_a_socket() -> None:
    probe = (
        "import sys, ramp.control.codec, ramp.control.status\n"
        "print([name for name in ('spade', 'slixmpp', 'asyncio', 'socket', 'lxml', 'numba') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
