"""Rules about quotes."""

from __future__ import annotations

from dataclasses import replace

from ramp.model.instant import DAY, HOUR
from ramp.model.offer import RefusalCode
from ramp.model.request import Nodes, RequestUnit, TotalCores
from ramp.model.slot import Slot
from ramp.plugins.contract.demands import demand, fill, held, hour_at, instant_of, refused, same, slot_for
from ramp.plugins.contract.subject import NUMBER, PRICE, RUN, Subject


def a_slot_lies_in_the_window(subject: Subject) -> None:
    """A slot lies in the window asked for, is as long as the run, and has at least the cores asked for."""
    with subject.machine() as machine:
        unit = subject.unit(slack=3 * HOUR)
        slot = slot_for(machine, unit, subject.now)
        inside = subject.start <= slot.start and slot.end <= unit.deadline
        demand(inside, f"quote: [{slot.start}, {slot.end}) is not within [{subject.start}, {unit.deadline}]")
        demand(slot.end - slot.start == RUN, f"quote: the slot is {slot.end - slot.start} us long, not {RUN}")


def nodes_count_with_their_cores(subject: Subject) -> None:
    """A request for nodes, of no more cores than a node has, is one for their cores."""
    with subject.machine() as machine:
        of_each = min(subject.portion, subject.settings.cores_per_node)
        unit = replace(subject.unit(), cores=Nodes(subject.portion // of_each, of_each))
        slot = slot_for(machine, unit, subject.now)
        demand(slot.cores >= unit.cores.total, f"quote: {slot.cores} cores for {unit.cores.total} on nodes")


def without_a_start_it_is_now(subject: Subject) -> None:
    """Without a start the run begins as soon as possible; without a wall time it fills the window."""
    with subject.machine() as machine:
        unit = RequestUnit(NUMBER, PRICE, subject.now + HOUR, TotalCores(1))
        answer = machine.quote(unit, subject.now)
        if not isinstance(answer, Slot):
            refused("quote from now on", answer, RefusalCode.CORES_TAKEN)
            return
        whole = (answer.start, answer.end) == (subject.now, unit.deadline)
        demand(whole, f"quote: got [{answer.start}, {answer.end}), expected [{subject.now}, {unit.deadline})")


def quotes_change_nothing(subject: Subject) -> None:
    """The same question has the same answer every time, and sets nothing aside."""
    with subject.machine() as machine:
        first = slot_for(machine, subject.unit(), subject.now)
        for _ in range(5):
            same("quote", machine.quote(subject.unit(), subject.now), first)
        same("reservations after quotes alone", machine.reservations(subject.now), ())


def more_cores_than_there_are(subject: Subject) -> None:
    """More cores than the machine has: `machine_too_small`, the unit's number, and how many it has."""
    with subject.machine() as machine:
        refusal = refused(
            "quote", machine.quote(subject.unit(subject.cores + 1), subject.now), RefusalCode.MACHINE_TOO_SMALL
        )
        demand(refusal.unit == NUMBER, f"quote: unit of the refusal: got {refusal.unit}, expected {NUMBER}")
        right = f"{subject.cores} cores"
        demand(refusal.nearest == right, f"quote: nearest: got {refusal.nearest!r}, expected {right!r}")


def a_window_too_short_names_the_nearest(subject: Subject) -> None:
    """A window shorter than the run: `window_too_short`, with the nearest deadline, which then passes."""
    with subject.machine() as machine:
        unit = subject.unit(slack=-1)
        refusal = refused("quote", machine.quote(unit, subject.now), RefusalCode.WINDOW_TOO_SHORT)
        slot_for(machine, replace(unit, deadline=instant_of("quote", refusal.nearest)), subject.now)


def a_window_that_has_passed(subject: Subject) -> None:
    """A window that has passed: `window_passed`."""
    with subject.machine() as machine:
        later = subject.start + DAY
        refused("quote", machine.quote(subject.unit(), later), RefusalCode.WINDOW_PASSED)


def holds_count_in_every_quote(subject: Subject) -> None:
    """Held cores are not quoted again: `cores_taken`, and the nearest start at which there are cores again."""
    with subject.machine() as machine:
        before = slot_for(machine, subject.unit(1), subject.now)
        keys = fill(machine, subject, subject.now + HOUR, subject.now)
        refusal = refused("quote", machine.quote(subject.unit(1), subject.now), RefusalCode.CORES_TAKEN)
        if refusal.nearest:
            later = instant_of("quote", refusal.nearest)
            demand(later > subject.start, f"quote: nearest {refusal.nearest} is not after the window that is taken")
            nearest = slot_for(machine, hour_at(subject, later, 1), subject.now)
            demand(nearest.start == later, f"quote: the slot begins at {nearest.start}, not at the nearest {later}")
        for key in keys:
            machine.release(key, subject.now)
        same("quote after all was released", machine.quote(subject.unit(1), subject.now), before)


def load_counts_reservations(subject: Subject) -> None:
    """The load of a slot, which determines prices, grows with the reservations over its time."""
    with subject.machine() as machine:
        before = slot_for(machine, subject.unit(1), subject.now).load
        held(machine, subject.key("load"), subject.unit(), subject.now + HOUR, subject.now)
        after = slot_for(machine, subject.unit(1), subject.now).load
        demand(after > before, f"quote: the load is {after} with a hold and {before} without")
