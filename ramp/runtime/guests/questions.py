"""The questions to plug-ins and price strategies: one typed table that everything about them reads, and who asks them.

A row says which method of a guest answers a question, how the answer is checked, what stands in for a missing one, and
how long it may take. So a new question is one row here and one method of `ResourcePlugin`. All guests have the same
checks; answers from a separate process are checked on both sides.

An exception or an impossible answer of a guest is reported once and becomes an answer that the protocol knows. A quote
or price is refused with a code. A hold, confirmation or release is in doubt, because its effect is unknown; the party
asks about it again. For a while after a failure the guest is asked for no further offers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any, Final, Literal, Protocol

from ramp.errors import PluginError, StorageFailed, told
from ramp.model.instant import Instant
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import RequestUnit
from ramp.model.slot import SlotMove
from ramp.plugins.answers import (
    PLACEMENT_MAX,
    firm_problem,
    found_problem,
    no,
    quote_problem,
    reservation_problem,
    resized_problem,
    tended_problem,
    text_problem,
)
from ramp.plugins.interface import ResourcePlugin
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.effects import ResizeSlot
from ramp.protocol.events import MachineInDoubt, SlotResized
from ramp.protocol.pricing import PriceQuestion, PriceRefusal, PricingStrategy
from ramp.text import one_line

PRICE_MAX: Final = 10**9
"""Maximum price of a strategy in credits per core hour, far above any realistic price."""

Question = fx.AskMachine | fx.PriceSlots
Limit = Literal["quote", "price", "change", "snapshot"]


def _whole(question: Any) -> tuple[Any, ...]:
    return (question,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One question to a guest.

    Attributes:
        question: its type.
        answer: the type of its answer.
        call: the method of the guest that answers it; its name in messages and in the guest's health.
        same: the fields that name both question and answer.
        parts: the parts of the question, each asked by a call of its own; by default it has one, and its answer one
            value instead of several.
        ask: asks the guest (a `ResourcePlugin` or a price strategy) about a part and returns a value; by default by the
            method `call` with the part and the time.
        problem: says what is impossible about a value; empty if it is valid, as any is by default.
        failed: the value in place of a missing one, given the doubt, and whether the guest may have started with it; by
            default the doubt.
        told: makes the answer of the values of all parts; by default of the fields `same` and these values.
        values: takes the values out of an answer; by default its field `answer`.
        limit: the limit of `GuestLimits` for the whole question.
        changes: whether it changes the machine, so that its effect is unknown after a failure.
        impatient: whether it is refused at once while the guest rests; it concerns no promise yet.
        may_follow: whether the answer may still come after a doubt and counts.
        shows: other calls that a success proves to work, because they may not be made again soon.
        alone: whether its failure pauses only itself, because every visitor can cause it.
    """

    question: type[Question]
    answer: type[ev.Answer]
    call: str
    same: tuple[str, ...]
    ask: Callable[[Any, Any, Instant], Any] | None = None
    parts: Callable[[Any], Sequence[Any]] = _whole
    problem: Callable[[Any, Any], str] = lambda *_: ""
    failed: Callable[[Any, MachineInDoubt, bool], Any] = lambda _, doubt, __: doubt
    told: Callable[[Any, tuple[Any, ...]], ev.Answer] | None = None
    values: Callable[[Any], tuple[Any, ...]] = lambda answer: (answer.answer,)
    limit: Limit = "change"
    changes: bool = False
    impatient: bool = False
    may_follow: bool = False
    shows: tuple[str, ...] = ()
    alone: bool = False

    def answered(self, question: Question, values: tuple[Any, ...]) -> ev.Answer:
        """Return the answer to a question, made of the values of all its parts."""
        if self.told is not None:
            return self.told(question, values)
        given = values if self.parts is _whole else (values,)
        return self.answer(*map(partial(getattr, question), self.same), *given)

    @property
    def can_be_repeated(self) -> bool:
        """Whether the question may be put only to see whether the guest works again."""
        return self.impatient and not self.changes


def _refused(unit: RequestUnit, doubt: MachineInDoubt) -> Refusal:
    return Refusal(unit.number, RefusalCode.PLUGIN_FAILED, detail=doubt.reason)


def _tended(asked: fx.TendSlots, values: tuple[Mapping[str, str | SlotMove] | None, ...]) -> ev.SlotsTended:
    (found,) = values
    if found is None:
        return ev.SlotsTended()  # the party asks again
    lost = tuple((key, one_line(why)) for key, why in found.items() if isinstance(why, str))
    moved = tuple((key, move) for key, move in found.items() if isinstance(move, SlotMove))
    gone = dict(lost)
    return ev.SlotsTended(lost, moved, tuple(key for key, _ in asked.slots if key not in gone))


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


