"""Refuse requests that a machine cannot serve, for plug-ins; and check their answers, for host and contract suite."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from ramp.model.instant import Duration, Instant, from_iso, iso, seconds
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import RequestUnit
from ramp.model.slot import Reservation, Slot, SlotMove
from ramp.text import IDENTIFIER, is_printable

CORES_MAX: Final = 10**9
"""Maximum number of cores of a slot; far above any machine."""

INSTANT_MAX: Final[Instant] = from_iso("9000-01-01")
"""Documents contain only years before this one."""

PLACEMENT_MAX: Final = 4_000
"""Characters of a placement, as in the documents that carry it."""

TOKEN_MAX: Final = 20_000
"""Characters of a plug-in's own mark on a slot, which stays in the resource's journal."""


def run_window(unit: RequestUnit, cores: int, now: Instant) -> tuple[Instant, Duration] | Refusal:
    """Return the first instant at which a unit's run may start, and its length.

    A unit that needs more cores than the machine sells, or whose window holds no run, is refused.
    """
    if unit.cores.total > cores:
        detail = f"the request needs {unit.cores.total} cores, the machine sells {cores}"
        return Refusal(unit.number, RefusalCode.MACHINE_TOO_SMALL, f"{cores} cores", detail)
    earliest = now if unit.not_before is None else max(now, unit.not_before)
    duration = unit.deadline - earliest if unit.wall_time is None else unit.wall_time
    if unit.deadline > now and 0 < duration <= unit.deadline - earliest:
        return earliest, duration
    nearest = iso_or_empty(earliest + duration) if duration > 0 else ""  # the end of a run begun at once
    if unit.deadline <= now:
        detail = f"the deadline {iso(unit.deadline)} has passed"
        return Refusal(unit.number, RefusalCode.WINDOW_PASSED, nearest, detail)
    detail = f"a run of {seconds(duration):g} s does not end by {iso(unit.deadline)}"
    return Refusal(unit.number, RefusalCode.WINDOW_TOO_SHORT, nearest, detail)


def iso_or_empty(instant: Instant | None) -> str:
    """Return an instant as text; empty without one, and for one after the calendar's end."""
    try:
        return "" if instant is None else iso(instant)
    except OverflowError:
        return ""


def quote_problem(unit: RequestUnit, answer: Any) -> str:
    """Say what is impossible about the answer to a quote; empty if it is valid."""
    if not isinstance(answer, Slot):
        return refusal_problem(answer) or (no("Slot or Refusal", answer) if not isinstance(answer, Refusal) else "")
    if problem := slot_problem(answer, unit.cores.total):
        return problem
    if unit.not_before is not None and answer.start < unit.not_before:
        return f"wrong start of the slot: got {iso(answer.start)}, expected {iso(unit.not_before)} or later"
    if unit.wall_time is not None and answer.end - answer.start < unit.wall_time:
        length = f"got {seconds(answer.end - answer.start):.12g} s, expected {seconds(unit.wall_time):.12g} s or more"
        return f"wrong length of the slot: {length}"
    return ""


def slot_problem(slot: Any, cores_min: int) -> str:
    """Say what is impossible about a slot; empty if it is valid."""
    if not type(slot.start) is type(slot.end) is type(slot.cores) is int:
        return f"start {slot.start!r:.50}, end {slot.end!r:.50} and cores {slot.cores!r:.50} are not all whole numbers"
    if not 0 <= slot.start < slot.end:
        return f"the slot ends at {slot.end}, which is not after its start {slot.start}"
    if slot.end >= INSTANT_MAX:
        return "the slot ends after the year 8999"
    if slot.cores < cores_min:
        return f"too few cores: got {slot.cores}, expected at least {cores_min}"
    if slot.cores > CORES_MAX:
        return f"too many cores: got {slot.cores}, expected at most {CORES_MAX}"
    for share in (slot.load, slot.fragmentation, slot.links_taken):
        if not isinstance(share, int | float) or not 0 <= share <= 1:
            values = f"load {slot.load!r}, fragmentation {slot.fragmentation!r} or links {slot.links_taken!r}"
            return f"{values} is not a share from 0 to 1"
    chance = slot.start_probability
    if chance is not None and (type(chance) not in (int, float) or not 0 < chance <= 1):
        return f"invalid probability of the start: got {chance!r:.50}, expected above 0 and at most 1"
    for what, text, limit in (("placement", slot.placement, PLACEMENT_MAX), ("token", slot.token, TOKEN_MAX)):
        if text != "" and (problem := text_problem(what, text, limit)):
            return problem
    return ""


