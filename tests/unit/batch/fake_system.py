"""A batch system of a few lines, with the faults of real ones, for tests of what all plug-ins have in common."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

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
from ramp.model.instant import Instant
from ramp.model.slot import SlotMove

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
            now,
            tuple(self.nodes),
            tuple(self.running),
            tuple(self.waiting),
            tuple(self.there.values()),
            self.limits,
        )

    def reservations(self) -> tuple[SystemReservation, ...]:
        if self._fault("reservations"):
            raise NOBODY_KNOWS
        return tuple(self.there.values())

    def make(self, wanted: WantedReservation) -> None:
        fault = self._fault("make")
        if fault == "before":
            raise NOBODY_KNOWS
        if fault == "refuse":
            raise SystemRefused("Requested nodes are busy", busy=True)
        for each in self.there.values():
            if each.end is None or (each.start < wanted.end and wanted.start < each.end):
                self._room_beside(each, wanted)
        parts = wanted.parts[:-1] if fault == "fewer" else wanted.parts
        made = SystemReservation(
            wanted.name, wanted.name, wanted.start, wanted.end, parts, (wanted.user or self.market_user,)
        )
        self.there[wanted.name] = made
        if fault == "after":
            raise NOBODY_KNOWS

    def _room_beside(self, other: SystemReservation, wanted: WantedReservation) -> None:
        taken = dict(other.parts)
        sizes = {node.name: node.cores for node in self.nodes}
        for node, count in wanted.parts:
            if count + taken.get(node, 0) > sizes[node]:
                raise SystemRefused(f"{node} is busy", busy=True)

    def hand_over(self, reservation: SystemReservation, user: str) -> None:
        fault = self._fault("hand_over")
        if fault == "before":
            raise NOBODY_KNOWS
        if fault == "refuse":
            raise SystemRefused("Invalid user id")
        self.there[reservation.name] = replace(reservation, users=(user,))
        if fault == "after":
            raise NOBODY_KNOWS

    def remove(self, reservation: SystemReservation) -> None:
        fault = self._fault("remove")
        if fault == "before":
            raise NOBODY_KNOWS
        self.jobs_in.pop(reservation.name, None)
        self.there.pop(reservation.name, None)
        if fault == "after":
            raise NOBODY_KNOWS

    def change(self, reservation: SystemReservation, wanted: WantedReservation) -> bool:
        fault = self._fault("change")
        if fault == "before":
            raise NOBODY_KNOWS
        if fault == "refuse":
            raise SystemRefused("Requested nodes are busy", busy=True)
        if not self.changes or {*reservation.parts, *wanted.parts} - {(each.name, each.cores) for each in self.nodes}:
            return False
        for each in self.there.values():
            if each.name != reservation.name and (each.end is None or each.start < wanted.end):
                self._room_beside(each, wanted)
        there = self.there[reservation.name]
        self.there[reservation.name] = replace(there, parts=wanted.parts, end=wanted.end)
        if fault == "after":
            raise NOBODY_KNOWS
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


def lost_of(found: Mapping[str, str | SlotMove]) -> dict[str, str]:
    """Return the lost slots that a machine's `tend` has reported, without the moved ones."""
    return {key: each for key, each in found.items() if isinstance(each, str)}
