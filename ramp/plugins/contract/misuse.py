"""Rules about wrong or badly timed calls: the answer is a refusal, and nothing breaks."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ramp.errors import PluginError
from ramp.model.instant import DAY, HOUR, SECOND, from_iso
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.slot import Reservation
from ramp.plugins.contract.subject import AskedPlugin, Subject, demand, held, refused, same, slot_for

_ODD_KEYS: Final = ("o'ffer\"; DROP TABLE x", "../../../offer", "предложение", "x" * 500, "two words", "50%_")
_END_OF_TIME: Final = from_iso("9999-12-31T23:59:59Z")


def a_slot_that_was_never_quoted_is_not_sold(subject: Subject, machine: AskedPlugin) -> None:
    """A slot with more cores than the machine has, though it looks like a quoted one, is not set aside."""
    slot = slot_for(machine, subject.unit(), subject.now)
    for forged in (replace(slot, cores=subject.cores + 1), replace(slot, cores=10**12)):
        key = subject.key("forged")
        try:
            answer: object = machine.hold(key, subject.unit(), forged, subject.now + HOUR, subject.now)
        except PluginError:
            answer = None
        demand(not isinstance(answer, Reservation), f"hold: {forged.cores} cores of {subject.cores} were set aside")
        same("reservation", machine.reservation(key, subject.now), None)
    same("quote", machine.quote(subject.unit(), subject.now), slot)


def a_hold_whose_deadline_has_passed_is_none(subject: Subject, machine: AskedPlugin) -> None:
    """A hold that arrives at its deadline or later sets nothing aside: `hold_expired`."""
    now = subject.now
    slot = slot_for(machine, subject.unit(), now)
    key = subject.key("late")
    for until, at in ((now - SECOND, now), (now, now), (now, now + 10 * SECOND)):
        answer = machine.hold(key, subject.unit(), slot, until, at)
        refused(f"hold until {until} at {at}", answer, RefusalCode.HOLD_EXPIRED)
    same("reservation", machine.reservation(key, now), None)
    same("reservations", machine.reservations(now), ())
    same("quote", machine.quote(subject.unit(), now), slot)


def any_text_may_be_a_key(subject: Subject, machine: AskedPlugin) -> None:
    """Keys may be any text: quotes, slashes, other scripts and long ones are kept apart and found again."""
    for text in _ODD_KEYS:
        key = subject.key(text)
        first = held(machine, key, subject.unit(1), subject.now + HOUR, subject.now)
        same("reservation", machine.reservation(key, subject.now), first)
        machine.release(key, subject.now)
        same("reservation", machine.reservation(key, subject.now), None)


def a_window_to_the_end_of_time(subject: Subject, machine: AskedPlugin) -> None:
    """A window may end in the year 9999; a longer run is refused."""
    unit = replace(subject.unit(1), deadline=_END_OF_TIME)
    slot = slot_for(machine, unit, subject.now)
    demand(slot.start >= subject.start, "quote: the slot begins before the window")
    longer = replace(unit, wall_time=_END_OF_TIME)
    answer = machine.quote(longer, subject.now)
    demand(isinstance(answer, Refusal), f"quote: a run of 8 000 years got {answer!r:.200}")


def a_clock_that_was_set_back(subject: Subject, machine: AskedPlugin) -> None:
    """With the clock set back, before and after a restart, all holds stay, and everything is answered."""
    key = subject.key("back")
    first = held(machine, key, subject.unit(), subject.now + HOUR, subject.now + 10 * SECOND)
    with subject.machine(machine.folder) as after:
        for each in (machine, after):
            same("reservation, ten seconds earlier", each.reservation(key, subject.now), first)
            slot_for(each, subject.unit(1), subject.now)
            each.snapshot(subject.now, DAY)