# -- snapshots -----------------------------------------------------------------------------------------------------

SNAPSHOT_BYTES_MAX: Final = 60_000
"""Maximum size of a snapshot's text; escaped and wrapped it stays below the size limit of a document."""

LISTS: Final = ("queued", "running")
"""Lists that are cut in a snapshot that is too large, in this order: the queue's end matters least."""


def snapshot_problem(text: str) -> str:
    """Return the problem of a snapshot's text; empty if it is valid."""
    if len(text) > SNAPSHOT_BYTES_MAX:
        return f"the snapshot has {len(text)} characters, expected at most {SNAPSHOT_BYTES_MAX}"
    if not text.isascii():
        return "the snapshot is not written in ASCII"
    snapshot = json.loads(text)
    return "" if isinstance(snapshot, dict) else no("dict", snapshot)


def snapshot_text(snapshot: Mapping[str, Any]) -> str:
    """Write a plug-in's snapshot, of JSON types only, as JSON of at most `SNAPSHOT_BYTES_MAX` bytes.

    The totals `running_total` and `queued_total` are added. A list that was cut holds the first entries only.
    """
    full, limit = dict(snapshot), SNAPSHOT_BYTES_MAX
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


# -- the table -------------------------------------------------------------------------------------------------------

ROWS: Final[tuple[Row, ...]] = (
    Row(
        question=fx.QuoteSlots,
        answer=ev.SlotsQuoted,
        call="quote",
        same=("call_id",),
        parts=attrgetter("units"),
        problem=quote_problem,
        failed=lambda unit, doubt, _: _refused(unit, doubt),
        values=lambda answer: answer.answers,
        limit="quote",
        impatient=True,
    ),
    Row(
        question=fx.HoldSlot,
        answer=ev.SlotHeld,
        call="hold",
        same=("key",),
        ask=lambda plugin, asked, now: plugin.hold_for(
            asked.account, asked.key, asked.unit, asked.slot, asked.until, now
        ),
        problem=lambda asked, value: reservation_problem(asked.key, asked.slot, value),
        failed=lambda asked, doubt, started: doubt if started else _refused(asked.unit, doubt),
        changes=True,
        impatient=True,
        may_follow=True,
        shows=("release", "reservation"),
    ),
    Row(
        question=fx.ConfirmSlot,
        answer=ev.SlotConfirmed,
        call="confirm",
        same=("key",),
        ask=lambda plugin, asked, now: plugin.confirm(asked.key, now),
        problem=lambda asked, value: firm_problem(asked.key, value),
        changes=True,
        may_follow=True,
        shows=("hold", "release", "reservation"),
    ),
    Row(
        question=fx.ReleaseSlot,
        answer=ev.SlotFreed,
        call="release",
        same=("key",),
        ask=lambda plugin, asked, now: plugin.release(asked.key, now),
        changes=True,
        shows=("reservation",),
    ),
    Row(
        question=fx.LookUpSlot,
        answer=ev.SlotLookedUp,
        call="reservation",
        same=("key",),
        ask=lambda plugin, asked, now: plugin.reservation(asked.key, now),
        problem=lambda asked, value: found_problem(asked.key, value),
    ),
    Row(
        question=fx.DescribeMachine,
        answer=ev.MachineDescribed,
        call="snapshot",
        same=("call_id",),
        ask=lambda plugin, asked, now: snapshot_text(plugin.snapshot(now, asked.horizon)),
        problem=lambda _, text: snapshot_problem(text),
        failed=lambda _, doubt, __: json.dumps({"error": doubt.reason}),
        values=lambda answer: (answer.snapshot,),
        limit="snapshot",
        impatient=True,
        alone=True,
    ),
    Row(
        question=fx.ForgetSlots,
        answer=ev.SlotsForgotten,
        call="forget",
        same=(),
        ask=lambda plugin, asked, now: plugin.forget(asked.keys, now),
        failed=lambda *_: None,  # it remembers them, which does no harm
        told=lambda *_: ev.SlotsForgotten(),
        values=lambda _: (None,),
        changes=True,
    ),
    Row(
        question=fx.TendSlots,
        answer=ev.SlotsTended,
        call="tend",
        same=(),
        ask=lambda plugin, asked, now: plugin.tend(dict(asked.slots), now),
        problem=lambda asked, value: tended_problem(dict(asked.slots), value),
        failed=lambda *_: None,
        told=_tended,
        values=lambda answer: ({**dict(answer.moved), **dict(answer.lost)},),
        changes=True,
    ),
    Row(
        question=ResizeSlot,
        answer=SlotResized,
        call="resize",
        same=("key", "step"),
        ask=lambda plugin, asked, now: plugin.resize(asked.key, asked.step, asked.cores, asked.until, now),
        problem=lambda asked, value: resized_problem(asked.key, asked.cores, asked.until, value),
        changes=True,
    ),
    Row(
        question=fx.PriceSlots,
        answer=ev.SlotsPriced,
        call="price",
        same=("call_id",),
        parts=attrgetter("questions"),
        ask=lambda strategy, slot, _: strategy(slot),
        problem=price_problem,
        failed=lambda _, doubt, __: PriceRefusal(
            RefusalCode.PLUGIN_FAILED, detail=f"the price strategy failed: {doubt.reason}"
        ),
        values=lambda answer: answer.prices,
        limit="price",
        impatient=True,
    ),
)
"""All questions to guests."""

