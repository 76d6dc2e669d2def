"""Rules for plug-ins that can change the size of a reservation (`ResourcePlugin.resize`)."""

from __future__ import annotations

from ramp.model.instant import HOUR, MINUTE
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.slot import Reservation, Slot
from ramp.plugins.contract.subject import AskedPlugin, NotChecked, Subject, demand, fill, held, refused, reserved, same


def a_smaller_reservation_stays_smaller(subject: Subject, machine: AskedPlugin) -> None:
    """A firm reservation gets the cores and the end asked for, and keeps its name; also after a restart."""
    now = subject.now
    key, cores = subject.key("smaller"), _two(subject, machine)
    firm = _firm(subject, machine, key, cores)
    until = firm.slot.end - 10 * MINUTE
    fewer = firm.slot.cores // 2
    smaller = reserved("resize", machine.resize(key, 1, fewer, until, now))
    same("resize with the same step", machine.resize(key, 1, fewer, until, now), smaller)
    demand(smaller.reservation_id == firm.reservation_id, "resize: the reservation has another name than before")
    demand(smaller.slot.start == firm.slot.start, "resize: the slot begins at another time than before")
    with subject.machine(machine.folder) as after:
        for each in (machine, after):
            same("reservation after its change", each.reservation(key, now), smaller)
        same("resize with the same step after a restart", after.resize(key, 1, fewer, until, now), smaller)


def what_a_change_frees_is_free(subject: Subject, machine: AskedPlugin) -> None:
    """Released cores of a reservation can be held by others at once, and are then refused to it."""
    now = subject.now
    key, other, cores = subject.key("gives"), subject.key("takes"), _two(subject, machine)
    slot = _firm(subject, machine, key, cores).slot
    fill(machine, subject, now + HOUR, now)
    fewer = slot.cores // 2
    smaller = reserved("resize", machine.resize(key, 1, fewer, slot.end, now))
    held(machine, other, subject.unit(1), now + HOUR, now)
    refused("resize to the old size", machine.resize(key, 2, slot.cores, slot.end, now), RefusalCode.SLOT_TAKEN)
    same("reservation after a refused change", machine.reservation(key, now), smaller)


def what_is_added_is_set_aside(subject: Subject, machine: AskedPlugin) -> None:
    """A reservation that grows has its new size at once, also after a restart; the old size again frees the rest."""
    now = subject.now
    key, cores = subject.key("grows"), _two(subject, machine)
    slot = _firm(subject, machine, key, cores).slot
    fewer = slot.cores // 2
    smaller = reserved("resize", machine.resize(key, 1, fewer, slot.end, now))
    more = machine.resize(key, 2, slot.cores, slot.end, now)
    if isinstance(more, Refusal):
        same("reservation after a refused change", machine.reservation(key, now), smaller)
        raise NotChecked("it does not grow")
    with subject.machine(machine.folder) as after:
        same("reservation after it has grown", after.reservation(key, now), more)
        same("resize with the same step after a restart", after.resize(key, 2, slot.cores, slot.end, now), more)
    fill(machine, subject, now + HOUR, now)
    reserved("resize to the old size", machine.resize(key, 3, fewer, slot.end, now))
    held(machine, subject.key("rest"), subject.unit(1), now + HOUR, now)


def a_later_end_is_kept_or_refused(subject: Subject, machine: AskedPlugin) -> None:
    """A reservation gets the requested later end, or keeps its present one."""
    now = subject.now
    key = subject.key("later")
    firm = _firm(subject, machine, key)
    later = machine.resize(key, 1, firm.slot.cores, firm.slot.end + 10 * MINUTE, now)
    if isinstance(later, Refusal):
        same("reservation after a refused change", machine.reservation(key, now), firm)
    else:
        same("reservation after its change", machine.reservation(key, now), later)


def an_earlier_step_changes_nothing(subject: Subject, machine: AskedPlugin) -> None:
    """A change that comes after one with a higher step is refused, because calls may overtake each other."""
    now = subject.now
    key, cores = subject.key("steps"), _two(subject, machine)
    slot = _firm(subject, machine, key, cores).slot
    same_size = reserved("resize", machine.resize(key, 5, slot.cores, slot.end, now))
    fewer = slot.cores // 2
    refused("resize with an earlier step", machine.resize(key, 4, fewer, slot.end, now), RefusalCode.SLOT_TAKEN)
    same("reservation after a refused change", machine.reservation(key, now), same_size)


def only_what_is_firm_changes(subject: Subject, machine: AskedPlugin) -> None:
    """Holds, released and unknown keys cannot change their size."""
    now = subject.now
    codes = (RefusalCode.CANCELLED, RefusalCode.HOLD_EXPIRED)
    keys = [subject.key(name) for name in ("held", "released", "unknown")]
    machine.demand_resizable()
    slot = held(machine, keys[0], subject.unit(), now + HOUR, now).slot
    held(machine, keys[1], subject.unit(), now + HOUR, now)
    machine.confirm(keys[1], now)
    machine.release(keys[1], now)
    for key in keys:
        refused("resize", machine.resize(key, 1, 1, slot.end - MINUTE, now), *codes)
    kept = machine.reservation(keys[0], now)
    demand(kept is not None and kept.slot == slot, f"resize: refused, and yet the hold has become {kept!r:.200}")


def _firm(subject: Subject, machine: AskedPlugin, key: str, cores: int | None = None) -> Reservation:
    """Return a firm reservation of cores, by default a portion; `NotChecked` if the plug-in cannot change sizes."""
    machine.demand_resizable()
    held(machine, key, subject.unit(cores), subject.now + HOUR, subject.now)
    return reserved("confirm", machine.confirm(key, subject.now))


def _two(subject: Subject, machine: AskedPlugin) -> int:
    """Return the size of a reservation that can be halved: twice the machine's least."""
    least = machine.quote(subject.unit(1), subject.now)
    piece = least.cores if isinstance(least, Slot) else 1
    cores = max(subject.portion // (2 * piece), 1) * 2 * piece
    if cores > subject.cores:
        raise NotChecked(f"it has {subject.cores} cores, and gives {piece} at least")
    return cores
