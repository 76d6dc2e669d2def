"""Slots and reservations of a machine, and the machine's fixed terms."""

from __future__ import annotations

from dataclasses import dataclass

from ramp.model.instant import Instant


@dataclass(frozen=True, slots=True)
class Slot:
    """A window on the machine for a job.

    Attributes:
        start: earliest possible start within the request's window.
        end: start plus the run's duration.
        cores: cores charged for (whole nodes if the machine gives only those).
        load: share of the machine already taken over [start, end), time-mean, 0 to 1, without this job.
        placement: its place, in the machine's words; may be empty.
        token: the plug-in's own mark by which `hold` finds exactly this slot again.
        fragmentation: share of the machine's largest free box that the job would destroy beyond its own place, 0 to 1;
            0 if places do not matter.
        links_taken: share of the machine's free cables that the job would take, 0 to 1; 0 without cables.
        start_probability: probability that the job starts by `start`, above 0 and at most 1, if the machine submits
            a job in place of reserving; None for a slot that is reserved.
    """

    start: Instant
    end: Instant
    cores: int
    load: float
    placement: str = ""
    token: str = ""
    fragmentation: float = 0.0
    links_taken: float = 0.0
    start_probability: float | None = None


@dataclass(frozen=True, slots=True)
class SlotMove:
    """A move of a sold slot to other places of its machine, or to another reservation.

    Attributes:
        placement: its present place, in the machine's words.
        moved_at: when; later moves of one slot have later instants, whatever the clock says.
        reservation_id: the machine's present name for it; empty if it never changes.
    """

    placement: str
    moved_at: Instant
    reservation_id: str = ""


@dataclass(frozen=True, slots=True)
class Reservation:
    """Capacity set aside.

    Attributes:
        key: the caller's id it was made with (offer id).
        reservation_id: the machine's name for it; unique, never used again.
        slot: the slot.
        firm: False for a hold, True once confirmed.
        held_until: deadline of a hold; None once firm.
        started_at: when the job of a slot with a `start_probability` began; None before, and for other slots.
    """

    key: str
    reservation_id: str
    slot: Slot
    firm: bool
    held_until: Instant | None
    started_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class StaticTerms:
    """The machine's fixed properties (paper section 6.2.1), in RFQL's units; None = not stated.

    Attributes:
        cores: cores of the machine.
        cores_per_node: cores on one node.
        operating_system: JSDL 1.0 name.
        os_version: its version.
        architecture: JSDL 1.0 name.
        cpu_speed_mhz: clock rate in MHz.
        inter_node_bandwidth_mbps: bandwidth between nodes in Mbit/s.
        ram_per_core_mb: memory per core in MB.
        total_disk_space_gb: disk space in all, in GB.
        node_disk_space_gb: disk space on a node, in GB.
        torus: whether the extension terms for torus machines mean anything here.
        gpus_per_node: GPUs on one node.
        gpu_model: the batch system's name of their model.
        gpu_memory_mb: memory of each GPU in MB.
    """

    cores: int
    cores_per_node: int = 1
    operating_system: str | None = None
    os_version: str | None = None
    architecture: str | None = None
    cpu_speed_mhz: int | None = None
    inter_node_bandwidth_mbps: int | None = None
    ram_per_core_mb: int | None = None
    total_disk_space_gb: int | None = None
    node_disk_space_gb: int | None = None
    torus: bool = False
    gpus_per_node: int | None = None
    gpu_model: str | None = None
    gpu_memory_mb: int | None = None

    @property
    def gpus(self) -> str:
        """The GPUs of a node for people, such as `4 a100 a node`; empty without."""
        return f"{self.gpus_per_node} {self.gpu_model or 'GPUs'} a node" if self.gpus_per_node else ""
