"""Check answers for the rules: each function returns the answer, or raises an error that names its fault."""

from __future__ import annotations

from ramp.model.instant import HOUR, Instant, from_iso
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import RequestUnit
from ramp.model.slot import Reservation, Slot
from ramp.plugins.contract.subject import AskedPlugin, ContractBroken, NotChecked, Subject


def demand(right: bool, wrong: str) -> None:
    """Raise an error with a sentence unless a condition holds; `ContractBroken` with that sentence."""
    if not right:
        raise ContractBroken(wrong)


def slot_for(machine: AskedPlugin, unit: RequestUnit, now: Instant) -> Slot:
    """Return the slot quoted for a unit that fits."""
    answer = machine.quote(unit, now)
    if not isinstance(answer, Slot):
        raise ContractBroken(f"quote: {answer.code} ({answer.detail}) for {unit.cores.total} cores that are free")
    return answer


def held(machine: AskedPlugin, key: str, unit: RequestUnit, until: Instant, now: Instant) -> Reservation:
    """Return a hold of the slot quoted for a unit that fits."""
    return reserved("hold", machine.hold(key, unit, slot_for(machine, unit, now), until, now))


def reserved(what: str, answer: Reservation | Refusal) -> Reservation:
    """Require that a call answered a reservation."""
    if isinstance(answer, Refusal):
        raise ContractBroken(f"{what}: got refusal {answer.code} ({answer.detail}), expected the reservation")
    return answer


def refused(what: str, answer: object, *codes: RefusalCode) -> Refusal:
    """Require that a call answered a refusal with one of the codes."""
    right = " or ".join(codes)
    if not isinstance(answer, Refusal):
        raise ContractBroken(f"{what}: got {answer!r:.200}, expected a refusal with {right}")
    demand(answer.code in codes, f"{what}: got refusal {answer.code} ({answer.detail}), expected {right}")
    return answer


def same(what: str, answer: object, before: object) -> None:
    """Require that two answers are equal."""
    demand(answer == before, f"{what}: got {answer!r:.300}, expected {before!r:.300} as before")


def instant_of(what: str, text: str) -> Instant:
    """Return the instant that a refusal names as the nearest valid one."""
    try:
        return from_iso(text)
    except ValueError as error:
        raise ContractBroken(f"{what}: nearest: got {text!r}, expected an instant in ISO 8601") from error


def fill(machine: AskedPlugin, subject: Subject, until: Instant, now: Instant) -> list[str]:
    """Hold all free cores in the tried window, the largest pieces first; return the keys.

    Raises:
        ContractBroken: if more is held than the machine has.
    """
    keys: list[str] = []
    taken = 0
    cores = subject.cores
    while cores:
        unit = subject.unit(cores)
        slot = machine.quote(unit, now)
        if isinstance(slot, Refusal):
            cores = cores // 2 if cores > 1 else 0
            continue
        keys.append(subject.key("all"))
        taken += reserved("hold", machine.hold(keys[-1], unit, slot, until, now)).slot.cores
        demand(taken <= subject.cores, f"hold: {taken} cores are set aside at once, the machine has {subject.cores}")
    if not machine.held:
        raise NotChecked("the cores that were free are not free any more")
    return keys


def hour_at(subject: Subject, start: Instant, cores: int) -> RequestUnit:
    """Return a request for an hour that begins exactly at an instant."""
    return subject.unit(cores, after=start - subject.start, run=HOUR)
