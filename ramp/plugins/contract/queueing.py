"""Rules about plug-ins that tell what those lack who wait (`QueueingPlugin`); others are not judged."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ramp.model.instant import HOUR, MINUTE
from ramp.model.offer import Refusal
from ramp.model.request import TotalCores
from ramp.plugins.contract.demands import demand, held, same, slot_for
from ramp.plugins.contract.subject import Subject


def nothing_is_missing_for_what_fits(subject: Subject) -> None:
    """A unit that is quoted lacks no cores."""
    now = subject.now
    with subject.machine() as machine:
        machine.demand_queueing()
        unit = subject.unit()
        slot_for(machine, unit, now)
        same("missing for a unit that is quoted", machine.missing(unit, now), 0)


def so_many_cores_are_missing_and_no_more(subject: Subject) -> None:
    """A unit that cannot be quoted lacks exactly so many cores: with fewer by so many it is quoted, with one more not.

    More than is free in the whole window is of no use: the cores must be free together, for as long as the unit runs.
    """
    now, wanted = subject.now, subject.cores
    with subject.machine() as machine:
        machine.demand_queueing()
        held(machine, subject.key("in-the-way"), subject.unit(), now + HOUR, now)
        missing = machine.missing(subject.unit(wanted), now)
        demand(1 <= missing <= wanted, f"missing: {missing} for all {wanted} cores while some are set aside")
        if missing < wanted:
            slot_for(machine, subject.unit(wanted - missing), now)
        more = machine.quote(subject.unit(wanted - missing + 1), now)
        demand(
            isinstance(more, Refusal),
            f"missing: {missing} of {wanted}, and yet {wanted - missing + 1} cores are quoted",
        )


def what_cannot_be_had_is_not_missing(subject: Subject) -> None:
    """Where no number of cores would do (a unit larger than the machine, a window that is over) nothing is missing."""
    now = subject.now
    with subject.machine() as machine:
        machine.demand_queueing()
        larger = replace(subject.unit(), cores=TotalCores(subject.cores + 1))
        over = replace(subject.unit(), not_before=now - 2 * HOUR, deadline=now - HOUR + MINUTE)
        for what, unit in (("a unit larger than the machine", larger), ("a unit whose window is over", over)):
            same(f"missing for {what}", machine.missing(unit, now), 0)


def to_ask_what_is_missing_changes_nothing(subject: Subject) -> None:
    """What is missing, for a unit or the machine's own queue, is the same when asked again; nothing is set aside."""
    now = subject.now
    with subject.machine() as machine:
        machine.demand_queueing()
        before = machine.reservations(now)
        for what, unit in (("its own queue", None), ("the whole machine", subject.unit(subject.cores))):
            missing = machine.missing(unit, now)
            demand(missing <= subject.cores, f"missing for {what}: {missing} of {subject.cores} cores")
            same(f"missing for {what}, asked again", machine.missing(unit, now), missing)
        same("reservations after that", machine.reservations(now), before)


TRIALS: Final = (
    nothing_is_missing_for_what_fits,
    so_many_cores_are_missing_and_no_more,
    what_cannot_be_had_is_not_missing,
    to_ask_what_is_missing_changes_nothing,
)
