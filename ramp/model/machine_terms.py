"""A machine's static terms against those of a request, for sellers and, as needs, for directories.

"If an attribute is present, a resource must be able to satisfy it before responding" (paper section 5.2): a property
that the machine does not state cannot be satisfied. Needs contain only terms that a machine's own terms can answer:
neither price nor window nor run time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from ramp.model.offer import Refusal, RefusalCode, ease
from ramp.model.request import Nodes, RequestUnit
from ramp.model.sizes.moldable import candidates, least_cores
from ramp.model.slot import StaticTerms

NEEDS_MAX: Final = 32
"""Maximum number of different needs of one request in a query; requests with more ask for all resources."""


@dataclass(frozen=True, slots=True)
class Term:
    """A static term: a property of a machine that a request may demand.

    Attributes:
        name: of the attribute of machines and requests; except for disk space, also the keyword of `ramp.request`.
        element: its element in RFQL.
        code: code of the refusal of a machine that lacks it.
        option: of `ramp rfq new`, with its metavariable; empty for a term that is no attribute.
        words: its meaning.
        measure: unit of a least number; empty for a name that must be equal.
        hint: an example.
        is_extension: whether the published schema lacks it.
    """

    name: str
    element: str
    code: RefusalCode
    option: tuple[str, str] | tuple[()]
    words: str
    measure: str = ""
    hint: str = ""
    is_extension: bool = False


_C: Final = RefusalCode
STATED_TERMS: Final = (
    Term("operating_system", "OperatingSystem", _C.OPERATING_SYSTEM, ("--os", "NAME"), "operating system", "", "LINUX"),
    Term("os_version", "OSVersion", _C.OS_VERSION, ("--os-version", "VERSION"), "operating system version", "", "12"),
    Term("architecture", "Architecture", _C.ARCHITECTURE, ("--arch", "NAME"), "architecture", "", "x86_64"),
    Term("cpu_speed_mhz", "CPUSpeed", _C.CPU_SPEED, ("--cpu-speed", "MHZ"), "clock rate", "MHz", "2000"),
    Term("inter_node_bandwidth_mbps", "InterNodeBandwidth", _C.BANDWIDTH, ("--bandwidth", "MBPS"),
         "bandwidth between nodes", "Mbit/s", "1000"),
    Term("ram_per_core_mb", "RAMPerCore", _C.MEMORY, ("--ram", "MB"), "memory per core", "MB a core", "2048"),
    Term("gpus_per_node", "GPUsPerNode", _C.GPUS, ("--gpus", "N"), "number of GPUs", "GPUs a node", "4", True),
    Term("gpu_model", "GPUModel", _C.GPU_MODEL, ("--gpu-model", "NAME"), "model of the GPUs", "", "a100", True),
    Term("gpu_memory_mb", "GPUMemory", _C.GPU_MEMORY, ("--gpu-memory", "MB"), "GPU memory", "MB a GPU", "40000", True),
    Term("application", "Application", _C.APPLICATION, ("--application", "NAME"), "application", "", "NAMD", True),
    Term("application_version", "ApplicationVersion", _C.APPLICATION, ("--application-version", "VERSION"),
         "version of the application", "", "2.12", True),
)  # fmt: skip
"""The terms that are attributes of a request. A further one has a line here, its attributes, and its place in the
schemas.
"""

TERMS: Final = (
    *(term for term in STATED_TERMS if term.code is not _C.APPLICATION),  # of which its seller has a catalogue
    Term("total_disk_space_gb", "TotalDiskSpace", _C.DISK, (), "disk space", "GB in all"),
    Term("node_disk_space_gb", "NodeDiskSpace", _C.DISK, (), "disk space", "GB on each node"),
)
"""All terms that are compared with a machine's, in the order in which they are checked."""

_UNDISKED: Final = TERMS[:-2]


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
        torus=unit.torus is not None,
        nodes=nodes.count if nodes is not None else 0,
        **{term.name: getattr(unit, term.name) for term in TERMS},
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
    for term in TERMS if unit.disk is not None else _UNDISKED:
        wanted = getattr(unit, term.name)
        has = None if wanted is None else getattr(machine, term.name)
        if wanted is None or (has is not None and (has >= wanted if term.measure else has == wanted)):
            continue
        unit_of_measure = f" {term.measure}" if term.measure else ""
        nearest = "" if has is None else f"{has}{unit_of_measure}"
        detail = f"the request needs {wanted}{unit_of_measure}, the machine has {nearest or 'none stated'}"
        return Refusal(unit.number, term.code, nearest, detail)
    if unit.torus is not None and not machine.torus:
        without = "this machine has no torus to place a shape on"
        return Refusal(unit.number, RefusalCode.TORUS, "no torus terms", without)
    return None


def extension_problem(unit: RequestUnit) -> str:
    """Say why a unit's terms about GPUs or applications make no sense; empty if they do."""
    if unit.application_version is not None and unit.application is None:
        return "application_version needs the name of the application: give application"
    stated = [
        term.name for term in STATED_TERMS if term.name.startswith("gpu") and getattr(unit, term.name) is not None
    ]
    if stated and unit.gpus_per_node is None:
        return f"{stated[0]} needs a number of GPUs: give gpus_per_node"
    if stated and (unit.moldable is not None or not isinstance(unit.cores, Nodes)):
        return "GPUs are counted by node: give the cores as nodes with cores of each"
    return ""


def with_whole_nodes(unit: RequestUnit, machine: StaticTerms) -> RequestUnit:
    """Return a unit as the machine is asked for it: with GPUs it gets whole nodes, so that nobody else has the GPUs."""
    if unit.gpus_per_node is None or not isinstance(unit.cores, Nodes):
        return unit
    return replace(unit, cores=replace(unit.cores, cores_per_node=machine.cores_per_node))


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
