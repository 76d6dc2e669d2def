"""A request for quotation: the 17 terms of RFQL (paper section 5.2) as values.

Units are the project's decision where the published schema states none: CPUSpeed in MHz, InterNodeBandwidth in
Mbit/s, RAMPerCore in MB, disk space in GB, WallTime in seconds (here microseconds, as every duration).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from ramp.model.instant import Duration, Instant

NUMBER_MAX: Final = 10**12
"""Largest number of any term: far above every machine, and far below numbers that cost time to read."""


@dataclass(frozen=True, slots=True)
class TotalCores:
    """RFQL's Cores/TotalCores: a number of cores, on any nodes."""

    total: int


@dataclass(frozen=True, slots=True)
class Nodes:
    """RFQL's Cores/Nodes: `count` nodes with `cores_per_node` cores each."""

    count: int
    cores_per_node: int

    @property
    def total(self) -> int:
        return self.count * self.cores_per_node


@dataclass(frozen=True, slots=True)
class TotalDiskSpace:
    """RFQL's Disk/TotalDiskSpace in GB."""

    gigabytes: int


@dataclass(frozen=True, slots=True)
class NodeDiskSpace:
    """RFQL's Disk/NodeDiskSpace in GB on each node."""

    gigabytes: int


@dataclass(frozen=True, slots=True)
class TorusTerms:
    """Extension terms for torus machines, in a namespace of their own.

    Attributes:
        geometry: extents asked for, empty for any.
        rotate: whether the extents may be permuted.
        connection: `torus`, `mesh` or `any`.
        node_use: `coprocessor`, `virtual` or empty (Slurm's --node-use).
    """

    geometry: tuple[int, ...] = ()
    rotate: bool = True
    connection: str = "any"
    node_use: str = ""


@dataclass(frozen=True, slots=True)
class MoldableTerms:
    """Extension terms that leave the size to the seller, in a namespace of their own (`ramp.model.sizes.moldable`).

    Attributes:
        least: minimum number of cores.
        most: maximum number of cores; further ones shorten nothing.
        law: the run's speed-up law as a text (`ramp.model.sizes.speed_up.law_of`).
    """

    least: int
    most: int
    law: str


@dataclass(frozen=True, slots=True)
class RequestUnit:
    """One Request of an RFQL document: one unit of a combinatorial request.

    Attributes:
        number: position in the document, from 1; names the unit in every message.
        cpu_hour_cost: the user's maximum, whole credits per core-hour asked (at the reference size, if it has one); in
            later rounds the asking price.
        deadline: EndDate and EndTime: the run is complete by then.
        cores: cores wanted, or the reference size.
        not_before: StartDate and StartTime: the run starts no earlier; None means as soon as possible.
        wall_time: WallTime: longest run (at the reference size); None means the whole window.
        operating_system: JSDL 1.0 name, or None.
        os_version: exact version, or None.
        architecture: JSDL 1.0 name, or None.
        cpu_speed_mhz: least clock rate in MHz, or None.
        inter_node_bandwidth_mbps: least bandwidth between nodes in Mbit/s, or None.
        ram_per_core_mb: least memory per core in MB, or None.
        disk: total or per-node disk space, or None.
        torus: extension terms, or None.
        start_probability: extension term: least probability with which the run starts early enough to be complete by
            the deadline, above 0 and at most 1; None if only a reserved slot is acceptable.
        moldable: the sizes that the seller may choose from, or None.
        gpus_per_node: extension term: least number of GPUs on each of its `Nodes`, which the slot then has as a whole.
        gpu_model: extension term: their model, or None.
        gpu_memory_mb: extension term: least memory of each GPU in MB, or None.
        application: extension term: name of an application that the seller has, or None.
        application_version: extension term: its version, or None.
        sites: extension term: the acceptable sites, as domains in lower case, or single resources of them; None for any
            (and not empty, because digests of terms leave out None: those of other requests stay the same).
    """

    number: int
    cpu_hour_cost: int
    deadline: Instant
    cores: TotalCores | Nodes
    not_before: Instant | None = None
    wall_time: Duration | None = None
    operating_system: str | None = None
    os_version: str | None = None
    architecture: str | None = None
    cpu_speed_mhz: int | None = None
    inter_node_bandwidth_mbps: int | None = None
    ram_per_core_mb: int | None = None
    disk: TotalDiskSpace | NodeDiskSpace | None = None
    torus: TorusTerms | None = None
    start_probability: float | None = None
    moldable: MoldableTerms | None = None
    sites: tuple[str, ...] | None = None
    gpus_per_node: int | None = None
    gpu_model: str | None = None
    gpu_memory_mb: int | None = None
    application: str | None = None
    application_version: str | None = None

    @property
    def total_disk_space_gb(self) -> int | None:
        return self.disk.gigabytes if isinstance(self.disk, TotalDiskSpace) else None

    @property
    def node_disk_space_gb(self) -> int | None:
        return self.disk.gigabytes if isinstance(self.disk, NodeDiskSpace) else None

    @property
    def gpus(self) -> int:
        """GPUs in all, 0 without the term."""
        return self.cores.count * (self.gpus_per_node or 0) if isinstance(self.cores, Nodes) else 0

    @property
    def gres(self) -> str:
        """The GPUs of each node as Slurm writes them, ``gpu:a100:4``; ``none`` without the term."""
        if self.gpus_per_node is None:
            return "none"
        return ":".join(("gpu", *([self.gpu_model] if self.gpu_model else []), str(self.gpus_per_node)))

    def length_from(self, now: Instant) -> Duration:
        """Return the run's length in microseconds: the wall time, or the rest of the window without one.

        The rest is seen from `now`, and at most 0 after the window.
        """
        if self.wall_time is not None:
            return self.wall_time
        return self.deadline - (now if self.not_before is None else max(now, self.not_before))


@dataclass(frozen=True, slots=True)
class RequestForQuotation:
    """An RFQL document: one or more units that are bought together or not at all.

    Attributes:
        units: in their order.
        warnings: oddities of the document.
        max_cost: maximum for all units together, in minor units; None for no limit. For the buyer's own agent: calls
            for proposals do not contain it.
    """

    units: tuple[RequestUnit, ...]
    warnings: tuple[str, ...] = field(default=(), compare=False)
    max_cost: int | None = None

    def unit(self, number: int) -> RequestUnit:
        """Return the unit of that number; `KeyError` if the document has no such unit."""
        for unit in self.units:
            if unit.number == number:
                return unit
        raise KeyError(number)
