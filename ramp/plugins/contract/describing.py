"""Rules about a plug-in's description of its machine."""

from __future__ import annotations

from typing import Any, Final

from ramp.errors import ConfigurationError
from ramp.model.instant import DAY, HOUR, from_iso
from ramp.plugins.contract.demands import demand, held
from ramp.plugins.contract.subject import ContractBroken, Subject
from ramp.plugins.interface import SOURCES

_LISTS: Final = {"running", "queued", "reservations", "projected_load"}
_KEYS: Final = {"resource", "source", "time", "machine_time_s", "cores", "cores_busy", "load"} | _LISTS
_JOB_KEYS: Final = {"job", "cores", "start", "end", "submitted", "user"}
_RESERVATION_KEYS: Final = {"reservation_id", "key", "cores", "start", "end", "firm", "held_until"}


def source_is_one_of_three(subject: Subject) -> None:
    """`source` is `log`, `synthetic` or `live`; every offer contains it."""
    with subject.machine() as machine:
        demand(machine.source in SOURCES, f"source: got {machine.source!r}, expected one of {list(SOURCES)}")


def an_unknown_option_is_told(subject: Subject) -> None:
    """An option that the plug-in does not know is refused with ConfigurationError, because it may be misspelt."""
    try:
        subject.open_raw(options={**subject.settings.options, "no_such_option": 1})
    except ConfigurationError:
        return
    except Exception as error:
        wrong = f"opening with the unknown option no_such_option raised {type(error).__name__}: {error}"
        raise ContractBroken(f"{wrong}, expected ConfigurationError") from error
    raise ContractBroken("opening with the unknown option no_such_option: accepted, expected ConfigurationError")


def a_snapshot_is_plain_json(subject: Subject) -> None:
    """A snapshot has all its keys, in JSON types, with possible values."""
    with subject.machine() as machine:
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
