"""Machines of cabled lines: Blue Gene/L and the plain torus it is compared with. Any number of dimensions.

Units are midplanes. A job holds a box of midplanes and, in each dimension, the same cables on every line that crosses
the box. Source: Aridor et al. 2005. Decisions take a few microseconds (`simulation.machines.bluegene.search`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
from numpy.typing import NDArray

from ramp.errors import MachineError
from simulation.machines.bluegene.blocks import BlockTimes
from simulation.machines.bluegene.cable_policy import CablePolicy
from simulation.machines.bluegene.catalogue import Catalogue, ListedBlock
from simulation.machines.bluegene.link_sets import LineWiring, LinkTable
from simulation.machines.bluegene.search import first_fit
from simulation.machines.grid import Grid, bits_of, units_of, words_of
from simulation.machines.grid_units import GridLayout, GridUnits, UnitState
from simulation.machines.interface import Connection, JobRequest, Placement, Reallocation, Traits
from simulation.machines.reallocation import reallocate

StateVector = NDArray[np.uint64]
"""Units first (one bit each), then one word a line (one bit a cable); set = not to be given out."""


@dataclass(slots=True)
class Occupancy(UnitState):
    """What is taken on a machine, also as state vectors as the search scans them (units first, then one word a line).

    Attributes:
        held: by jobs.
        out: out of service: drained and down midplanes, failed cables.
        busy: either; what a new job must avoid.
    """

    held: StateVector = field(kw_only=True)
    out: StateVector = field(kw_only=True)
    busy: StateVector = field(kw_only=True)

    def copy(self) -> Occupancy:
        vectors = {"held": self.held.copy(), "out": self.out.copy(), "busy": self.busy.copy()}
        return Occupancy(self.running.copy(), self.held_units, self.drained, self.down, **vectors)

    def refresh(self) -> None:
        """Recompute `busy` after a release or a change of service."""
        np.bitwise_or(self.held, self.out, out=self.busy)


@dataclass(frozen=True, slots=True)
class Layout(GridLayout):
    """What a machine of cabled lines is made of; never changes.

    Attributes:
        tables: the link table of each dimension, whose wiring has the dimension's width.
        cnodes: compute nodes of a midplane.
        processors: processors of a midplane.
        block_times: times of a block's life; none by default.
        blocks: the only places of jobs, where an administrator lists them; none = any place.
        slurm_partitions: names and host lists of Slurm's partitions; one of all midplanes by default.
    """

    tables: tuple[LinkTable, ...]
    cnodes: int = 512
    processors: int = 1024
    block_times: BlockTimes | None = None
    slurm_partitions: tuple[tuple[str, str], ...] = ()
    blocks: tuple[ListedBlock, ...] = ()

    @property
    def extents(self) -> tuple[int, ...]:
        """Midplanes in each dimension."""
        return tuple(table.wiring.width for table in self.tables)

    def around_s(self, size: int) -> int:
        """Return the longest time for which the block of a job of that size holds its midplanes besides the run."""
        times = self.block_times or BlockTimes()
        return max(map(times.around_s, [prod(map(len, each.members)) for each in self.blocks] or [size]))


class BlueGene(GridUnits):
    """A machine of cabled lines with running jobs.

    Args:
        layout: its parts.
        policy: how places are chosen (`simulation.machines.allocators`).
        catalogue: shared by copies; made anew by default.
        state: what is taken; nothing by default.
    """

    layout: Layout
    _state: Occupancy

    def __init__(
        self,
        layout: Layout,
        policy: CablePolicy,
        catalogue: Catalogue | None = None,
        state: Occupancy | None = None,
    ) -> None:
        self.layout = layout
        self.traits = Traits(
            "midplane",
            exclusive_cables=True,
            wraps=False,
            chooses_shapes=bool(layout.blocks),
            # a listed block has one connection, which serves jobs that need no torus whatever it is
            connection=Connection.NAV if layout.blocks else Connection.MESH,
            processors=layout.processors,
            compute_nodes=layout.cnodes,
            node_use=True,
        )
        self.grid = Grid(layout.extents)
        self._policy = policy
        made = catalogue if catalogue is not None else Catalogue(self.grid, layout.tables, policy, layout.blocks)
        self._catalogue = made
        words = self._catalogue.state_words
        self._state = (
            state
            if state is not None
            else Occupancy(
                held=np.zeros(words, np.uint64), out=np.zeros(words, np.uint64), busy=np.zeros(words, np.uint64)
            )
        )
        dimensions = len(layout.extents)
        self._answer: NDArray[np.int64] = np.zeros(1 + 2 * dimensions, np.int64)

    @property
    def wirings(self) -> dict[str, LineWiring]:
        """The wiring of each dimension's lines, by name."""
        tables = zip(self.layout.dimension_names, self.layout.tables, strict=True)
        return {name: table.wiring for name, table in tables}

    @property
    def catalogue(self) -> Catalogue:
        """The candidates that decisions are made from, shared by copies."""
        return self._catalogue

    def place(self, request: JobRequest) -> Placement | None:
        if request.size > self.grid.size - self._state.busy_units.bit_count():
            return None
        found = self._search(self._catalogue.kinds_of(request), self._state.busy)
        return None if found < 0 else self._catalogue.placement(self._answer, request.job_id)

    def place_first(self, requests: Sequence[JobRequest]) -> tuple[int, Placement] | None:
        """Index and placement of the first request that fits now: one search instead of one a request."""
        free = self.free
        kinds: list[NDArray[np.int64]] = []
        owners: list[int] = []
        for index, request in enumerate(requests):
            if request.size <= free:
                kinds_of_request = self._catalogue.kinds_of(request)
                kinds.append(kinds_of_request)
                owners.extend([index] * len(kinds_of_request))
        if not kinds:
            return None
        found = self._search(np.concatenate(kinds), self._state.busy)
        if found < 0:
            return None
        index = owners[found]
        return index, self._catalogue.placement(self._answer, requests[index].job_id)

    def fits_ever(self, request: JobRequest) -> bool:
        return request.size <= self.capacity and self._search(self._catalogue.kinds_of(request), self._state.out) >= 0

    def allocate(self, placement: Placement) -> None:
        """Take the placement's midplanes and cables.

        Raises:
            MachineError: any of them is taken or out of service, or the job already runs.
        """
        if placement.job_id in self._state.running:
            raise MachineError(f"{self.name}: job {placement.job_id} is already running")
        mask = self._catalogue.mask(placement.members, placement.links)
        if (mask & self._state.busy).any():
            raise MachineError(f"{self.name}: job {placement.job_id}: {self._conflict(mask)} are not free")
        self._state.running[placement.job_id] = placement
        self._state.held |= mask
        self._state.busy |= mask
        self._state.held_units |= placement.nodes

    def release(self, job_id: int) -> None:
        placement = self._state.running.pop(job_id, None)
        if placement is None:
            raise MachineError(f"{self.name}: job {job_id} is not running")
        self._state.held ^= self._catalogue.mask(placement.members, placement.links)
        self._state.held_units &= ~placement.nodes
        self._state.refresh()

    def reallocate(self, request: JobRequest) -> Reallocation | None:
        return reallocate(self, request)

    def _service_changed(self) -> None:
        """Switches of midplanes out of service still pass foreign traffic through; `fail_links` takes cables away."""
        words = self._catalogue.unit_words
        self._state.out[:words] = words_of(self.units_out, words)
        self._state.refresh()

    def fail_links(self, dimension: int, line: Sequence[int], labels: Iterable[int]) -> None:
        """Take cables of one line out of service. Jobs that hold them keep running.

        Args:
            dimension: index of the dimension in which the line runs.
            line: its coordinates in the other dimensions.
            labels: cables of the line.

        Raises:
            MachineError: there is no such line or cable.
        """
        cables = self.layout.tables[dimension].wiring.cables
        bits = 0
        for label in labels:
            if not 0 <= label < len(cables):
                raise MachineError(
                    f"{self.name}: {self.layout.dimension_names[dimension]}-lines have no cable {label}; "
                    f"they have 0 to {len(cables) - 1}"
                )
            bits |= 1 << label
        word = self._catalogue.line_offsets[dimension] + self._line_number(dimension, line)
        self._state.out[word] |= np.uint64(bits)
        self._state.refresh()

    def copy(self) -> BlueGene:
        return BlueGene(self.layout, self._policy, self._catalogue, self._state.copy())

    def out_of_service(self) -> StateVector:
        """Return a copy of the state vector of drained, down and failed parts, for `place_within`."""
        return self._state.out.copy()

    def state_vector(self) -> StateVector:
        """Return a copy of the state vector of all parts taken or out of service now, for `place_within`."""
        return self._state.busy.copy()

    def mask_of(self, placement: Placement) -> StateVector:
        """Return the read-only state vector of a placement."""
        return self._catalogue.mask(placement.members, placement.links)

    def place_within(self, busy: StateVector, request: JobRequest) -> Placement | None:
        """Return the place of the request if only `busy` were taken, whatever runs now, or None; changes nothing.

        Args:
            busy: a union of `mask_of` placements and `out_of_service`.
            request: the request.
        """
        found = self._search(self._catalogue.kinds_of(request), busy)
        return None if found < 0 else self._catalogue.placement(self._answer, request.job_id)

    def _search(self, kinds: NDArray[np.int64], busy: StateVector) -> int:
        return first_fit(busy, kinds, self._catalogue.tables, self._answer)

    def _line_number(self, dimension: int, line: Sequence[int]) -> int:
        others = [extent for index, extent in enumerate(self.grid.extents) if index != dimension]
        if len(line) != len(others) or not all(
            0 <= coordinate < extent for coordinate, extent in zip(line, others, strict=True)
        ):
            name = self.layout.dimension_names[dimension]
            raise MachineError(f"{self.name} has no {name}-line at {list(line)}; the other dimensions are {others}")
        return self.grid.line(dimension, line)

    def _conflict(self, mask: StateVector) -> str:
        taken = mask & self._state.busy
        words = self._catalogue.unit_words
        units = units_of(taken[:words])
        if units:
            return f"midplanes {self.hostlist(units)}"
        parts = []
        for dimension, name in enumerate(self.layout.dimension_names):
            for line in range(self.grid.line_count(dimension)):
                bits = int(taken[self._catalogue.line_offsets[dimension] + line])
                if bits:
                    where = self.grid.line_coordinates(dimension, line)
                    parts.append(f"cables {list(bits_of(bits))} of {name}-line {list(where)}")
        return ", ".join(parts)
