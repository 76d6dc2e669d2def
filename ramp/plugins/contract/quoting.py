"""Rules about a plug-in's description of its machine, and about quotes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from ramp.errors import ConfigurationError
from ramp.model.instant import DAY, HOUR, from_iso
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import Nodes, RequestUnit, TotalCores
from ramp.model.slot import Slot
from ramp.plugins.contract.subject import (
    NUMBER,
    PRICE,
    RUN,
    AskedPlugin,
    ContractBroken,
    Subject,
    demand,
    fill,
    held,
    instant_of,
    refused,
    same,
    slot_for,
)
from ramp.plugins.interface import SOURCES

_LISTS: Final = {"running", "queued", "reservations", "projected_load"}
_KEYS: Final = {"resource", "source", "time", "machine_time_s", "cores", "cores_busy", "load"} | _LISTS
_JOB_KEYS: Final = {"job", "cores", "start", "end", "submitted", "user"}
_RESERVATION_KEYS: Final = {"reservation_id", "key", "cores", "start", "end", "firm", "held_until"}
_END_OF_TIME: Final = from_iso("9999-12-31T23:59:59Z")


def source_is_one_of_three(subject: Subject, machine: AskedPlugin) -> None:
    """`source` is `log`, `synthetic` or `live`; every offer contains it."""
    demand(machine.source in SOURCES, f"source: got {machine.source!r}, expected one of {list(SOURCES)}")


def an_unknown_option_is_told(subject: Subject, machine: AskedPlugin) -> None:
    """An option that the plug-in does not know is refused with ConfigurationError, because it may be misspelt."""
    try:
        subject.open_raw(options={**subject.settings.options, "no_such_option": 1})
    except ConfigurationError:
        return
    except Exception as error:
        wrong = f"opening with the unknown option no_such_option raised {type(error).__name__}: {error}"
        raise ContractBroken(f"{wrong}, expected ConfigurationError") from error
    raise ContractBroken("opening with the unknown option no_such_option: accepted, expected ConfigurationError")


def a_snapshot_is_plain_json(subject: Subject, machine: AskedPlugin) -> None:
    """A snapshot has all its keys, in JSON types, with possible values."""
    key = subject.key("shown")
    held(machine, key, subject.unit(), subject.now + HOUR, subject.now)
    shown = machine.snapshot(subject.now, DAY)
    demand(set(shown) >= _KEYS, f"snapshot: {sorted(_KEYS - set(shown))} are missing")
    _check_machine(subject, shown, machine.source)
    _check_jobs(subject, shown)
    mine = [each for each in shown["reservations"] if each.get("key") == key]
    demand(len(mine) == 1, f"snapshot: the hold {key} is listed {len(mine)} times, expected once")
    demand(set(mine[0]) == _RESERVATION_KEYS, f"snapshot: a reservation's keys are {sorted(mine[0])}")
    parts = shown["projected_load"]
    right = parts and all(0 <= each["load"] <= 1 and from_iso(each["time"]) >= subject.now for each in parts)
    demand(bool(right), "snapshot: projected_load is not a list of loads from 0 to 1 from now on")


def _check_machine(subject: Subject, shown: dict[str, Any], source: str) -> None:
    facts = {"resource": subject.settings.resource, "source": source, "cores": subject.cores}
    for key, right in facts.items():
        demand(shown[key] == right, f"snapshot: {key}: got {shown[key]!r}, expected {right!r}")
    demand(from_iso(shown["time"]) == subject.now, f"snapshot: time is {shown['time']}, not the instant asked for")
    busy, load = shown["cores_busy"], shown["load"]
    demand(0 <= busy <= subject.cores, f"snapshot: {busy} of {subject.cores} cores are busy")
    demand(0 <= load <= 1, f"snapshot: load: got {load}, expected a share from 0 to 1")


def _check_jobs(subject: Subject, shown: dict[str, Any]) -> None:
    running = sum(job["cores"] for job in shown["running"])
    demand(running <= subject.cores, f"snapshot: running jobs have {running} of {subject.cores} cores")
    for job in (*shown["running"], *shown["queued"]):
        demand(set(job) == _JOB_KEYS, f"snapshot: keys of a job: got {sorted(job)}, expected {sorted(_JOB_KEYS)}")
        demand(from_iso(job["start"]) < from_iso(job["end"]), f"snapshot: job {job['job']} ends before its start")


def a_slot_lies_in_the_window(subject: Subject, machine: AskedPlugin) -> None:
    """A slot lies in the window asked for, is as long as the run, and has at least the cores asked for."""
    unit = subject.unit(slack=3 * HOUR)
    slot = slot_for(machine, unit, subject.now)
    inside = subject.start <= slot.start and slot.end <= unit.deadline
    demand(inside, f"quote: [{slot.start}, {slot.end}) is not within [{subject.start}, {unit.deadline}]")
    demand(slot.end - slot.start == RUN, f"quote: the slot is {slot.end - slot.start} us long, not {RUN}")


def nodes_count_with_their_cores(subject: Subject, machine: AskedPlugin) -> None:
    """A request for nodes, of no more cores than a node has, is one for their cores."""
    of_each = min(subject.portion, subject.settings.cores_per_node)
    unit = replace(subject.unit(), cores=Nodes(subject.portion // of_each, of_each))
    slot_for(machine, unit, subject.now)


def without_a_start_it_is_now(subject: Subject, machine: AskedPlugin) -> None:
    """Without a start the run begins as soon as possible; without a wall time it fills the window."""
    unit = RequestUnit(NUMBER, PRICE, subject.now + HOUR, TotalCores(1))
    answer = machine.quote(unit, subject.now)
    if not isinstance(answer, Slot):
        refused("quote from now on", answer, RefusalCode.CORES_TAKEN)
        return
    whole = (answer.start, answer.end) == (subject.now, unit.deadline)
    demand(whole, f"quote: got [{answer.start}, {answer.end}), expected [{subject.now}, {unit.deadline})")


def quotes_change_nothing(subject: Subject, machine: AskedPlugin) -> None:
    """The same question has the same answer every time, and sets nothing aside."""
    first = slot_for(machine, subject.unit(), subject.now)
    for _ in range(5):
        same("quote", machine.quote(subject.unit(), subject.now), first)
    same("reservations after quotes alone", machine.reservations(subject.now), ())


def more_cores_than_there_are(subject: Subject, machine: AskedPlugin) -> None:
    """More cores than the machine has: `machine_too_small`, the unit's number, and how many it has."""
    refusal = refused(
        "quote", machine.quote(subject.unit(subject.cores + 1), subject.now), RefusalCode.MACHINE_TOO_SMALL
    )
    demand(refusal.unit == NUMBER, f"quote: unit of the refusal: got {refusal.unit}, expected {NUMBER}")
    right = f"{subject.cores} cores"
    demand(refusal.nearest == right, f"quote: nearest: got {refusal.nearest!r}, expected {right!r}")


