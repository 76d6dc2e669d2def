"""Interface of simulated machines for schedulers, planners and the command line.

A scheduler calls `place` (which changes nothing), then `allocate`, later `release`. It does not know which
machine it serves. Units are what the machine allocates: midplanes on Blue Gene/L, nodes on Angara, processors on a
flat machine. Equal states give equal decisions: a machine has no clock and no random source.

Machines are read from TOML by `simulation.machine_files.load_machine`; `FlatMachine` is in `simulation.machines.flat`.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeGuard, TypeVar

from ramp.errors import MachineError

if TYPE_CHECKING:
    from simulation.machines.bluegene.machine import BlueGene
    from simulation.machines.grid import Grid


class Connection(enum.StrEnum):
    """Connection of a job's midplanes along a dimension (Slurm's --conn-type).

    `NAV` takes a torus where possible and a mesh otherwise.
    """

    MESH = "mesh"
    TORUS = "torus"
    NAV = "nav"

    __hash__ = str.__hash__
    """Requests are grouped by kinds that hold connections, and an enumeration's own hash is slow."""


class NodeState(enum.StrEnum):
    """State of one unit, in Slurm's words."""

    IDLE = "idle"
    ALLOCATED = "alloc"
    DRAINED = "drain"
    DOWN = "down"


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A job's request to a machine.

    Attributes:
        job_id: identifies the job while it holds units; unique among running jobs.
        size: units asked for; with a shape it equals the shape's volume.
        shape: extents, one a dimension; None means any shape of that size.
        rotate: whether the shape may be turned.
        connection: one value for all dimensions, or one per extent of the shape, turned along with it.
        kind: all that matters for a decision. If one request of a kind does not fit, no request of that kind fits
            until units or links become free.
    """

    job_id: int
    size: int
    shape: tuple[int, ...] | None = None
    rotate: bool = True
    connection: tuple[Connection, ...] | Connection = Connection.MESH
    kind: tuple[Any, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.size < 1:
            raise MachineError(f"job {self.job_id}: size must be at least 1, got {self.size}")
        if self.shape is not None:
            volume = 1
            for extent in self.shape:
                if extent < 1:
                    raise MachineError(f"job {self.job_id}: shape {self.shape} has an extent below 1")
                volume *= extent
            if volume != self.size:
                shape = "x".join(map(str, self.shape))
                raise MachineError(f"job {self.job_id}: shape {shape} has {volume} units, but size is {self.size}")
        # most requests are looked at often
        kind = (self.shape, self.size if self.shape is None else 0, self.rotate, self.connection)
        object.__setattr__(self, "kind", kind)


@dataclass(frozen=True, slots=True)
class Placement:
    """The place where a job runs or could run: the answer of `Machine.place`.

    Attributes:
        job_id: the job.
        size: units taken; more than asked for where the machine has no box of that size.
        nodes: bit set, bit i = unit i is taken; 0 on a flat machine, whose units have no identity.
        shape: extents as they lie on the machine (after rotation); () on a flat machine.
        origin: lowest coordinate in each dimension; () on a flat machine.
        connection: how each dimension is joined, never NAV; () where the machine has no such choice.
        members: coordinates taken in each dimension; the job holds their Cartesian product.
        links: cable labels in each dimension, held on every line of that dimension that crosses the job.
        block: name of the listed block that it is; empty on machines without a list.
    """

    job_id: int
    size: int
    nodes: int = 0
    shape: tuple[int, ...] = ()
    origin: tuple[int, ...] = ()
    connection: tuple[Connection, ...] = ()
    members: tuple[tuple[int, ...], ...] = ()
    links: tuple[tuple[int, ...], ...] = ()
    block: str = ""

    @property
    def link_count(self) -> int:
        """Number of cables held on all lines together: the merit of the 2005 allocation study (small is good)."""
        volume = 1
        for coordinates in self.members:
            volume *= len(coordinates)
        return sum(
            len(labels) * (volume // len(coordinates))
            for labels, coordinates in zip(self.links, self.members, strict=True)
        )


@dataclass(frozen=True, slots=True)
class Reallocation:
    """A running job's change of size: the answer of `Machine.reallocate`.

    Attributes:
        before: what the job held.
        after: what it holds.
        kept: units that it holds before and after.
    """

    before: Placement
    after: Placement
    kept: int


@dataclass(frozen=True, slots=True)
class Traits:
    """Properties of a machine, so that callers need not know its class.

    Attributes:
        unit_noun: word for one of its units.
        has_places: units have coordinates and names: it is a `GridMachine`.
        interchangeable: any free units fit, so that units are only counted; any other machine is a `NumberedMachine`.
        exclusive_cables: jobs hold cables as well as units: it is a `BlueGene` or derived from it.
        wraps: free boxes may run over the seam of a ring.
        chooses_shapes: its allocators choose the shape, so that jobs need only a size.
        connection: of jobs that need no torus; a mesh takes the fewest cables.
        processors: of a unit; 0 where the market's configuration says how many.
        compute_nodes: of a unit.
        node_use: the processors of a compute node may be given another use (Slurm's --node-use).
    """

    unit_noun: str
    has_places: bool = True
    interchangeable: bool = False
    exclusive_cables: bool = False
    wraps: bool = True
    chooses_shapes: bool = False
    connection: Connection = Connection.MESH
    processors: int = 0
    compute_nodes: int = 1
    node_use: bool = False


class Machine(Protocol):
    """A machine with running jobs. Every decision is deterministic."""

    @property
    def traits(self) -> Traits:
        """Properties of the machine."""
        ...

    @property
    def name(self) -> str:
        """Name from the machine's file."""
        ...

    @property
    def extents(self) -> tuple[int, ...]:
        """Units in each dimension; (n,) on a flat machine."""
        ...

    @property
    def capacity(self) -> int:
        """Units in service, free or held (without drained and down ones)."""
        ...

    @property
    def free(self) -> int:
        """Units that are idle now."""
        ...

    @property
    def running(self) -> Mapping[int, Placement]:
        """Placements held now, by job."""
        ...

    def place(self, request: JobRequest) -> Placement | None:
        """Decide where the request would run now; change nothing. None = it does not fit now."""
        ...

    def place_first(self, requests: Sequence[JobRequest]) -> tuple[int, Placement] | None:
        """Return the index and placement of the first request that fits now: one call, no loop over `place`."""
        ...

    def allocate(self, placement: Placement) -> None:
        """Take the placement's units and links.

        Raises:
            MachineError: a unit or link is taken or out of service, or the job is already running.
        """
        ...

    def release(self, job_id: int) -> None:
        """Free all units and links of the job.

        Raises:
            MachineError: the job is not running.
        """
        ...

    def reallocate(self, request: JobRequest) -> Reallocation | None:
        """Change the size of a running job; it keeps as many units as possible. None = nothing has changed.

        Args:
            request: new request of the running job.

        Raises:
            MachineError: the job is not running.
        """
        ...

    def fits_ever(self, request: JobRequest) -> bool:
        """Return whether the request fits when no job runs, given the drained and down units."""
        ...

    def describe(self, placement: Placement) -> dict[str, Any]:
        """Return trace fields: shape, origin, connection, nodes (hostlist), links {dimension: [labels]}."""
        ...

    def node_state(self, unit: int) -> NodeState:
        """Return the state of unit number `unit`."""
        ...

    def set_node_state(self, units: int, state: NodeState) -> None:
        """Take the units of the bit set `units` out of service (DRAINED, DOWN) or put them back (IDLE).

        Their jobs keep running; new jobs do not get these units.
        """
        ...

    def copy(self) -> Self:
        """Return an independent machine in the same state; tables are shared, so a copy costs microseconds."""
        ...


_AnyMachine = TypeVar("_AnyMachine", bound=Machine)


class NumberedMachine(Machine, Protocol):
    """A machine whose units have numbers: a placement names its units."""

    @property
    def units_out(self) -> int:
        """Bit set of the drained and down units."""
        ...


class GridMachine(NumberedMachine, Protocol):
    """A machine whose units have coordinates and names, in any number of dimensions."""

    @property
    def prefix(self) -> str:
        """Prefix of a unit's name; one base-36 digit for each dimension follows."""
        ...

    @property
    def grid(self) -> Grid:
        """Grid of the units."""
        ...

    @property
    def dimension_names(self) -> tuple[str, ...]:
        """Names of the dimensions, in the order of the extents and of a name's digits."""
        ...

    def hostlist(self, units: int) -> str:
        """Return Slurm's hostlist of a bit set of units."""
        ...

    def unit_name(self, unit: int) -> str:
        """Return the name of a unit."""
        ...


def emptied(machine: _AnyMachine) -> _AnyMachine:
    """Return a copy of a machine without its jobs."""
    empty = machine.copy()
    for job_id in list(empty.running):
        empty.release(job_id)
    return empty


def has_places(machine: Machine) -> TypeGuard[GridMachine]:
    """Return whether the machine's units have coordinates."""
    return machine.traits.has_places


def units_out(machine: Machine) -> int:
    """Return the bit set of a machine's drained and down units.

    Raises:
        MachineError: the machine does not say it, although its units are not interchangeable.
    """
    out = getattr(machine, "units_out", None)
    if type(out) is not int:
        kind = f"{type(machine).__module__}.{type(machine).__qualname__}"
        do = "planning needs it where units are not interchangeable (derive from `simulation.NodeMachine`)"
        raise MachineError(f"{kind}: `units_out` must be a bit set, got {out!r}; {do}")
    return out


def has_cables(machine: Machine) -> TypeGuard[BlueGene]:
    """Return whether the machine's jobs hold cables."""
    return machine.traits.exclusive_cables
