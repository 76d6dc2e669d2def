"""A batch system of a few lines, with the faults of real ones, for tests of what all plug-ins have in common."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from ramp.batch.for_sale import ForSale
from ramp.batch.machine import BatchMachine
from ramp.batch.system import (
    NO_LIMITS,
    BatchSystem,
    Limits,
    Node,
    RunningJob,
    SystemReservation,
    SystemSnapshot,
    WaitingJob,
    WantedReservation,
)
from ramp.errors import BatchSystemError, SystemRefused
from ramp.model.instant import Instant, from_iso
from ramp.model.slot import SlotMove
from ramp.plugins.interface import PluginSettings

NOW = from_iso("2026-11-21T08:00:00Z")
NOBODY_KNOWS = BatchSystemError("scontrol: it took more than 20 s")


@dataclass
class FakeSystem(BatchSystem):
    """Nodes, jobs and reservations in memory; `faults` are met one after another, by the name of the call."""

    nodes: list[Node] = field(default_factory=lambda: [Node(f"n{number}", 8) for number in range(1, 9)])
    running: list[RunningJob] = field(default_factory=list)
    waiting: list[WaitingJob] = field(default_factory=list)
    there: dict[str, SystemReservation] = field(default_factory=dict)
    jobs_in: dict[str, tuple[str, ...]] = field(default_factory=dict)
    faults: list[tuple[str, str]] = field(default_factory=list)
    """(call, "before" | "after" | "refuse" | "fewer"): fails before or after it is done, says no, makes fewer nodes."""
    calls: list[str] = field(default_factory=list)
    name: str = "fake"
    market_user: str = "market"
    chooses_parts: bool = False
    begin_lag: int = 0
    changes: bool = True
    """Whether reservations of whole nodes can be changed in place; no others ever can."""
    launched: frozenset[str] = frozenset()
    """Jobs that an agent has launched."""
    limits: Limits = NO_LIMITS

    def _fault(self, call: str) -> str:
        self.calls.append(call)
        if self.faults and self.faults[0][0] == call:
            return self.faults.pop(0)[1]
        return ""

    def snapshot(self, now: Instant) -> SystemSnapshot:
        if self._fault("snapshot"):
            raise NOBODY_KNOWS
        return SystemSnapshot(
            now, tuple(self.nodes), tuple(self.running), tuple(self.waiting), tuple(self.there.values()), self.limits
        )

    def reservations(self) -> tuple[SystemReservation, ...]:
        if self._fault("reservations"):
            raise NOBODY_KNOWS
        return tuple(self.there.values())

    @contextmanager
    def _doing(self, call: str, refusal: str = "Requested nodes are busy", *, busy: bool = True) -> Iterator[str]:
        """Meet a fault before or after a change is made; yields it."""
        fault = self._fault(call)
        if fault == "before":
            raise NOBODY_KNOWS
        if fault == "refuse":
            raise SystemRefused(refusal, busy=busy)
        yield fault
        if fault == "after":
            raise NOBODY_KNOWS

    def make(self, wanted: WantedReservation) -> None:
        with self._doing("make") as fault:
            for each in self.there.values():
                if each.end is None or (each.start < wanted.end and wanted.start < each.end):
                    self._room_beside(each, wanted)
            parts = wanted.parts[:-1] if fault == "fewer" else wanted.parts
            users = (wanted.user or self.market_user,)
            self.there[wanted.name] = SystemReservation(
                wanted.name, wanted.name, wanted.start, wanted.end, parts, users
            )

    def _room_beside(self, other: SystemReservation, wanted: WantedReservation) -> None:
        taken = dict(other.parts)
        sizes = {node.name: node.cores for node in self.nodes}
        for node, count in wanted.parts:
            if count + taken.get(node, 0) > sizes[node]:
                raise SystemRefused(f"{node} is busy", busy=True)

    def hand_over(self, reservation: SystemReservation, user: str) -> None:
        with self._doing("hand_over", "Invalid user id", busy=False):
            self.there[reservation.name] = replace(reservation, users=(user,))

    def remove(self, reservation: SystemReservation) -> None:
        with self._doing("remove"):
            self.jobs_in.pop(reservation.name, None)
            self.there.pop(reservation.name, None)

    def change(self, reservation: SystemReservation, wanted: WantedReservation) -> bool:
        with self._doing("change"):
            whole = {(each.name, each.cores) for each in self.nodes}
            if not self.changes or {*reservation.parts, *wanted.parts} - whole:
                return False
            for each in self.there.values():
                if each.name != reservation.name and (each.end is None or each.start < wanted.end):
                    self._room_beside(each, wanted)
            there = self.there[reservation.name]
            self.there[reservation.name] = replace(there, parts=wanted.parts, end=wanted.end)
        return True

    def launched_in(self, name: str) -> frozenset[str]:
        self._fault("launched_in")
        return self.launched

    def narrow_job(self, job_id: str, nodes: int) -> None:
        if self._fault("narrow_job"):
            raise SystemRefused(f"job {job_id} cannot be narrowed to {nodes} nodes")
        self.running = [replace(job, parts=job.parts[:nodes]) if job.job_id == job_id else job for job in self.running]

    def running_in(self, reservation: SystemReservation) -> tuple[str, ...]:
        self._fault("running_in")
        return self.jobs_in.get(reservation.name, ())


Kind = TypeVar("Kind", bound=BatchMachine)


def machine_on(
    system: FakeSystem,
    kind: type[Kind] = BatchMachine,  # type: ignore[assignment]
    *,
    folder: Path | None = None,
    clock: list[float] | None = None,
    for_sale: ForSale | None = None,
    **options: Any,
) -> Kind:
    """Return a machine that sells all nodes of a system, waits for nothing, and looks at a clock of the test's."""
    cores = sum(node.cores for node in system.nodes)
    if clock is not None:
        options["monotonic"] = lambda: clock[0]
    settings = PluginSettings("big1", cores, 8, NOW, state_dir=folder)
    return kind(system, settings, for_sale or ForSale(), **{"snapshot_age_s": 0, "wait": lambda _: None, **options})


def lost_of(found: Mapping[str, str | SlotMove]) -> dict[str, str]:
    """Return the lost slots that a machine's `tend` has reported, without the moved ones."""
    return {key: each for key, each in found.items() if isinstance(each, str)}