def a_window_too_short_names_the_nearest(subject: Subject, machine: AskedPlugin) -> None:
    """A window shorter than the run: `window_too_short`, with the nearest deadline, which then passes."""
    unit = subject.unit(slack=-1)
    refusal = refused("quote", machine.quote(unit, subject.now), RefusalCode.WINDOW_TOO_SHORT)
    slot_for(machine, replace(unit, deadline=instant_of("quote", refusal.nearest)), subject.now)


def a_window_that_has_passed(subject: Subject, machine: AskedPlugin) -> None:
    """A window that has passed: `window_passed`."""
    later = subject.start + DAY
    refused("quote", machine.quote(subject.unit(), later), RefusalCode.WINDOW_PASSED)


def a_window_to_the_end_of_time(subject: Subject, machine: AskedPlugin) -> None:
    """A window may end in the year 9999; a longer run is refused."""
    unit = replace(subject.unit(1), deadline=_END_OF_TIME)
    slot = slot_for(machine, unit, subject.now)
    demand(slot.start >= subject.start, "quote: the slot begins before the window")
    longer = replace(unit, wall_time=_END_OF_TIME)
    answer = machine.quote(longer, subject.now)
    demand(isinstance(answer, Refusal), f"quote: a run of 8 000 years got {answer!r:.200}")


def holds_count_in_every_quote(subject: Subject, machine: AskedPlugin) -> None:
    """Held cores are not quoted again: `cores_taken`, and the nearest start at which there are cores again."""
    before = slot_for(machine, subject.unit(1), subject.now)
    keys = fill(machine, subject, subject.now + HOUR, subject.now)
    refusal = refused("quote", machine.quote(subject.unit(1), subject.now), RefusalCode.CORES_TAKEN)
    if refusal.nearest:
        later = instant_of("quote", refusal.nearest)
        demand(later > subject.start, f"quote: nearest {refusal.nearest} is not after the window that is taken")
        nearest = slot_for(machine, subject.unit(1, after=later - subject.start), subject.now)
        demand(nearest.start == later, f"quote: the slot begins at {nearest.start}, not at the nearest {later}")
    for key in keys:
        machine.release(key, subject.now)
    same("quote after all was released", machine.quote(subject.unit(1), subject.now), before)


def load_counts_reservations(subject: Subject, machine: AskedPlugin) -> None:
    """The load of a slot, which determines prices, grows with the reservations over its time."""
    before = slot_for(machine, subject.unit(1), subject.now).load
    held(machine, subject.key("load"), subject.unit(), subject.now + HOUR, subject.now)
    after = slot_for(machine, subject.unit(1), subject.now).load
    demand(after > before, f"quote: the load is {after} with a hold and {before} without")
