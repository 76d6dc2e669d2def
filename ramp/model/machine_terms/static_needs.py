"""The minimum machine for a unit of a request, for questions to a directory.

It contains only terms that a machine's own terms can answer: neither price nor window nor run time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ramp.model.request import NodeDiskSpace, Nodes, RequestUnit, TotalDiskSpace
from ramp.model.sizes.moldable import least_cores

NEEDS_MAX: Final = 32
"""Maximum number of different needs of one request in a query; requests with more ask for all resources."""


@dataclass(frozen=True, slots=True)
class StaticNeeds:
    """The needs of one unit; None or 0 without a need.

    Attributes:
        cores: least number of cores.
        cores_per_node: least number of cores on a node.
        nodes: least number of whole nodes, 0 if nodes make no difference.
        operating_system: JSDL 1.0 name.
        os_version: exact version.
        architecture: JSDL 1.0 name.
        cpu_speed_mhz: least clock rate in MHz.
        inter_node_bandwidth_mbps: least bandwidth between nodes in Mbit/s.
        ram_per_core_mb: least memory per core in MB.
        total_disk_space_gb: least disk space in all, in GB.
        node_disk_space_gb: least disk space on a node, in GB.
        torus: whether the machine has to be a torus.
    """

    cores: int
    cores_per_node: int = 1
    nodes: int = 0
    operating_system: str | None = None
    os_version: str | None = None
    architecture: str | None = None
    cpu_speed_mhz: int | None = None
    inter_node_bandwidth_mbps: int | None = None
    ram_per_core_mb: int | None = None
    total_disk_space_gb: int | None = None
    node_disk_space_gb: int | None = None
    torus: bool = False


def needs_of(units: Iterable[RequestUnit]) -> tuple[StaticNeeds, ...]:
    """Return the different needs of a request's units; empty if there are more than `NEEDS_MAX`."""
    needs = tuple(dict.fromkeys(_need_of(unit) for unit in units))
    return needs if len(needs) <= NEEDS_MAX else ()


def _need_of(unit: RequestUnit) -> StaticNeeds:
    nodes = unit.cores if isinstance(unit.cores, Nodes) and unit.moldable is None else None
    return StaticNeeds(
        least_cores(unit),
        nodes.cores_per_node if nodes is not None else 1,
        nodes.count if nodes is not None else 0,
        unit.operating_system,
        unit.os_version,
        unit.architecture,
        unit.cpu_speed_mhz,
        unit.inter_node_bandwidth_mbps,
        unit.ram_per_core_mb,
        unit.disk.gigabytes if isinstance(unit.disk, TotalDiskSpace) else None,
        unit.disk.gigabytes if isinstance(unit.disk, NodeDiskSpace) else None,
        torus=unit.torus is not None,
    )
