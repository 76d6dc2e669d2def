"""What every simulated machine offers to schedulers, planners and the command line.

A scheduler asks `place` (a decision that changes nothing), then `allocate`, later `release`. It never learns which
machine it serves. Units are what the machine allocates: midplanes on Blue Gene/L, nodes on Angara, processors on a
flat machine. A machine decides alike whenever its state is alike: no clock, no random source.

Machines are read from TOML by `simulation.machine_files.load_machine`; `FlatMachine` is in `simulation.machines.flat`.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeGuard

from ramp.errors import MachineError

if TYPE_CHECKING:
    from simulation.machines.bluegene.machine import BlueGene
    from simulation.machines.grid import Grid


class Connection(enum.StrEnum):
    """How the midplanes of a job are joined along a dimension (Slurm's --conn-type).

    `NAV` takes a torus where one can be had and a mesh otherwise.
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
    """What a job asks of a machine.

    Attributes:
        job_id: identifies the job while it holds units; unique among running jobs.
        size: units asked for; with a shape it equals the shape's volume.
        shape: extents, one a dimension; None means any shape of that size.
        rotate: whether the shape may be turned.
        connection: one value for all dimensions, or one per extent of the shape, turned along with it.
        kind: all that matters for a decision: requests of one kind fit or do not fit together. When one request of a
            kind does not fit, none of that kind does until units or links become free.
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
    """Where a job runs (or would run): the answer of `Machine.place`.

    Attributes:
        job_id: the job.
        size: units taken; more than asked for where the machine has no box of that size.
        nodes: bit set, bit i = unit i is taken; 0 on a flat machine, whose units have no identity.
        shape: extents as they lie on the machine (after rotation); () on a flat machine.
        origin: lowest coordinate in each dimension; () on a flat machine.
        connection: how each dimension is joined, never NAV; () where the machine has no such choice.
        members: coordinates taken in each dimension; the job holds their Cartesian product.
        links: cable labels in each dimension, held on every line of that dimension that crosses the job.
    """

    job_id: int
    size: int
    nodes: int = 0
    shape: tuple[int, ...] = ()
    origin: tuple[int, ...] = ()
    connection: tuple[Connection, ...] = ()
    members: tuple[tuple[int, ...], ...] = ()
    links: tuple[tuple[int, ...], ...] = ()

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

    @property
    def gained(self) -> int:
        """Units that it did not hold before."""
        return self.after.size - self.kept

    @property
    def left(self) -> int:
        """Units that it holds no longer."""
        return self.before.size - self.kept

    @property
    def moved(self) -> int:
        """Units whose work had to go elsewhere though the size alone would not have asked for it."""
        return min(self.before.size, self.after.size) - self.kept


@dataclass(frozen=True, slots=True)
class Traits:
    """What a machine says of itself, so that nobody has to know its class.

    Attributes:
        unit_noun: what one of its units is called.
        has_places: units have coordinates and names: it is a `GridMachine`.
        interchangeable: whatever is free fits, so that compiled loops that only count may run its logs.
        exclusive_cables: jobs hold cables as well as units: it is a `BlueGene` or derived from it.
        wraps: free boxes may run over the seam of a ring.
        chooses_shapes: jobs need only state a size, for its allocators are made to choose the shape.
        heeds_ends: its decisions can heed expected ends: it is a `TimedMachine`.
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
    heeds_ends: bool = False
    processors: int = 0
    compute_nodes: int = 1
    node_use: bool = False


class Machine(Protocol):
    """A machine with running jobs. Every decision is deterministic."""

    @property
    def traits(self) -> Traits:
        """What it is."""
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
        """Units that jobs may be given now, held or not (without drained and down ones)."""
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
        """Decide where the request would run now; changes nothing. None = it does not fit now."""
        ...

    def place_first(self, requests: Sequence[JobRequest]) -> tuple[int, Placement] | None:
        """Index and placement of the first request that fits now: one call instead of a loop over `place`."""
        ...

    def allocate(self, placement: Placement) -> None:
        """Take the placement's units and links.

        Raises:
            MachineError: any of them is taken or out of service, or the job already runs.
        """
        ...

    def release(self, job_id: int) -> None:
        """Give back all that the job holds.

        Raises:
            MachineError: the job holds nothing.
        """
        ...

    def reallocate(self, request: JobRequest) -> Reallocation | None:
        """Give a running job another size: it keeps what it can of its units. None = nothing has changed.

        Args:
            request: what the job, which runs, wants from now on.

        Raises:
            MachineError: the job holds nothing.
        """
        ...

    def fits_ever(self, request: JobRequest) -> bool:
        """Whether the request fits when nothing runs, given what is drained or down now."""
        ...

    def describe(self, placement: Placement) -> dict[str, Any]:
        """Trace fields: shape, origin, connection, nodes (hostlist), links {dimension: [labels]}."""
        ...

    def node_state(self, unit: int) -> NodeState:
        """State of unit number `unit`."""
        ...

    def set_node_state(self, units: int, state: NodeState) -> None:
        """Put the units of the bit set `units` out of service (DRAINED, DOWN) or back into it (IDLE).

        Jobs that run on them keep running; the units are only not given out again.
        """
        ...

    def snapshot(self) -> object:
        """The present state, to be given to `restore` of this machine or of a copy."""
        ...

    def restore(self, state: object) -> None:
        """Go back to a snapshot, which can be restored any number of times."""
        ...

    def copy(self) -> Self:
        """An independent machine in the same state; tables are shared, so it costs microseconds."""
        ...


class GridMachine(Machine, Protocol):
    """A machine whose units have coordinates and names, in any number of dimensions."""

    @property
    def prefix(self) -> str:
        """What a unit's name begins with; one base-36 digit a dimension follows."""
        ...

    @property
    def grid(self) -> Grid:
        """Its units by their coordinates."""
        ...

    @property
    def units_out(self) -> int:
        """Bit set of the units that are drained or down."""
        ...

    @property
    def dimension_names(self) -> tuple[str, ...]:
        """Names of the dimensions, in the order of the extents and of a name's digits."""
        ...

    def hostlist(self, units: int) -> str:
        """Slurm's hostlist of a bit set of units."""
        ...

    def unit_name(self, unit: int) -> str:
        """Name of one unit."""
        ...


class TimedMachine(Machine, Protocol):
    """A machine whose decisions can heed expected ends."""

    def place_until(self, request: JobRequest, now: int, end: int, ends: Mapping[int, int]) -> Placement | None:
        """Decide where the request would run now, given when it and the running jobs are expected to end."""
        ...


def has_places(machine: Machine) -> TypeGuard[GridMachine]:
    """Whether the machine's units have coordinates."""
    return machine.traits.has_places


def has_cables(machine: Machine) -> TypeGuard[BlueGene]:
    """Whether the machine's jobs hold cables."""
    return machine.traits.exclusive_cables


def heeds_ends(machine: Machine) -> TypeGuard[TimedMachine]:
    """Whether the machine's decisions can heed expected ends."""
    return machine.traits.heeds_ends
