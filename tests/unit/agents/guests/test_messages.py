"""What an agent and a guest's process say to each other: nothing is lost on the way, and nothing else gets in."""

import json
from pathlib import Path
from typing import Any

import pytest

from ramp.agents.guests import messages
from ramp.agents.guests.messages import Asked, Finding, NonsenseSaid, NotOpened, Opened, Opening, Told
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import NodeDiskSpace, Nodes, RequestUnit, TorusTerms, TotalCores
from ramp.model.slot import Reservation, Slot
from ramp.plugins.interface import PluginSettings
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.pricing import PriceQuestion, PriceRefusal

UNIT = RequestUnit(1, 70, 10**15, Nodes(2, 8), 5, disk=NodeDiskSpace(3), torus=TorusTerms((4, 2)))
SLOT = Slot(1, 2, 16, 0.5, "rack 1–2", "t\n", links_taken=0.25)
HELD = Reservation("k", "r-1", SLOT, False, 9)
DOUBT = ev.MachineInDoubt("sinfo: timed out", True)

QUESTIONS = [
    fx.QuoteSlots("c", (UNIT, RequestUnit(2, 1, 3, TotalCores(4)))),
    fx.HoldSlot("k", UNIT, SLOT, 4),
    fx.ConfirmSlot("k"),
    fx.ReleaseSlot("k"),
    fx.LookUpSlot("k"),
    fx.DescribeMachine("c", 4),
    fx.PriceSlots("c", (PriceQuestion(70, 60, 20, 0.5, own_last=3, best_offer=True, user="al\0ice"),)),
]
ANSWERS = [
    ev.SlotsQuoted("c", (SLOT, Refusal(2, RefusalCode.CORES_TAKEN, "soon", "full"))),
    ev.SlotHeld("k", HELD),
    ev.SlotHeld("k", DOUBT),
    ev.SlotConfirmed("k", Refusal(0, RefusalCode.HOLD_EXPIRED)),
    ev.SlotLookedUp("k", None),
    ev.SlotLookedUp("k", HELD),
    ev.SlotFreed("k", None),
    ev.SlotFreed("k", ev.MachineInDoubt("x")),
    ev.MachineDescribed("c", '{"load":0.5}'),
    ev.SlotsPriced("c", (4, PriceRefusal(RefusalCode.PRICE, 3), PriceRefusal(RefusalCode.OWN_OFFER_STANDS))),
]


def body(written: bytes) -> bytes:
    assert written.find(b"\n") == len(written) - 1
    return written


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda each: type(each).__name__)
def test_questions_arrive_as_they_were_asked(question: Any) -> None:
    asked = Asked(7, 10**15, question)
    assert messages.read_opening_or_question(body(messages.write(asked))) == asked


@pytest.mark.parametrize("answer", ANSWERS, ids=str)
def test_answers_arrive_as_they_were_given(answer: Any) -> None:
    told = Told(7, answer, (Finding("quote"), Finding("quote", "broken")))
    assert messages.read_answer(body(messages.write(told))) == told


def test_options_arrive() -> None:
    options = {"log": "a.swf", "speed": 2.5, "deep": {"list": [1, True, "x"]}}
    settings = PluginSettings("m1", 64, 1, 0, options, Path("/state/reservations"))
    opening = Opening("ramp.resource_plugins", "site", "site:Machine", settings)
    assert messages.read_opening_or_question(body(messages.write(opening))) == opening


@pytest.mark.parametrize("said", [Opened("log"), NotOpened("no", "guest")], ids=str)
def test_how_opening_went_arrives(said: Any) -> None:
    assert messages.read_answer(body(messages.write(said))) == said


def told_with(**fields: Any) -> bytes:
    plain = {"type": "Told", "number": 1, "answer": {"type": "SlotFreed", "key": "k", "answer": None}, "findings": []}
    return json.dumps({**plain, **fields}).encode()


def quoted(**fields: Any) -> bytes:
    slot = {"type": "Slot", "start": 1, "end": 2, "cores": 3, "load": 0.5}
    return told_with(answer={"type": "SlotsQuoted", "call_id": "c", "answers": [{**slot, **fields}]})


def test_the_nonsense_below_is_nonsense_for_its_one_fault() -> None:
    assert isinstance(messages.read_answer(told_with()), Told)
    assert isinstance(messages.read_answer(quoted()), Told)


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"\xff",
        b"[" * 100_000,
        b'{"type":"Told"',
        told_with(number="1"),
        told_with(number=True),
        told_with(more=1),
        told_with(type="Asked"),
        told_with(type="os.system"),
        told_with(answer=None),
        told_with(answer={"type": "OrdersSwept", "voided": [], "reserved": []}),
        told_with(answer={"type": "MachineOpened", "source": "log"}),
        told_with(answer={"type": "SlotFreed", "key": 7, "answer": None}),
        told_with(answer={"type": "SlotsPriced", "call_id": "c", "prices": ["cheap"]}),
        told_with(answer={"type": "SlotsPriced", "call_id": "c", "prices": [4.0]}),
        told_with(answer={"type": "SlotsPriced", "call_id": "c", "prices": [True]}),
        told_with(findings=[{"call": "quote", "reason": ""}] * 1001),
        quoted(start="1"),
        quoted(start=1.0),
        quoted(cores=True),
        quoted(load="0.5"),
        quoted(placement=None),
        quoted(type="Refusal"),
        quoted(colour="green"),
        b'{"type":"Told","number":' + b"9" * 5000 + b"}",
    ],
    ids=lambda said: said[:60].decode("latin-1"),
)
def test_whatever_else_is_said_is_nonsense(said: bytes) -> None:
    with pytest.raises(NonsenseSaid):
        messages.read_answer(said)


def test_what_is_too_long_is_not_sent() -> None:
    with pytest.raises(NonsenseSaid, match="must have at most 1000000 bytes"):
        messages.write(Told(1, ev.MachineDescribed("c", "x" * 1_000_000)))
