"""Rules about holds and reservations, on which two-phase commit depends, and about forgetting them."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ramp.errors import PluginError
from ramp.model.instant import DAY, HOUR, MINUTE, SECOND
from ramp.model.offer import RefusalCode
from ramp.model.slot import Reservation
from ramp.plugins.contract.subject import (
    SEARCHED,
    AskedPlugin,
    Subject,
    demand,
    fill,
    held,
    refused,
    reserved,
    same,
    slot_for,
)

_ODD_KEYS: Final = ("o'ffer\"; DROP TABLE x", "../../../offer", "предложение", "x" * 500, "two words", "50%_")


def a_slot_that_has_gone_is_refused(subject: Subject, machine: AskedPlugin) -> None:
    """Of two calls for the last cores one gets them, the other `slot_taken`; nothing is sold twice."""
    slot = slot_for(machine, subject.unit(), subject.now)
    fill(machine, subject, subject.now + HOUR, subject.now)
    key = subject.key("second")
    answer = machine.hold(key, subject.unit(), slot, subject.now + HOUR, subject.now)
    refused("hold of a slot that is held by another", answer, RefusalCode.SLOT_TAKEN)
    same("reservation after a refused hold", machine.reservation(key, subject.now), None)


def the_same_key_is_the_same_reservation(subject: Subject, machine: AskedPlugin) -> None:
    """What is quoted is held, with its cores and place; calls can be repeated, and set nothing aside twice."""
    key, unit, now = subject.key("again"), subject.unit(), subject.now
    slot = slot_for(machine, unit, now)
    first = reserved("hold", machine.hold(key, unit, slot, now + HOUR, now))
    demand(not first.firm and first.held_until == now + HOUR, f"hold: {first!r} is no hold until {now + HOUR}")
    same("hold: cores and placement", (first.slot.cores, first.slot.placement), (slot.cores, slot.placement))
    same("hold again", machine.hold(key, unit, slot, now + 2 * HOUR, now + SECOND), first)
    same("reservations", machine.reservations(now), (first,))
    firm = reserved("confirm", machine.confirm(key, now + SECOND))
    same("confirm", firm, replace(first, firm=True, held_until=None))
    same("confirm again", machine.confirm(key, now + 2 * SECOND), firm)
    same("hold of what is firm", machine.hold(key, unit, slot, now + HOUR, now + 3 * SECOND), firm)
    same("reservation", machine.reservation(key, now + 3 * SECOND), firm)


def reservation_ids_are_never_used_again(subject: Subject, machine: AskedPlugin) -> None:
    """A reservation's id names it alone, also after it was released."""
    seen: set[str] = set()
    for number in range(5):
        key = subject.key(f"id{number}")
        seen.add(held(machine, key, subject.unit(), subject.now + HOUR, subject.now).reservation_id)
        machine.release(key, subject.now)
    demand(len(seen) == 5, f"hold: five reservations have the ids {sorted(seen)}")


def a_hold_ends_at_its_deadline(subject: Subject, machine: AskedPlugin) -> None:
    """At its deadline a hold ends: its cores are free, and `confirm` is refused with `hold_expired`."""
    until = subject.now + 30 * SECOND
    keys = fill(machine, subject, until, subject.now)
    before = until - 1
    demand(machine.reservation(keys[0], before) is not None, "reservation: the hold has ended before its deadline")
    refused("quote before the deadline", machine.quote(subject.unit(1), before), RefusalCode.CORES_TAKEN)
    same("reservation at the deadline", machine.reservation(keys[0], until), None)
    same("reservations at the deadline", machine.reservations(until), ())
    slot_for(machine, subject.unit(1), until)
    refused("confirm at the deadline", machine.confirm(keys[0], until), RefusalCode.HOLD_EXPIRED)


def what_was_released_stays_released(subject: Subject, machine: AskedPlugin) -> None:
    """A key that was released, held or firm, is never held again: `cancelled`; its cores are free."""
    unit, now = subject.unit(), subject.now
    slot = slot_for(machine, unit, now)
    for confirmed in (False, True):
        key = subject.key("released")
        machine.hold(key, unit, slot, now + HOUR, now)
        if confirmed:
            reserved("confirm", machine.confirm(key, now))
        machine.release(key, now)
        machine.release(key, now)
        same("reservation", machine.reservation(key, now), None)
        same("reservations", machine.reservations(now), ())
        refused("confirm", machine.confirm(key, now), RefusalCode.CANCELLED)
        refused("hold", machine.hold(key, unit, slot, now + HOUR, now), RefusalCode.CANCELLED)
        same("quote", machine.quote(unit, now), slot)


def releasing_the_unknown_is_no_error(subject: Subject, machine: AskedPlugin) -> None:
    """`release` of a key that never was changes nothing: messages overtake each other. `confirm`: `hold_expired`."""
    refused("confirm", machine.confirm(subject.key("never"), subject.now), RefusalCode.HOLD_EXPIRED)
    before = slot_for(machine, subject.unit(), subject.now)
    machine.release(subject.key("unknown"), subject.now)
    same("quote", machine.quote(subject.unit(), subject.now), before)


