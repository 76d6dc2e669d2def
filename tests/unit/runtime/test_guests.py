"""Plug-ins that misbehave: their answers against the questions, what stands in for one, and how long they rest."""

import json
from dataclasses import replace
from typing import Any, get_args

import pytest

from ramp.errors import ConfigurationError, PluginError
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import RequestUnit, TotalCores
from ramp.model.slot import Reservation, Slot, SlotMove
from ramp.plugins.interface import GONE, NOT_RESIZABLE, ResourcePlugin, checked_plugin
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.effects import ResizeSlot
from ramp.protocol.events import MachineInDoubt, SlotResized
from ramp.protocol.pricing import PriceQuestion, PriceRefusal
from ramp.runtime.guests.health import GuestHealth
from ramp.runtime.guests.questions import (
    ROWS,
    GuardedGuest,
    Question,
    answer_problem,
    raised,
    without_answer,
)
from ramp.text import one_line

UNIT = RequestUnit(1, 70, 10 * HOUR, TotalCores(16), not_before=HOUR, wall_time=HOUR)
SLOT = Slot(HOUR, 2 * HOUR, 16, 0.5)
FIRM = Reservation("k", "res-1", SLOT, True, None)
HELD = replace(FIRM, firm=False, held_until=HOUR)


class Guest(ResourcePlugin):
    """Answers what it is told to."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def _say(self, *_: Any) -> Any:
        if isinstance(self._answer, BaseException):
            raise self._answer
        return self._answer

    quote = hold = confirm = reservation = reservations = release = snapshot = _say


def guarded(answer: Any) -> tuple[Any, list[str]]:
    told: list[str] = []

    def watch(progress: Any) -> None:
        assert progress.guest == "plug-in"
        told.append(progress.reason)

    return GuardedGuest(Guest(answer), GuestHealth("plug-in", watch)), told


QUOTE = fx.QuoteSlots("c", (UNIT,))
HOLD = fx.HoldSlot("k", UNIT, SLOT, HOUR)
CONFIRM, RELEASE, LOOK_UP = fx.ConfirmSlot("k"), fx.ReleaseSlot("k"), fx.LookUpSlot("k")


@pytest.mark.parametrize(
    ("answer", "word"),
    [
        (ValueError("the parser broke"), "ValueError: the parser broke"),
        (KeyError("nodes"), "KeyError"),
        (RecursionError(), "RecursionError"),
        (None, "NoneType"),
        ("yes", "str"),
        (replace(SLOT, end=HOUR), "not after its start"),
        (replace(SLOT, start=-1), "not after its start"),
        (replace(SLOT, cores=15), "too few cores: got 15, expected at least 16"),
        (replace(SLOT, cores=16.0), "whole numbers"),
        (replace(SLOT, start=True), "whole numbers"),
        (replace(SLOT, load=1.5), "not a share"),
        (replace(SLOT, load=float("nan")), "not a share"),
        (replace(SLOT, load="half"), "not a share"),
        (replace(SLOT, placement=None), "not a string"),
        (replace(SLOT, placement="\x00"), "hidden characters"),
        (replace(SLOT, placement="\ud800"), "hidden characters"),
        (replace(SLOT, placement="x" * 4001), "4001 characters"),
        (replace(SLOT, start=HOUR - 1, end=2 * HOUR), "wrong start"),
        (replace(SLOT, end=2 * HOUR - 1), "wrong length"),
        (replace(SLOT, end=10**18), "8999"),
        (replace(SLOT, cores=10**10), "too many cores"),
        (Refusal(1, "no such code"), "RefusalCode"),  # type: ignore[arg-type]
    ],
    ids=str,
)
def test_an_impossible_quote_is_a_coded_refusal(answer: Any, word: str) -> None:
    plugin, told = guarded(answer)
    (refused,) = plugin.ask(QUOTE, 0).answers
    assert (refused.unit, refused.code) == (1, RefusalCode.PLUGIN_FAILED)
    assert word in refused.detail
    assert told == [refused.detail]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (HOLD, OSError("no space left on device")),
        (HOLD, PluginError("guest", "")),
        (HOLD, None),
        (HOLD, SLOT),
        (HOLD, replace(HELD, key="other")),
        (HOLD, replace(HELD, reservation_id="")),
        (HOLD, replace(HELD, slot=None)),
        (HOLD, replace(HELD, slot=replace(SLOT, end=3 * HOUR))),
        (HOLD, replace(HELD, slot=replace(SLOT, cores=1))),
        (CONFIRM, TimeoutError()),
        (CONFIRM, None),
        (CONFIRM, True),
        (CONFIRM, HELD),
        (CONFIRM, replace(FIRM, key="other")),
    ],
    ids=str,
)
def test_a_hold_or_confirmation_that_fails_or_makes_no_sense_is_in_doubt(question: Any, answer: Any) -> None:
    plugin, told = guarded(answer)
    assert isinstance(plugin.ask(question, 0).answer, MachineInDoubt)
    assert len(told) == 1


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (HOLD, HELD),
        (HOLD, Refusal(1, RefusalCode.SLOT_TAKEN)),
        (CONFIRM, FIRM),
        (CONFIRM, Refusal(0, RefusalCode.HOLD_EXPIRED)),
        (LOOK_UP, HELD),
        (LOOK_UP, None),
        (RELEASE, None),
    ],
    ids=str,
)
def test_what_is_right_passes_unchanged(question: Any, answer: Any) -> None:
    plugin, told = guarded(answer)
    assert plugin.ask(question, 0).answer is answer
    assert told == []


def test_the_rest_of_a_question_is_not_put_after_a_failure() -> None:
    plugin, told = guarded(SLOT)
    plugin.guest.quote = lambda unit, _: SLOT if unit.number == 1 else 1 / 0
    units = tuple(replace(UNIT, number=number) for number in (1, 2, 3))
    answers = plugin.ask(fx.QuoteSlots("c", units), 0).answers
    assert answers[0] == SLOT
    assert [each.detail for each in answers[1:]] == told * 2


def test_the_buyers_account_reaches_a_plug_in_that_wants_it() -> None:
    plugin, _ = guarded(HELD)
    accounts = []
    plugin.guest.hold_for = lambda account, *_: accounts.append(account) or HELD
    plugin.ask(replace(HOLD, account="alice1"), 0)
    assert accounts == ["alice1"]


def test_a_plug_in_that_changes_no_sizes_is_not_able_to() -> None:
    plugin, told = guarded(FIRM)
    resized = plugin.ask(ResizeSlot("k", 1, 8, 2 * HOUR), 0)
    assert resized.answer == NOT_RESIZABLE
    plugin.guest.resize = lambda *_: replace(FIRM, slot=replace(SLOT, cores=8))
    assert isinstance(plugin.ask(ResizeSlot("k", 1, 8, 2 * HOUR), 0).answer, Reservation)
    plugin.guest.resize = lambda *_: FIRM
    resized = plugin.ask(ResizeSlot("k", 1, 8, 2 * HOUR), 0)
    assert resized.answer == MachineInDoubt(told[0])


def test_a_snapshot_that_is_none_says_so() -> None:
    plugin, told = guarded({"load": object()})
    described = plugin.ask(fx.DescribeMachine("c", HOUR), 0)
    assert json.loads(described.snapshot) == {"error": told[0]}
    assert plugin.ask(fx.DescribeMachine("c", HOUR), 999_999) == described


@pytest.mark.parametrize(
    ("answer", "lost"),
    [
        (FIRM, ()),
        (None, (("k", GONE),)),
        (HELD, (("k", GONE),)),
        (OSError("the machine does not answer"), ()),
        ("yes", ()),
    ],
    ids=str,
)
def test_a_sold_slot_that_a_plug_in_forgets_is_lost(answer: Any, lost: Any) -> None:
    plugin, _ = guarded(answer)
    assert plugin.ask(fx.TendSlots((("k", ""),)), 0).lost == lost


def test_what_is_no_plug_in_is_not_opened() -> None:
    plugin = Guest(None)
    assert checked_plugin(plugin) is plugin
    with pytest.raises(ConfigurationError, match="got object, expected a ResourcePlugin"):
        checked_plugin(object())


def test_sold_slots_are_lost_moved_or_seen() -> None:
    plugin, _ = guarded(FIRM)
    move = SlotMove("n2", HOUR)
    plugin.guest.tend = lambda *_: {"a": "gone", "b": move}
    tended = plugin.ask(fx.TendSlots((("a", ""), ("b", ""), ("c", ""))), 0)
    assert (tended.lost, tended.moved, tended.seen) == ((("a", "gone"),), (("b", move),), ("b", "c"))


def test_a_price_below_the_owners_minimum_is_a_failure_of_the_strategy() -> None:
    told: list[str] = []
    strategy = GuardedGuest(lambda _: 4, GuestHealth("price strategy", lambda progress: told.append(progress.reason)))
    (priced,) = strategy.ask(fx.PriceSlots("c", (PriceQuestion(70, 60, 5, 0.5),)), 0).prices
    assert isinstance(priced, PriceRefusal)
    assert priced.code is RefusalCode.PLUGIN_FAILED
    assert told == ["price: invalid price: got 4, expected a whole number of credits from 5 to 1000000000"]


THIRD = RequestUnit(3, 70, 10 * HOUR, TotalCores(16), not_before=HOUR, wall_time=HOUR)

QUOTE_THIRD = fx.QuoteSlots("c", (THIRD, THIRD))
HOLD_THIRD = fx.HoldSlot("k", THIRD, SLOT, HOUR)
PRICE = fx.PriceSlots("c", (PriceQuestion(70, 60, 20, 0.5),) * 2)
DESCRIBE = fx.DescribeMachine("c", HOUR)
NO = PriceRefusal(RefusalCode.PRICE)
RESIZE = ResizeSlot("k", 2, 16, 2 * HOUR)
TEND = fx.TendSlots((("k", "alice1"), ("l", "")))
MOVE = SlotMove("n1", HOUR)


@pytest.mark.parametrize(
    ("question", "right", "wrong"),
    [
        (QUOTE_THIRD, ev.SlotsQuoted("c", (SLOT, SLOT)), ev.SlotsQuoted("c", (SLOT,))),
        (
            QUOTE_THIRD,
            ev.SlotsQuoted("c", (SLOT, Refusal(3, RefusalCode.CORES_TAKEN))),
            ev.SlotsQuoted("d", (SLOT, SLOT)),
        ),
        (QUOTE_THIRD, ev.SlotsQuoted("c", (SLOT, SLOT)), ev.SlotsQuoted("c", (SLOT, replace(SLOT, cores=15)))),
        (QUOTE_THIRD, ev.SlotsQuoted("c", (SLOT, SLOT)), ev.SlotHeld("k", HELD)),
        (HOLD_THIRD, ev.SlotHeld("k", HELD), ev.SlotHeld("l", HELD)),
        (HOLD_THIRD, ev.SlotHeld("k", MachineInDoubt("x")), ev.SlotHeld("k", replace(HELD, key="l"))),
        (HOLD_THIRD, ev.SlotHeld("k", HELD), ev.SlotConfirmed("k", FIRM)),
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
        (RESIZE, SlotResized("k", 2, MachineInDoubt("why")), SlotResized("k", 1, FIRM)),
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
        (QUOTE_THIRD, ev.SlotsQuoted("c", (no, no))),
        (HOLD_THIRD, ev.SlotHeld("k", doubt if asked else no)),
        (fx.ConfirmSlot("k"), ev.SlotConfirmed("k", doubt)),
        (fx.LookUpSlot("k"), ev.SlotLookedUp("k", doubt)),
        (fx.ReleaseSlot("k"), ev.SlotFreed("k", doubt)),
        (PRICE, ev.SlotsPriced("c", (replace(unpriced, detail="the price strategy failed: why"),) * 2)),
        (DESCRIBE, ev.MachineDescribed("c", json.dumps({"error": "why"}))),
        (RESIZE, SlotResized("k", 2, doubt)),
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


def health() -> tuple[GuestHealth, list[str]]:
    told: list[str] = []
    watch: Any = lambda progress: told.append(f"{progress.guest}: {progress.reason}")  # noqa: E731
    return GuestHealth("plug-in", watch), told


def test_pauses_double_up_to_a_minute_and_begin_anew_after_a_good_answer() -> None:
    guest, _ = health()
    now, pauses = HOUR, []
    for _ in range(9):
        guest.failed("quote", "broken", now)
        begin = now
        while guest.resting("quote", now):
            now += SECOND // 2
        pauses.append((now - begin) / SECOND)
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    guest.answered("quote")
    guest.failed("quote", "broken", now)
    assert guest.resting("quote", now + SECOND - 1) == "broken"
    assert guest.resting("quote", now + SECOND) == ""


def test_failures_within_a_pause_do_not_lengthen_it() -> None:
    guest, told = health()
    for tenth in range(9):
        guest.failed("confirm", f"broken {tenth}", tenth * SECOND // 10)
    assert guest.resting("hold", SECOND - 1) == "broken 8"
    assert guest.resting("hold", SECOND) == ""
    assert len(told) == 9


def test_it_is_well_when_what_has_failed_is_answered_and_says_so_once() -> None:
    guest, told = health()
    guest.failed("quote", "quote: broken", 0)
    guest.failed("confirm", "confirm: broken", 0)
    guest.answered("hold")
    guest.answered("quote")
    assert guest.reason == "confirm: broken"
    guest.answered("confirm")
    guest.answered("confirm")
    assert guest.reason == ""
    assert told == [f"plug-in: {each}" for each in ("quote: broken", "confirm: broken", "confirm: broken", "")]


def test_a_sale_shows_that_looks_and_releases_are_well_too() -> None:
    """After a hold that is in doubt the machine is looked at; nobody may have a reason to look again."""
    guest, told = health()
    for call in ("hold", "release", "reservation"):
        guest.failed(call, f"{call}: broken", 0)
    guest.answered("reservation")
    assert guest.reason == "release: broken"
    guest.answered("quote")
    guest.answered("hold")
    assert guest.reason == ""
    assert told[3:] == ["plug-in: release: broken", "plug-in: "]


def test_a_snapshot_that_anybody_may_ask_for_keeps_nobody_from_buying() -> None:
    guest, _ = health()
    guest.failed("snapshot", "no picture", 0)
    assert guest.resting("snapshot", 1) == "no picture"
    assert guest.resting("quote", 1) == guest.resting("hold", 1) == ""
    guest.failed("hold", "broken", 0)
    assert guest.resting("quote", 1) == "broken"
    guest.failed("open", "not there", 0)
    assert guest.resting("snapshot", 1) == "not there"


def test_a_clock_that_was_set_back_leaves_nobody_resting_for_hours() -> None:
    guest, _ = health()
    guest.failed("quote", "broken", 9 * HOUR)
    assert guest.resting("quote", 8 * HOUR) == ""
    guest.failed("quote", "broken", 8 * HOUR)
    assert guest.resting("quote", 8 * HOUR + 2 * SECOND - 1) == "broken"
    assert guest.restart_pause("quote", 8 * HOUR) == 2 * SECOND
    assert guest.restart_pause("quote", 7 * HOUR) == MINUTE