def text_problem(what: str, text: Any, limit: int) -> str:
    """Say why a text is not one printable line of limited length; empty if it is."""
    if not isinstance(text, str):
        return f"the {what} is not a string"
    if len(text) > limit:
        return f"the {what} has {len(text)} characters, expected at most {limit}"
    return "" if not text or is_printable(text) else f"the {what} {text!a:.50} has line breaks or hidden characters"


def identifier_problem(name: Any) -> str:
    """Say why a name cannot be a reservation's id; empty if it can."""
    if isinstance(name, str) and IDENTIFIER.fullmatch(name):
        return ""
    right = "1 to 64 letters, digits, dots, underscores, plus signs and hyphens"
    return f"invalid reservation id: got {name!a:.80}, expected {right}"


def reservation_problem(key: str, slot: Slot | None, answer: Any) -> str:
    """Say what is impossible about a reservation, or wrong with a refusal; empty if it is valid."""
    if isinstance(answer, Refusal):
        return refusal_problem(answer)
    if not isinstance(answer, Reservation):
        return no("Reservation", answer)
    given: Any = answer.slot
    if answer.key != key:
        return f"the reservation is for {answer.key!r:.50}, not {key!r}"
    if wrong := identifier_problem(answer.reservation_id):
        return wrong
    if not isinstance(given, Slot):
        return no("Slot", given)
    began: Any = answer.started_at
    if began is not None and (type(began) is not int or not 0 <= began < INSTANT_MAX):
        return f"invalid start of its job: got {began!r:.50}, expected an instant in microseconds"
    if slot is not None and (given.start, given.end) != (slot.start, slot.end):
        return "the reserved slot is not the requested one"
    return slot_problem(given, slot.cores if slot is not None else 0)


def resized_problem(key: str, cores: int, until: Instant, answer: Any) -> str:
    """Say what is impossible about the answer to a change of size; empty if it is valid."""
    if (problem := firm_problem(key, answer, "change")) or not isinstance(answer, Reservation):
        return problem
    has = (answer.slot.cores, answer.slot.end)
    return "" if has == (cores, until) else f"the slot has {has[0]} cores until {has[1]}, not {cores} until {until}"


def tended_problem(owners: Collection[str], answer: Any) -> str:
    """Say what is impossible about lost and moved slots by key, given the keys asked about; empty if it is valid."""
    if not isinstance(answer, dict):
        return no("dict", answer)
    for key, found in answer.items():
        if key not in owners:
            return f"{key!r:.50} is reported as lost or moved, but was not asked about"
        wrong = text_problem("reason", found, PLACEMENT_MAX) if isinstance(found, str) else _move_problem(found)
        if wrong:
            return wrong
    return ""


def _move_problem(move: Any) -> str:
    if not isinstance(move, SlotMove):
        return no("SlotMove or a reason", move)
    wrong = text_problem("placement", move.placement, PLACEMENT_MAX)
    if wrong := wrong or (move.reservation_id and identifier_problem(move.reservation_id)):
        return wrong
    if not move.placement:
        return "a slot is reported as moved without a placement"
    if type(move.moved_at) is not int or not 0 <= move.moved_at < INSTANT_MAX:
        return f"invalid moved_at: got {move.moved_at!r:.50}, expected an instant in microseconds"
    return ""


def found_problem(key: str, answer: Any) -> str:
    """Say what is impossible about the answer to a look-up; empty if it is valid."""
    return "" if answer is None else reservation_problem(key, None, answer)


def reservations_problem(answer: Any) -> str:
    """Say what is impossible about a list of reservations; empty if it is valid."""
    if not isinstance(answer, tuple):
        return no("tuple", answer)
    found = (reservation_problem(getattr(each, "key", ""), None, each) for each in answer)
    return next((text for text in found if text), "")


def firm_problem(key: str, answer: Any, call: str = "confirmation") -> str:
    """Say what is impossible about the answer to a call that leaves a reservation firm; empty if it is valid."""
    problem = reservation_problem(key, None, answer)
    if not problem and isinstance(answer, Reservation) and answer.firm is not True:
        return f"the reservation is not firm after its {call}"
    return problem


def refusal_problem(answer: Any) -> str:
    """Say what is wrong with a refusal; empty if it is valid, or another answer."""
    if not isinstance(answer, Refusal):
        return ""
    code: Any = answer.code
    if not isinstance(code, RefusalCode):
        return f"invalid refusal code: got {code!r:.50}, expected a RefusalCode"
    nearest = text_problem("refusal's nearest value", answer.nearest, PLACEMENT_MAX)
    return nearest or text_problem("refusal's detail", answer.detail, PLACEMENT_MAX)


def no(right: str, answer: Any) -> str:
    """Say that an answer is of the wrong type."""
    return f"wrong type of answer: got {type(answer).__name__}, expected {right}"
