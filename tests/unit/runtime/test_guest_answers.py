"""Whole answers of guests against the questions they answer; and what stands in for one that is missing."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from ramp.model.instant import HOUR
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import RequestUnit, TotalCores
from ramp.model.slot import Reservation, Slot
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.events import MachineInDoubt
from ramp.protocol.pricing import PriceQuestion, PriceRefusal
from ramp.runtime.guests.answers import answer_problem, raised, without_answer
from ramp.text import one_line

UNIT = RequestUnit(3, 70, 10 * HOUR, TotalCores(16), not_before=HOUR, wall_time=HOUR)
SLOT = Slot(HOUR, 2 * HOUR, 16, 0.5)
HELD = Reservation("k", "res-1", SLOT, False, HOUR)
FIRM = replace(HELD, firm=True, held_until=None)

QUOTE = fx.QuoteSlots("c", (UNIT, UNIT))
HOLD = fx.HoldSlot("k", UNIT, SLOT, HOUR)
PRICE = fx.PriceSlots("c", (PriceQuestion(70, 60, 20, 0.5),) * 2)
DESCRIBE = fx.DescribeMachine("c", HOUR)
NO = PriceRefusal(RefusalCode.PRICE)


@pytest.mark.parametrize(
    ("question", "right", "wrong"),
    [
        (QUOTE, ev.SlotsQuoted("c", (SLOT, SLOT)), ev.SlotsQuoted("c", (SLOT,))),
        (QUOTE, ev.SlotsQuoted("c", (SLOT, Refusal(3, RefusalCode.CORES_TAKEN))), ev.SlotsQuoted("d", (SLOT, SLOT))),
        (QUOTE, ev.SlotsQuoted("c", (SLOT, SLOT)), ev.SlotsQuoted("c", (SLOT, replace(SLOT, cores=15)))),
        (QUOTE, ev.SlotsQuoted("c", (SLOT, SLOT)), ev.SlotHeld("k", HELD)),
        (HOLD, ev.SlotHeld("k", HELD), ev.SlotHeld("l", HELD)),
        (HOLD, ev.SlotHeld("k", MachineInDoubt("x")), ev.SlotHeld("k", replace(HELD, key="l"))),
        (HOLD, ev.SlotHeld("k", HELD), ev.SlotConfirmed("k", FIRM)),
        (fx.ConfirmSlot("k"), ev.SlotConfirmed("k", FIRM), ev.SlotConfirmed("k", HELD)),
        (fx.LookUpSlot("k"), ev.SlotLookedUp("k", HELD), ev.SlotLookedUp("k", replace(HELD, reservation_id=""))),
        (fx.LookUpSlot("k"), ev.SlotLookedUp("k", None), ev.SlotLookedUp("l", None)),
        (fx.ReleaseSlot("k"), ev.SlotFreed("k", None), ev.SlotFreed("l", None)),
        (PRICE, ev.SlotsPriced("c", (20, NO)), ev.SlotsPriced("c", (1,))),
        (PRICE, ev.SlotsPriced("c", (20, NO)), ev.SlotsPriced("c", (20, 19))),
        (DESCRIBE, ev.MachineDescribed("c", "{}"), ev.MachineDescribed("d", "{}")),
        (DESCRIBE, ev.MachineDescribed("c", "{}"), ev.MachineDescribed("c", "[]")),
        (DESCRIBE, ev.MachineDescribed("c", "{}"), ev.MachineDescribed("c", f'{{"a":"{"x" * 60_000}"}}')),
        (DESCRIBE, ev.MachineDescribed("c", "{}"), ev.MachineDescribed("c", '{"a":"é"}')),
    ],
    ids=lambda each: f"{each!s:.60}",
)
def test_an_answer_must_be_one_to_its_question(question: Any, right: Any, wrong: Any) -> None:
    assert answer_problem(question, right) == ""
    assert answer_problem(question, wrong) != ""


@pytest.mark.parametrize("asked", [True, False])
def test_what_stands_in_for_an_answer_promises_nothing_and_is_one_to_its_question(asked: bool) -> None:
    no = Refusal(3, RefusalCode.PLUGIN_FAILED, detail="why")
    doubt = MachineInDoubt("why")
    expected: list[tuple[Any, Any]] = [
        (QUOTE, ev.SlotsQuoted("c", (no, no))),
        (HOLD, ev.SlotHeld("k", doubt if asked else no)),
        (fx.ConfirmSlot("k"), ev.SlotConfirmed("k", doubt)),
        (fx.LookUpSlot("k"), ev.SlotLookedUp("k", doubt)),
        (fx.ReleaseSlot("k"), ev.SlotFreed("k", doubt)),
        (PRICE, ev.SlotsPriced("c", (PriceRefusal(RefusalCode.PLUGIN_FAILED, detail="why"),) * 2)),
        (DESCRIBE, ev.MachineDescribed("c", json.dumps({"error": "why"}))),
    ]
    for question, answer in expected:
        assert without_answer(question, "why", asked=asked) == answer
        assert answer_problem(question, answer) == ""


def test_reasons_are_one_short_line_that_can_be_printed() -> None:
    assert one_line("a\n b\tc\x1b[2J \ud800") == "a b c?[2J ?"
    assert len(one_line("word " * 10**6)) <= 300

    class Unspeakable(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert raised(Unspeakable()) == "Unspeakable: (unprintable exception)"
