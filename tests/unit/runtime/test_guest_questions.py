"""Whole answers of guests against the questions they answer; and what stands in for one that is missing."""

import json
from dataclasses import replace
from typing import Any, get_args

import pytest

from ramp.model.instant import HOUR
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import RequestUnit, TotalCores
from ramp.model.slot import Reservation, Slot, SlotMove
from ramp.plugins.interface import ResourcePlugin
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.effects import ResizeSlot
from ramp.protocol.events import MachineInDoubt, SlotResized
from ramp.protocol.pricing import PriceQuestion, PriceRefusal
from ramp.runtime.guests.questions import ROWS, Question, answer_problem, raised, without_answer
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
RESIZE = ResizeSlot("k", 2, 16, 2 * HOUR)
TEND = fx.TendSlots((("k", "alice1"), ("l", "")))
MOVE = SlotMove("n1", HOUR)


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
        (RESIZE, SlotResized("k", 2, FIRM), SlotResized("k", 2, replace(FIRM, slot=replace(SLOT, cores=8)))),
        (RESIZE, SlotResized("k", 2, None, "why"), SlotResized("k", 1, FIRM)),
        (TEND, ev.SlotsTended((("k", "gone"),), (("l", MOVE),), ("l",)), ev.SlotsTended((("m", "gone"),))),
        (TEND, ev.SlotsTended(), ev.SlotsTended(moved=(("k", replace(MOVE, placement="")),))),
        (fx.ForgetSlots(("k",)), ev.SlotsForgotten(), ev.SlotsTended()),
    ],
    ids=lambda each: f"{each!s:.60}",
)
def test_an_answer_must_be_one_to_its_question(question: Any, right: Any, wrong: Any) -> None:
    assert answer_problem(question, right) == ""
    assert answer_problem(question, wrong) != ""


@pytest.mark.parametrize("asked", [True, False])
def test_what_stands_in_for_an_answer_promises_nothing_and_is_one_to_its_question(asked: bool) -> None:
    no = Refusal(3, RefusalCode.PLUGIN_FAILED, detail="why")
    doubt, unpriced = MachineInDoubt("why"), PriceRefusal(RefusalCode.PLUGIN_FAILED)
    expected: list[tuple[Any, Any]] = [
        (QUOTE, ev.SlotsQuoted("c", (no, no))),
        (HOLD, ev.SlotHeld("k", doubt if asked else no)),
        (fx.ConfirmSlot("k"), ev.SlotConfirmed("k", doubt)),
        (fx.LookUpSlot("k"), ev.SlotLookedUp("k", doubt)),
        (fx.ReleaseSlot("k"), ev.SlotFreed("k", doubt)),
        (PRICE, ev.SlotsPriced("c", (replace(unpriced, detail="the price strategy failed: why"),) * 2)),
        (DESCRIBE, ev.MachineDescribed("c", json.dumps({"error": "why"}))),
        (RESIZE, SlotResized("k", 2, None, "why")),
        (TEND, ev.SlotsTended()),
        (fx.ForgetSlots(("k",)), ev.SlotsForgotten()),
    ]
    assert {type(question) for question, _ in expected} == {row.question for row in ROWS}
    for question, answer in expected:
        assert without_answer(question, "why", asked=asked) == answer
        assert answer_problem(question, answer) == ""


def test_every_question_of_a_party_has_one_row_and_every_row_a_method_of_the_plug_in() -> None:
    rows = {row.question: row for row in ROWS}
    assert len(rows) == len(ROWS)
    assert rows.keys() == set(get_args(Question))
    assert len({row.call for row in ROWS}) == len({row.answer for row in ROWS}) == len(ROWS)
    price = rows.pop(fx.PriceSlots)
    assert not price.changes
    assert all(callable(getattr(ResourcePlugin, row.call)) for row in rows.values())
    assert {row.call for row in ROWS if row.may_follow} == {"hold", "confirm"}
    assert {called for row in ROWS for called in row.shows} <= {row.call for row in ROWS}


def test_reasons_are_one_short_line_that_can_be_printed() -> None:
    assert one_line("a\n b\tc\x1b[2J \ud800") == "a b c?[2J ?"
    assert len(one_line("word " * 10**6)) <= 300

    class Unspeakable(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert raised(Unspeakable()) == "Unspeakable: (unprintable exception)"