def everything_survives_a_restart(subject: Subject, machine: AskedPlugin) -> None:
    """Holds, reservations, releases and lapsed holds are as before when the plug-in is opened again."""
    now = subject.now
    key = {name: subject.key(name) for name in ("held", "firm", "gone", "short", "new")}
    kept = held(machine, key["held"], subject.unit(), now + HOUR, now)
    held(machine, key["firm"], subject.unit(), now + SECOND, now)
    firm = reserved("confirm", machine.confirm(key["firm"], now))
    held(machine, key["gone"], subject.unit(), now + HOUR, now)
    machine.release(key["gone"], now)
    held(machine, key["short"], subject.unit(), now + SECOND, now)
    later = now + SECOND
    quoted = machine.quote(subject.unit(1), later)
    with subject.machine(machine.folder) as after:
        found = {each.key: each for each in after.reservations(later)}
        same("reservations after a restart", found, {key["held"]: kept, key["firm"]: firm})
        same("quote after a restart", after.quote(subject.unit(1), later), quoted)
        same("confirm after a restart", after.confirm(key["firm"], later), firm)
        refused("confirm of a released key", after.confirm(key["gone"], later), RefusalCode.CANCELLED)
        refused("confirm of a lapsed hold", after.confirm(key["short"], later), RefusalCode.HOLD_EXPIRED)
        new = held(after, key["new"], subject.unit(), now + HOUR, later)
        used = {kept.reservation_id, firm.reservation_id}
        demand(new.reservation_id not in used, f"hold: the id {new.reservation_id} is used again after a restart")


def reservations_are_listed_by_start(subject: Subject, machine: AskedPlugin) -> None:
    """`reservations` lists by start, whatever the order in which they were made."""
    for name, after in (("late", 4 * HOUR), ("early", 0), ("middle", 2 * HOUR)):
        unit = subject.unit(1, after=after, slack=SEARCHED)
        held(machine, subject.key(name), unit, subject.now + MINUTE, subject.now)
    starts = [each.slot.start for each in machine.reservations(subject.now)]
    demand(len(starts) == 3, f"reservations: got {len(starts)} entries, expected 3")
    demand(starts == sorted(starts), f"reservations: the starts {starts} are not in order")


def what_is_over_is_forgotten(subject: Subject, machine: AskedPlugin) -> None:
    """Keys that are over can be forgotten, again and with unknown ones; their reservations' ids are not used again."""
    now = subject.now
    over, new = [subject.key("given-back"), subject.key("ended")], subject.key("new")
    used = {held(machine, over[0], subject.unit(), now + HOUR, now).reservation_id}
    machine.release(over[0], now)
    used.add(held(machine, over[1], subject.unit(), now + HOUR, now).reservation_id)
    ended = reserved("confirm", machine.confirm(over[1], now)).slot.end
    machine.forget([subject.key("unknown"), over[0]], now)
    for _ in range(2):
        machine.forget(over, ended + HOUR)
    with subject.machine(machine.folder) as after:
        for each in (machine, after):
            same("reservation of a forgotten key", each.reservation(over[0], ended + HOUR), None)
            same("reservations", each.reservations(ended + HOUR), ())
        later = subject.unit(after=ended + 2 * HOUR - subject.start, slack=SEARCHED)
        fresh = held(after, new, later, ended + 2 * HOUR, ended + HOUR)
        demand(fresh.reservation_id not in used, f"hold: {fresh.reservation_id} was the id of a forgotten key")


def what_is_live_is_not_forgotten(subject: Subject, machine: AskedPlugin) -> None:
    """A hold and a firm reservation survive `forget`, also after a restart."""
    now = subject.now
    keys = [subject.key("held"), subject.key("firm")]
    kept = [held(machine, key, subject.unit(), now + HOUR, now) for key in keys]
    kept[1] = reserved("confirm", machine.confirm(keys[1], now))
    quoted = machine.quote(subject.unit(1), now)
    machine.forget(keys, now)
    with subject.machine(machine.folder) as after:
        for each in (machine, after):
            same("reservation of a live key", [each.reservation(key, now) for key in keys], kept)
            same("quote", each.quote(subject.unit(1), now), quoted)


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


def a_clock_that_was_set_back(subject: Subject, machine: AskedPlugin) -> None:
    """With the clock set back, before and after a restart, all holds stay, and everything is answered."""
    key = subject.key("back")
    first = held(machine, key, subject.unit(), subject.now + HOUR, subject.now + 10 * SECOND)
    with subject.machine(machine.folder) as after:
        for each in (machine, after):
            same("reservation, ten seconds earlier", each.reservation(key, subject.now), first)
            slot_for(each, subject.unit(1), subject.now)
            each.snapshot(subject.now, DAY)
