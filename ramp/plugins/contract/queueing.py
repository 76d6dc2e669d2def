"""Rules about plug-ins that tell what the machine's own queue lacks (`QueueingPlugin`); others are not judged."""

from __future__ import annotations

from typing import Final

from ramp.plugins.contract.demands import demand, same
from ramp.plugins.contract.subject import Subject


def no_more_is_missing_than_the_machine_has(subject: Subject) -> None:
    """What is missing for the first job of the machine's own queue is at least 0, and at most all of its cores."""
    with subject.machine() as machine:
        machine.demand_queueing()
        missing = machine.missing(subject.now)
        demand(0 <= missing <= subject.cores, f"missing: {missing} of {subject.cores} cores")


def to_ask_what_is_missing_changes_nothing(subject: Subject) -> None:
    """What is missing is the same when asked again at the same time; nothing is set aside."""
    now = subject.now
    with subject.machine() as machine:
        machine.demand_queueing()
        before = machine.reservations(now)
        missing = machine.missing(now)
        same("missing, asked again", machine.missing(now), missing)
        same("reservations after that", machine.reservations(now), before)


TRIALS: Final = (
    no_more_is_missing_than_the_machine_has,
    to_ask_what_is_missing_changes_nothing,
)
