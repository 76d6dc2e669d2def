"""What a unit of a request asks of a torus machine: whole midplanes or nodes, a shape, a connection.

Cores are rounded up to whole units; all cores of a unit are charged for. `Geometry` counts compute nodes, as those are
the same thing on every machine; on Blue Gene/L, whose midplanes are cubes of 8 x 8 x 8 nodes, each extent is rounded up
to whole midplanes. `ConnectionType` torus and mesh are taken as they stand, any is a mesh, which is what takes fewest
cables, or any listed block. `NodeUse` coprocessor leaves one processor of each node to the job; all are charged for.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from ramp.errors import ConfigurationError
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import Nodes, RequestUnit, TorusTerms
from simulation.machines.grid import Grid
from simulation.machines.interface import Connection, GridMachine, JobRequest

COPROCESSOR = "coprocessor"


@dataclass(frozen=True, slots=True)
class UnitKind:
    """What one unit of a machine holds.

    Attributes:
        name: in the plural, for messages.
        cores: cores of a unit, all charged for.
        nodes: compute nodes of a unit.
        edge: compute nodes along each of its edges; 0 where a unit is no cube of nodes.
        has_node_use: whether the processors of a node may be given another use.
    """

    name: str
    cores: int
    nodes: int
    edge: int
    has_node_use: bool


def unit_kind(machine: GridMachine, cores: int, key: str) -> UnitKind:
    """Return what a unit of a machine holds that has `cores` cores in all.

    Args:
        machine: the machine.
        cores: its cores, as the swarm's configuration says.
        key: of the machine in that configuration, for messages.

    Raises:
        ConfigurationError: the units cannot have that many cores together.
    """
    units = Grid(machine.extents).size
    traits, dimensions = machine.traits, len(machine.extents)
    name = f"{traits.unit_noun}s"
    if traits.processors and cores != units * traits.processors:
        raise ConfigurationError(
            f"must be {units * traits.processors}, got {cores}: {machine.name} has {units} {name} of "
            f"{traits.processors} processors",
            key=f"{key}.cores",
        )
    if cores % units:
        raise ConfigurationError(
            f"must be a multiple of the {units} {name} of {machine.name}, got {cores}", key=f"{key}.cores"
        )
    edge = round(traits.compute_nodes ** (1 / dimensions))
    edge = edge if edge**dimensions == traits.compute_nodes else 0
    return UnitKind(name, cores // units, traits.compute_nodes, edge, traits.node_use)


class TorusRequests:
    """Translates units of requests for one machine.

    Args:
        machine: the machine.
        kind: of its units.
    """

    def __init__(self, machine: GridMachine, kind: UnitKind) -> None:
        self._machine = machine
        self._kind = kind
        self._fits: dict[object, bool] = {}

    def translate(self, unit: RequestUnit) -> JobRequest | Refusal:
        """Return the job that a unit is, with job id 0, or why the machine can never serve it."""
        terms = unit.torus or TorusTerms()
        kind = self._kind
        if terms.node_use and not kind.has_node_use:
            return _refusal(unit, "no node use", f"{self._machine.name} offers no choice of node use")
        # in coprocessor mode one processor of each node serves the network
        usable = kind.nodes if terms.node_use == COPROCESSOR else kind.cores
        size = -(-unit.cores.total // usable)
        if isinstance(unit.cores, Nodes):
            size = max(size, -(-unit.cores.count // kind.nodes))
        shape = None
        if terms.geometry:
            if kind.edge == 0:
                return _refusal(unit, "no geometry", f"{kind.name} of {self._machine.name} are not cubes of nodes")
            shape = tuple(-(-extent // kind.edge) for extent in terms.geometry)
            if prod(shape) < size:
                detail = f"the geometry has {prod(shape) * usable} cores, the request needs {unit.cores.total}"
                return _refusal(unit, f"{prod(shape) * usable} cores", detail)
            size = prod(shape)
        connection = connection_of(unit, self._machine)
        extents = self._machine.extents
        if shape is not None and len(shape) > len(extents):
            return self._too_large(unit, f"the machine has {len(extents)} dimensions")
        if shape is not None and size > self._machine.capacity:
            # fewer cores would not help: the geometry says how many units it takes
            return self._too_large(
                unit, f"the request needs {size} {kind.name}, but {self._machine.capacity} are in service"
            )
        if size > self._machine.capacity:
            cores = self._machine.capacity * usable
            detail = f"{unit.cores.total} cores need {size} {kind.name}, but {self._machine.capacity} are in service"
            return Refusal(unit.number, RefusalCode.MACHINE_TOO_SMALL, f"{cores} cores", detail)
        request = JobRequest(0, size, shape, terms.rotate, connection)
        if not self.fits_ever(request):
            return self._too_large(unit, f"no {'torus' if connection is Connection.TORUS else 'box'} of this size fits")
        return request

    def fits_ever(self, request: JobRequest) -> bool:
        """Return whether the request fits the empty machine."""
        fits = self._fits.get(request.kind)
        if fits is None:
            fits = self._fits[request.kind] = self._machine.fits_ever(request)
        return fits

    def _too_large(self, unit: RequestUnit, why: str) -> Refusal:
        extents = "x".join(str(extent * max(self._kind.edge, 1)) for extent in self._machine.extents)
        return _refusal(unit, f"within {extents} nodes", f"{self._machine.name} has {extents} nodes; {why}")


def connection_of(unit: RequestUnit, machine: GridMachine) -> Connection:
    """Return how the places of a unit have to be joined."""
    asked = "" if unit.torus is None else unit.torus.connection
    return Connection(asked) if asked in list(Connection) else machine.traits.connection


def _refusal(unit: RequestUnit, nearest: str, detail: str) -> Refusal:
    return Refusal(unit.number, RefusalCode.TORUS, nearest, detail)
