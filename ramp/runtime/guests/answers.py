"""Checks of the answers of plug-ins and price strategies, and substitutes for missing answers.

All guests have the same checks; answers from a separate process are checked on both sides.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, assert_never

from ramp.errors import told
from ramp.model.offer import Refusal, RefusalCode
from ramp.plugins.answers import (
    PLACEMENT_MAX,
    firm_problem,
    held_problem,
    lost_problem,
    moves_problem,
    no,
    quote_problem,
    reservation_problem,
    resized_problem,
    text_problem,
)
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.amending.asking import ResizeSlot, SlotResized
from ramp.protocol.events import MachineInDoubt
from ramp.protocol.pricing import PriceQuestion, PriceRefusal

PRICE_MAX: Final = 10**9
"""Maximum price of a strategy in credits per core hour, far above any realistic price."""

SOURCES: Final = ("log", "synthetic", "live")
"""Sources of a machine's queue."""

Question = fx.AskMachine | fx.PriceSlots


def call_of(question: Question) -> str:
    """Return the name of a question in messages: the method of the plug-in, or `price`."""
    return _CALLS[type(question)]


_CALLS: Final[dict[type, str]] = {
    fx.QuoteSlots: "quote",
    fx.HoldSlot: "hold",
    fx.ConfirmSlot: "confirm",
    fx.ReleaseSlot: "release",
    fx.LookUpSlot: "reservation",
    fx.DescribeMachine: "snapshot",
    fx.ForgetSlots: "forget",
    fx.TendSlots: "tend",
    ResizeSlot: "resize",
    fx.PriceSlots: "price",
}


def without_answer(question: Question, reason: str, *, asked: bool) -> ev.Answer:
    """Return the substitute for a missing answer.

    Quotes and prices are refused. A change of the machine, and a question about its state, is in doubt. A hold that
    never reached the guest is refused, because it cannot have had an effect.

    Args:
        question: the question.
        reason: the cause as a sentence.
        asked: whether the guest may have started with it.
    """
    doubt = MachineInDoubt(reason)
    match question:
        case fx.QuoteSlots(call_id, units):
            return ev.SlotsQuoted(call_id, tuple(_refused(unit.number, reason) for unit in units))
        case fx.HoldSlot(key, unit):
            return ev.SlotHeld(key, doubt if asked else _refused(unit.number, reason))
        case fx.ConfirmSlot(key):
            return ev.SlotConfirmed(key, doubt)
        case fx.ReleaseSlot(key):
            return ev.SlotFreed(key, doubt)
        case fx.LookUpSlot(key):
            return ev.SlotLookedUp(key, doubt)
        case fx.DescribeMachine(call_id):
            return ev.MachineDescribed(call_id, json.dumps({"error": reason}))
        case fx.ForgetSlots():
            return ev.SlotsForgotten()  # it remembers them, which does no harm
        case fx.TendSlots():
            return ev.SlotsTended()  # the party reports them again
        case ResizeSlot(key, step):
            return SlotResized(key, step, None, reason)
        case fx.PriceSlots(call_id, questions):
            return ev.SlotsPriced(call_id, (PriceRefusal(RefusalCode.PLUGIN_FAILED, detail=reason),) * len(questions))
    assert_never(question)


def _refused(unit: int, reason: str) -> Refusal:
    return Refusal(unit, RefusalCode.PLUGIN_FAILED, detail=reason)


OUT_OF_MEMORY: Final = "it exceeds its memory limit ([guests] memory_mb)"
"""Reason of a failure at the memory limit of the process."""


def raised(error: BaseException) -> str:
    """Return the exception of a guest as one short line."""
    return OUT_OF_MEMORY if isinstance(error, MemoryError) else told(error)


# -- checks --------------------------------------------------------------------------------------------------------


