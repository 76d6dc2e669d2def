"""A machine's static terms against those of a request, for sellers and, as needs, for directories.

"If an attribute is present, a resource must be able to satisfy it before responding" (paper section 5.2): a property
that the machine does not state cannot be satisfied. Needs contain only terms that a machine's own terms can answer:
neither price nor window nor run time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ramp.model.offer import Refusal, RefusalCode, ease
from ramp.model.request import NodeDiskSpace, Nodes, RequestUnit, TotalDiskSpace
from ramp.model.sizes.moldable import candidates, least_cores
from ramp.model.slot import StaticTerms

NEEDS_MAX: Final = 32
"""Maximum number of different needs of one request in a query; requests with more ask for all resources."""


@dataclass(frozen=True, slots=True)
class StaticNeeds(StaticTerms):
    """The needs of one unit: least numbers and exact names that a machine's terms must meet.

    Attributes:
        nodes: least number of whole nodes, 0 if nodes make no difference.
    """

    nodes: int = 0


def needs_of(units: Iterable[RequestUnit]) -> tuple[StaticNeeds, ...]:
    """Return the different needs of a request's units; empty if there are more than `NEEDS_MAX`."""
    needs = tuple(dict.fromkeys(_need_of(unit) for unit in units))
    return needs if len(needs) <= NEEDS_MAX else ()


def _need_of(unit: RequestUnit) -> StaticNeeds:
    nodes = unit.cores if isinstance(unit.cores, Nodes) and unit.moldable is None else None
    return StaticNeeds(
        least_cores(unit),
        nodes.cores_per_node if nodes is not None else 1,
        unit.operating_system,
        unit.os_version,
        unit.architecture,
        unit.cpu_speed_mhz,
        unit.inter_node_bandwidth_mbps,
        unit.ram_per_core_mb,
        unit.disk.gigabytes if isinstance(unit.disk, TotalDiskSpace) else None,
        unit.disk.gigabytes if isinstance(unit.disk, NodeDiskSpace) else None,
        torus=unit.torus is not None,
        nodes=nodes.count if nodes is not None else 0,
    )


def static_refusal(unit: RequestUnit, machine: StaticTerms) -> Refusal | None:
    """Return the refusal of a unit that a machine can run at none of the sizes a seller considers, or None.

    Of the sizes' refusals it is the one that came closest, as the seller itself would answer.
    """
    refusals = []
    for size in candidates(unit):
        refusal = check_static_terms(size, machine)
        if refusal is None:
            return None
        refusals.append(refusal)
    return min(refusals, key=lambda each: ease(each.code, each.nearest))


def check_static_terms(unit: RequestUnit, machine: StaticTerms) -> Refusal | None:
    """Return a refusal for the first static term that the machine misses, with the nearest valid value, or None."""
    if unit.cores.total > machine.cores:
        cores = _counted(machine.cores, "core")
        return Refusal(unit.number, RefusalCode.MACHINE_TOO_SMALL, cores, f"the machine has {cores}")
    if isinstance(unit.cores, Nodes) and (refusal := _check_nodes(unit.number, unit.cores, machine)):
        return refusal
    for code, wanted, offered in (
        (RefusalCode.OPERATING_SYSTEM, unit.operating_system, machine.operating_system),
        (RefusalCode.OS_VERSION, unit.os_version, machine.os_version),
        (RefusalCode.ARCHITECTURE, unit.architecture, machine.architecture),
    ):
        if wanted is not None and wanted != offered:
            detail = f"the request needs {wanted}, the machine has {offered or 'none stated'}"
            return Refusal(unit.number, code, offered or "", detail)
    disk = None if unit.disk is None else unit.disk.gigabytes
    if isinstance(unit.disk, NodeDiskSpace):
        disk_offered, disk_measure = machine.node_disk_space_gb, "GB on each node"
    else:
        disk_offered, disk_measure = machine.total_disk_space_gb, "GB in all"
    for code, least, has, measure in (
        (RefusalCode.CPU_SPEED, unit.cpu_speed_mhz, machine.cpu_speed_mhz, "MHz"),
        (RefusalCode.BANDWIDTH, unit.inter_node_bandwidth_mbps, machine.inter_node_bandwidth_mbps, "Mbit/s"),
        (RefusalCode.MEMORY, unit.ram_per_core_mb, machine.ram_per_core_mb, "MB a core"),
        (RefusalCode.DISK, disk, disk_offered, disk_measure),
    ):
        if least is not None and (has is None or has < least):
            nearest = "" if has is None else f"{has} {measure}"
            detail = f"the request needs {least} {measure}, the machine has {nearest or 'none stated'}"
            return Refusal(unit.number, code, nearest, detail)
    if unit.torus is not None and not machine.torus:
        without = "this machine has no torus to place a shape on"
        return Refusal(unit.number, RefusalCode.TORUS, "no torus terms", without)
    return None


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _check_nodes(number: int, wanted: Nodes, machine: StaticTerms) -> Refusal | None:
    if wanted.cores_per_node > machine.cores_per_node:
        has = _counted(machine.cores_per_node, "core")
        return Refusal(number, RefusalCode.NODE_CORES, f"{has} a node", f"a node has {has}")
    nodes = machine.cores // machine.cores_per_node
    if wanted.count > nodes:
        has = _counted(nodes, "node")
        return Refusal(number, RefusalCode.MACHINE_TOO_SMALL, has, f"the machine has {has}")
    return None