ROW_OF: Final[Mapping[type, Row]] = {row.question: row for row in ROWS}
"""The row of each type of question."""


def about(question: Question) -> str:
    """Return the key or call that a question is about; empty if it is about many."""
    return next((str(getattr(question, name)) for name in ROW_OF[type(question)].same), "")


def without_answer(question: Question, reason: str, *, asked: bool) -> ev.Answer:
    """Return the substitute for a missing answer, which promises nothing.

    `reason` is the cause as a sentence, and `asked` tells whether the guest may have started with the question.
    """
    row, doubt = ROW_OF[type(question)], MachineInDoubt(reason)
    return row.answered(question, tuple(row.failed(part, doubt, asked) for part in row.parts(question)))


def answer_problem(question: Question, answer: Any) -> str:
    """Return the problem of an answer to a question; empty if it is possible, as doubts and refusals are."""
    row = ROW_OF[type(question)]
    if type(answer) is not row.answer:
        return f"wrong type of answer to {type(question).__name__}: {type(answer).__name__}"
    if any(getattr(answer, name) != getattr(question, name) for name in row.same):
        return "the answer to another question"
    parts, values = row.parts(question), row.values(answer)
    if len(values) != len(parts):
        return f"{len(values)} values for {len(parts)} parts of the question"
    for part, value in zip(parts, values, strict=True):
        if not isinstance(value, MachineInDoubt) and (problem := row.problem(part, value)):
            return str(problem)
    return ""


OUT_OF_MEMORY: Final = "it exceeds its memory limit ([guests] memory_mb)"
"""Reason of a failure at the memory limit of the process."""


def raised(error: BaseException) -> str:
    """Return the exception of a guest as one short line."""
    return OUT_OF_MEMORY if isinstance(error, MemoryError) else told(error)


# -- asking --------------------------------------------------------------------------------------------------------


class Health(Protocol):
    """Records how a guest's calls end.

    Attributes:
        is_well: whether no failure is known, so that a valid answer changes nothing and no call rests.
    """

    is_well: bool

    def resting(self, call: str, now: Instant) -> str:
        """Return why to skip a question now; empty to ask it."""
        ...

    def failed(self, call: str, reason: str, now: Instant) -> None:
        """Record that a call has failed, or had an impossible answer."""
        ...

    def answered(self, call: str) -> None:
        """Record a valid answer to a call."""
        ...


class GuardedGuest:
    """A guest whose impossible answers and exceptions become refusals or doubts; only `StorageFailed` passes.

    That passes if the plug-in's book of reservations is the agent's `own_memory`, without which it must end.
    """

    def __init__(self, guest: ResourcePlugin | PricingStrategy, health: Health, *, own_memory: bool = True) -> None:
        self.guest = guest
        self._health = health
        self._own_memory = own_memory

    def ask(self, question: Question, now: Instant) -> ev.Answer:
        """Return the guest's answer to a party's question; during a pause it answers only about promised slots.

        Raises:
            StorageFailed: the agent's own book of reservations cannot be written.
        """
        row, health, values = ROW_OF[type(question)], self._health, []
        for part in row.parts(question):
            # for every part, because the one before may have failed
            if row.impatient and not health.is_well and (resting := health.resting(row.call, now)):
                values.append(row.failed(part, MachineInDoubt(resting), False))
                continue
            problem: str | None
            transient: bool | None = None
            try:
                value = getattr(self.guest, row.call)(part, now) if row.ask is None else row.ask(self.guest, part, now)
                problem = row.problem(part, value) or None
            except StorageFailed as error:
                if row.changes and self._own_memory:  # that ends the agent, like the failure of its journal
                    raise
                problem = str(error)
            except PluginError as error:
                problem, transient = error.reason, error.transient
            except Exception as error:  # any exception of a guest is the guest's fault
                problem = raised(error)
            if problem is not None:
                sentence = f"{row.call}: {one_line(problem)}"
                health.failed(row.call, sentence, now)
                value = row.failed(part, MachineInDoubt(sentence, transient), True)
            elif not health.is_well:
                health.answered(row.call)
            values.append(value)
        return row.answered(question, tuple(values))