def answer_problem(question: Question, answer: Any) -> str:
    """Return the problem of an answer to a question; empty if it is possible, as doubts and refusals are."""
    match question, answer:
        case fx.QuoteSlots(call_id, units), ev.SlotsQuoted(given_id, slots):
            if given_id != call_id or len(slots) != len(units):
                return f"{len(slots)} quotes for {len(units)} units"
            return _first(quote_problem(unit, slot) for unit, slot in zip(units, slots, strict=True))
        case fx.PriceSlots(call_id, questions), ev.SlotsPriced(given_id, prices):
            if given_id != call_id or len(prices) != len(questions):
                return f"{len(prices)} prices for {len(questions)} slots"
            return _first(price_problem(each, price) for each, price in zip(questions, prices, strict=True))
        case fx.DescribeMachine(call_id), ev.MachineDescribed(given_id, snapshot):
            if given_id != call_id:
                return "the answer to another question"
            return snapshot_problem(snapshot) or no_object(json.loads(snapshot))
        case fx.ForgetSlots(), ev.SlotsForgotten():
            return ""
        case ResizeSlot(), SlotResized():
            if (answer.key, answer.step) != (question.key, question.step):
                return "the answer to another question"
            unsure = answer.answer is None
            return "" if unsure else resized_problem(question.key, question.cores, question.until, answer.answer)
        case fx.TendSlots(slots), ev.SlotsTended(lost, moved, seen):
            owners = dict(slots)
            if not set(seen) <= owners.keys() - dict(lost).keys():
                return "slots seen that are lost or were not asked about"
            return lost_problem(owners, dict(lost)) or moves_problem(owners, dict(moved))
        case (
            (fx.HoldSlot(key), ev.SlotHeld(given_key, given))
            | (fx.ConfirmSlot(key), ev.SlotConfirmed(given_key, given))
            | (fx.LookUpSlot(key), ev.SlotLookedUp(given_key, given))
            | (fx.ReleaseSlot(key), ev.SlotFreed(given_key, given))
        ):
            if given_key != key:
                return "the answer to another question"
            return "" if given is None or isinstance(given, MachineInDoubt) else _given_problem(question, given)
    return f"wrong type of answer to {type(question).__name__}: {type(answer).__name__}"


def _given_problem(question: Question, given: Any) -> str:
    match question:
        case fx.HoldSlot(key, _, slot):
            return held_problem(key, slot, given)
        case fx.ConfirmSlot(key):
            return firm_problem(key, given)
        case fx.LookUpSlot(key):
            return reservation_problem(key, None, given)
        case _:
            return ""


def _first(problems: Any) -> str:
    return next((problem for problem in problems if problem), "")


def snapshot_problem(text: str) -> str:
    """Return the problem of a snapshot's text; empty if it is valid."""
    if len(text) > SNAPSHOT_BYTES_MAX:
        return f"the snapshot has {len(text)} characters, expected at most {SNAPSHOT_BYTES_MAX}"
    return "" if text.isascii() else "the snapshot is not written in ASCII"


def no_object(snapshot: Any) -> str:
    """Return the problem of a snapshot that is not a JSON object; empty otherwise."""
    return "" if isinstance(snapshot, dict) else no("dict", snapshot)


def price_problem(question: PriceQuestion, priced: Any) -> str:
    """Return the problem of a strategy's answer to a question; empty if it is valid."""
    if isinstance(priced, PriceRefusal):
        code: Any = priced.code
        right = isinstance(code, RefusalCode) and (priced.nearest is None or type(priced.nearest) is int)
        right = right and not text_problem("detail", priced.detail, PLACEMENT_MAX)
        return "" if right else f"got {priced!r:.200}, expected a refusal with a RefusalCode and a whole number"
    least = max(1, question.minimum_price)
    if type(priced) is int and least <= priced <= PRICE_MAX:
        return ""
    return f"invalid price: got {priced!r:.100}, expected a whole number of credits from {least} to {PRICE_MAX}"


SNAPSHOT_BYTES_MAX: Final = 60_000
"""Maximum size of a snapshot's text; escaped and wrapped it stays below the size limit of a document."""

LISTS: Final = ("queued", "running")
"""Lists that are cut in a snapshot that is too large, in this order: the queue's end matters least."""


def snapshot_text(snapshot: Mapping[str, Any], limit: int = SNAPSHOT_BYTES_MAX) -> str:
    """Write a snapshot as JSON of at most `limit` bytes.

    The totals `running_total` and `queued_total` are added. A list that was cut holds the first entries only.

    Args:
        snapshot: the plug-in's answer, of JSON types only.
        limit: maximum number of bytes.
    """
    full = dict(snapshot)
    for name in LISTS:
        if isinstance(full.get(name), list):
            full[f"{name}_total"] = len(full[name])
    text = _write(full)
    for name in LISTS:
        if len(text.encode()) <= limit:
            break
        entries = full.get(name)
        if isinstance(entries, list) and entries:
            rest = len(_write({**full, name: []}).encode())
            each = max(1, (len(text.encode()) - rest) // len(entries))
            full[name] = entries[: max(0, (limit - rest) * 9 // 10 // each)]
            text = _write(full)
    return text


def _write(value: Mapping[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"))
