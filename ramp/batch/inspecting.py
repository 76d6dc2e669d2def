"""Compare a batch system with the promises made on it, without changing anything, for `ramp doctor`.

Three records describe the same slots: the resource's journal (which offers were accepted, agreed on and paid), the
plug-in's book (its holds and their names) and the system itself. The running agent makes them agree; these functions
report differences. The module of each kind of system has a function `inspect`.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from ramp.batch.book import Entry
from ramp.batch.reconciling import difference, own_prefix
from ramp.batch.system import BatchSystem, SystemReservation, SystemSnapshot
from ramp.batch.tending import harm
from ramp.model.instant import Instant, iso
from ramp.plugins.interface import PluginSettings

INSPECTED: Final[Mapping[str, str]] = {
    "slurm": "ramp.batch.slurm.plugin",
    "gridengine": "ramp.batch.gridengine.plugin",
    "queue-bound": "ramp.batch.waiting.plugin",
}
"""Modules that inspect the systems of plug-ins."""


@dataclass(frozen=True, slots=True)
class Remark:
    """One result of an inspection.

    Attributes:
        check: the subject of the check, in a word or two.
        subject: a resource, an agent, a file; empty for the market.
        says: the finding.
        do: the remedy; empty if nothing is wrong.
    """

    check: str
    subject: str
    says: str
    do: str = ""

    @property
    def is_finding(self) -> bool:
        return bool(self.do)


@dataclass(frozen=True, slots=True)
class Promise:
    """What a resource's journal says of an accepted offer that is not over.

    Attributes:
        key: the offer's id, which is the key in the plug-in's book.
        agreement_id: under which it is sold; empty before there is one.
        paid: whether the bank has paid.
        end: end of the slot.
        ends_as_hold: when it ends without an agreement; None once there is one.
    """

    key: str
    agreement_id: str
    paid: bool
    end: Instant
    ends_as_hold: Instant | None

    def live(self, now: Instant) -> bool:
        """Whether the slot has not ended, and the offer has not lapsed."""
        return now < self.end and (self.ends_as_hold is None or now < self.ends_as_hold)


Comparing = Callable[[Sequence[Entry], Sequence[Promise], Instant], tuple[Remark, ...]]
"""Says where a system differs from a resource's book and journal. Those are read after the system although they were
written first, so an ongoing purchase is no orphan.
"""


Inspection = Callable[[PluginSettings, Instant], tuple[Sequence[Remark], Callable[[], Comparing] | None]]
"""Function `inspect` of the module of a kind of system: checks its conditions for sales, such as privileges, which its
plug-in checks too. Its second result reads our reservations on the live system, without changing it, for a comparison
with the promises; None if there is no system besides the agent.
"""


def inspection(plugin: str) -> Inspection | None:
    """Return the function that inspects a plug-in's system, or None."""
    place = INSPECTED.get(plugin)
    return None if place is None else cast("Inspection", importlib.import_module(place).inspect)


def reading(resource: str, system: BatchSystem) -> Comparing:
    """Read the reservations of a system for `disagreements`, and all of it for the harm done to sold slots."""
    picture = system.snapshot(time.time_ns() // 1000)

    def compared(entries: Sequence[Entry], promises: Sequence[Promise], now: Instant) -> tuple[Remark, ...]:
        found = disagreements(resource, entries, promises, picture.reservations, system, now)
        return (*found, *harms(resource, entries, picture, now))

    return compared


def harms(resource: str, entries: Sequence[Entry], picture: SystemSnapshot, now: Instant) -> tuple[Remark, ...]:
    """Return a remark for each sold slot in which a job would not start."""
    do = "end the cause; otherwise the agent moves the slot, or refunds it a minute after its start"
    return tuple(
        Remark("slots", resource, f"{entry.name} is sold until {_end(entry)}, and {reason}", do)
        for entry in entries
        if entry.firm and entry.live(now) and (reason := harm(entry, picture, own_prefix(resource), now))
    )


def disagreements(
    resource: str,
    entries: Sequence[Entry],
    promises: Sequence[Promise],
    there: Sequence[SystemReservation],
    system: BatchSystem,
    now: Instant,
) -> tuple[Remark, ...]:
    """Return a remark for each difference between journal, book and system."""
    live = {each.name: each for each in entries if each.live(now)}
    known = {each.name: each for each in entries if each.name}
    found = {each.name: each for each in there}
    remarks: list[Remark] = []

    def differs(says: str, do: str) -> None:
        remarks.append(Remark("reservations", resource, says, do))

    for name, reservation in found.items():
        if name.startswith(own_prefix(resource)) and name not in live:
            differs(*_orphan(reservation, known.get(name), system))
    for name, entry in live.items():
        kind = "sold" if entry.firm else "held"
        wrong = difference(found.get(name), entry, system, now) if entry.made else ""
        if wrong:
            differs(
                f"{name} is {kind} until {_end(entry)}, and {system.name} {wrong}",
                "the agent restores it, moves the slot or refunds it within a minute: check again then",
            )
    do = "the agent refunds the buyer while it runs; otherwise restore the book from a backup"
    return (*remarks, *of_book(resource, list(live.values()), promises, now, do))


def of_book(
    resource: str, live: Sequence[Entry], promises: Sequence[Promise], now: Instant, do: str
) -> tuple[Remark, ...]:
    """Return a remark for each difference between journal and book."""
    covered = {each.key for each in promises if each.live(now)}
    firm = {each.key for each in live if each.firm}
    remarks = []
    for entry in live:
        if entry.key not in covered:
            kind = "sold" if entry.firm else "held"
            says = f"{entry.name} is {kind} in the plug-in's book until {_end(entry)}, and no agreement covers it"
            put = (
                f"restore the journal of {resource} from a backup, or delete the row of the book if the slot is unpaid"
            )
            remarks.append(Remark("reservations", resource, says, put))
    for promise in promises:
        if promise.paid and promise.live(now) and promise.key not in firm:
            until = f"is paid until {iso(promise.end)}, but the book has no slot for it"
            remarks.append(Remark("reservations", resource, f"agreement {promise.agreement_id} {until}", do))
    return tuple(remarks)


def _orphan(reservation: SystemReservation, entry: Entry | None, system: BatchSystem) -> tuple[str, str]:
    why = "no agreement covers it" if entry is None else "its hold or agreement is over"
    says = f"{system.name} has the reservation {reservation.name}, and {why}"
    if entry is None and (jobs := system.running_in(reservation)):
        return (
            f"{says}; jobs {', '.join(jobs[:5])} use it",
            "ask the jobs' owner; the resource removes it after they end",
        )
    return says, "the resource's next sweep removes it (at `ramp up`, and every quarter of a minute while it sells)"


def _end(entry: Entry) -> str:
    return iso(entry.slot.end if entry.held_until is None else entry.held_until)
