"""A plug-in that misbehaves: every failure and every impossible answer becomes one that the machines know."""

import json
from dataclasses import replace
from typing import Any

import pytest

from ramp.errors import ConfigurationError, PluginError
from ramp.model.instant import HOUR
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import RequestUnit, TotalCores
from ramp.model.slot import Reservation, Slot, SlotMove
from ramp.plugins.interface import GONE, NOT_RESIZABLE, ResourcePlugin, checked_plugin
from ramp.protocol import effects as fx
from ramp.protocol.effects import ResizeSlot
from ramp.protocol.events import MachineInDoubt
from ramp.protocol.pricing import PriceQuestion, PriceRefusal
from ramp.runtime.guests.health import GuestHealth
from ramp.runtime.guests.questions import GuardedPlugin, GuardedStrategy

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

    return GuardedPlugin(Guest(answer), GuestHealth("plug-in", watch)), told


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
    "answer",
    [
        OSError("no space left on device"),
        PluginError("guest", ""),
        None,
        SLOT,
        replace(HELD, key="other"),
        replace(HELD, reservation_id=""),
        replace(HELD, slot=None),
        replace(HELD, slot=replace(SLOT, end=3 * HOUR)),
        replace(HELD, slot=replace(SLOT, cores=1)),
    ],
    ids=str,
)
def test_a_hold_that_fails_or_makes_no_sense_is_in_doubt(answer: Any) -> None:
    plugin, told = guarded(answer)
    assert isinstance(plugin.ask(HOLD, 0).answer, MachineInDoubt)
    assert len(told) == 1


@pytest.mark.parametrize("answer", [TimeoutError(), None, True, HELD, replace(FIRM, key="other")], ids=str)
def test_a_confirmation_that_fails_or_is_not_firm_is_in_doubt(answer: Any) -> None:
    plugin, _ = guarded(answer)
    assert isinstance(plugin.ask(CONFIRM, 0).answer, MachineInDoubt)


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
    assert (resized.able, resized.answer) == (False, NOT_RESIZABLE)
    plugin.guest.resize = lambda *_: replace(FIRM, slot=replace(SLOT, cores=8))
    assert plugin.ask(ResizeSlot("k", 1, 8, 2 * HOUR), 0).able
    plugin.guest.resize = lambda *_: FIRM
    resized = plugin.ask(ResizeSlot("k", 1, 8, 2 * HOUR), 0)
    assert (resized.answer, resized.doubt) == (None, told[0])


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
    strategy = GuardedStrategy(
        lambda _: 4, GuestHealth("price strategy", lambda progress: told.append(progress.reason))
    )
    (priced,) = strategy.ask(fx.PriceSlots("c", (PriceQuestion(70, 60, 5, 0.5),)), 0).prices
    assert isinstance(priced, PriceRefusal)
    assert priced.code is RefusalCode.PLUGIN_FAILED
    assert told == ["price: invalid price: got 4, expected a whole number of credits from 5 to 1000000000"]
