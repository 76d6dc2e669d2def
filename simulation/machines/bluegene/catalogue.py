"""Candidates of every kind of request, laid out for the compiled search; grows as kinds are first asked for.

A kind is what matters for a decision (`JobRequest.kind`) with NAV already resolved. One catalogue is shared by a
machine and all its copies, because it holds nothing of their state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import permutations, product
from math import prod

import numpy as np
from numpy.typing import NDArray

from ramp.errors import MachineError
from simulation.machines.bluegene.cable_policy import CablePolicy, Merit
from simulation.machines.bluegene.link_sets import LinkTable
from simulation.machines.bluegene.search import COLUMNS_A_DIMENSION, COLUMNS_BEFORE_DIMENSIONS, Tables
from simulation.machines.grid import Grid, rotations, shapes_of_size, words_of
from simulation.machines.interface import Connection, JobRequest, Placement

CANDIDATES_MAX = 2_000_000
"""Candidates a kind may have; above, the policy is too generous for the machine (about 150 bytes each)."""
WORD_BITS = 64
COST_BITS = 32
"""Bits of a candidate's cost that are for its cables; those above are for its place."""

_Layout = tuple[tuple[int, ...], tuple[Connection, ...]]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A set of units that could serve a kind of request.

    Attributes:
        members: coordinates taken in each dimension.
        connection: how each dimension is joined.
        units: bit set of the units.
        shape: number of coordinates in each dimension.
        origin: lowest coordinate in each dimension.
        size: number of units.
        block: name of the listed block that it is.
    """

    members: tuple[tuple[int, ...], ...]
    connection: tuple[Connection, ...]
    units: int
    shape: tuple[int, ...]
    origin: tuple[int, ...]
    size: int
    block: str = ""


@dataclass(frozen=True, slots=True)
class ListedBlock:
    """A block that an administrator defined.

    Attributes:
        name: of the block.
        members: coordinates taken in each dimension.
        connection: of all dimensions.
        links: its cables in each dimension.
    """

    name: str
    members: tuple[tuple[int, ...], ...]
    connection: Connection
    links: tuple[tuple[int, ...], ...]


@dataclass(slots=True)
class _Pools:
    """What the arrays are made of, kept as lists while the catalogue grows."""

    link_sets: list[int] = field(default_factory=list)
    link_costs: list[int] = field(default_factory=list)
    link_labels: list[tuple[int, ...]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    link_ranges: dict[tuple[int, tuple[int, ...], Connection], tuple[int, int]] = field(default_factory=dict)
    line_ranges: dict[tuple[int, tuple[tuple[int, ...], ...]], tuple[int, int]] = field(default_factory=dict)


class Catalogue:
    """Candidates by kind of request.

    Args:
        grid: the machine's extents.
        tables: the link table of each dimension.
        policy: which sets are candidates, and what they cost.
        blocks: the only candidates, the smallest first, then as listed; none = the policy's sets.
    """

    def __init__(
        self, grid: Grid, tables: Sequence[LinkTable], policy: CablePolicy, blocks: Sequence[ListedBlock] = ()
    ) -> None:
        self._blocks = blocks
        self.grid = grid
        self._link_tables = tuple(tables)
        self.policy = policy
        self.unit_words = -(-grid.size // WORD_BITS)
        self.line_offsets = self._line_offsets()
        self.candidates: list[Candidate] = []
        self._pools = _Pools()
        self._kinds: dict[tuple[object, ...], NDArray[np.int64]] = {}
        self._numbers: dict[tuple[object, ...], list[int]] = {}
        self._kind_rows: list[tuple[int, int]] = []
        self._masks: dict[tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]], NDArray[np.uint64]] = {}
        dimensions = len(grid.extents)
        columns = COLUMNS_BEFORE_DIMENSIONS + COLUMNS_A_DIMENSION * dimensions
        boxes = self._boxes() if policy.merit is Merit.FRAGMENTATION else []
        self.tables = Tables(
            np.zeros((0, 2), np.int64),
            np.zeros((0, self.unit_words), np.uint64),
            np.zeros((0, columns), np.int64),
            np.zeros(0, np.uint64),
            np.zeros(0, np.int64),
            np.zeros(0, np.int64),
            np.array([grid.size], np.int64),
            self._words([units for _, units in boxes]),
            np.array([size for size, _ in boxes], np.int64),
        )

    @property
    def state_words(self) -> int:
        """Length of a machine's state vector."""
        return self.line_offsets[-1]

    def kinds_of(self, request: JobRequest) -> NDArray[np.int64]:
        """Return the numbers of the kinds to try for a request, in order: with NAV the torus, then the mesh."""
        key = request.kind
        kinds = self._kinds.get(key)
        if kinds is None:
            choices = self._connections(request)
            if self._blocks:
                numbers = [self._add_found(self._listed(request, choices))]
            else:
                numbers = [self._add(self._layouts(request, choice)) for choice in choices]
            kinds = np.array(numbers, dtype=np.int64)
            self._kinds[key] = kinds
        return kinds

    def numbers_of(self, request: JobRequest) -> list[int]:
        """Return the numbers of `kinds_of` as a list."""
        key = request.kind
        numbers = self._numbers.get(key)
        if numbers is None:
            numbers = self._numbers[key] = self.kinds_of(request).tolist()
        return numbers

    def placement(self, answer: NDArray[np.int64], job_id: int) -> Placement:
        """Return the placement that an answer of the search describes."""
        row, *link_sets = answer[: 1 + len(self.grid.extents)].tolist()
        candidate = self.candidates[row]
        return Placement(
            job_id,
            candidate.size,
            candidate.units,
            candidate.shape,
            candidate.origin,
            candidate.connection,
            candidate.members,
            tuple([self._pools.link_labels[link_set] for link_set in link_sets]),
            candidate.block,
        )

    def mask(self, members: tuple[tuple[int, ...], ...], links: tuple[tuple[int, ...], ...]) -> NDArray[np.uint64]:
        """Return the state vector with the bits that a placement holds; made once for each place and choice of cables.

        Raises:
            MachineError: the place or a cable is not on this machine.
        """
        key = (members, links)
        mask = self._masks.get(key)
        if mask is None:
            mask = self._make_mask(members, links)
            mask.setflags(write=False)
            self._masks[key] = mask
        return mask

    def _make_mask(
        self, members: tuple[tuple[int, ...], ...], links: tuple[tuple[int, ...], ...]
    ) -> NDArray[np.uint64]:
        dimensions = len(self.grid.extents)
        if len(members) != dimensions or len(links) != dimensions:
            raise MachineError(f"the placement must have {dimensions} dimensions, got {len(members)}")
        for coordinates, extent in zip(members, self.grid.extents, strict=True):
            if not coordinates or min(coordinates) < 0 or max(coordinates) >= extent:
                raise MachineError(f"coordinates must be 0 to {extent - 1}, got {list(coordinates)}")
        mask = np.zeros(self.state_words, np.uint64)
        mask[: self.unit_words] = words_of(self.grid.bits(members), self.unit_words)
        for dimension, labels in enumerate(links):
            cables = len(self._link_tables[dimension].wiring.cables)
            if labels and not 0 <= min(labels) <= max(labels) < cables:
                raise MachineError(f"cables {list(labels)} are not among the {cables} of dimension {dimension}")
            bits = np.uint64(sum(1 << label for label in labels))
            for line in self.grid.lines_through(dimension, members) if labels else ():
                mask[self.line_offsets[dimension] + line] = bits
        return mask

    def _line_offsets(self) -> tuple[int, ...]:
        offsets = [self.unit_words]
        for dimension in range(len(self.grid.extents)):
            offsets.append(offsets[-1] + self.grid.line_count(dimension))
        return tuple(offsets)

    def _layouts(self, request: JobRequest, connection: tuple[Connection, ...]) -> Iterator[_Layout]:
        dimensions = len(self.grid.extents)
        if request.shape is None:
            # the connections are the machine's dimensions' here: there is no extent that they could go along with
            for shape in shapes_of_size(request.size, self.grid.extents):
                for order in rotations(shape):
                    yield tuple(shape[index] for index in order), connection
            return
        shape = request.shape + (1,) * (dimensions - len(request.shape))
        pairs = tuple(zip(shape, connection, strict=True))
        for order in rotations(pairs) if request.rotate else [tuple(range(dimensions))]:
            yield tuple(shape[index] for index in order), tuple(connection[index] for index in order)

    def _connections(self, request: JobRequest) -> list[tuple[Connection, ...]]:
        dimensions, shape = len(self.grid.extents), request.shape or ()
        if len(shape) > dimensions:
            raise MachineError(
                f"job {request.job_id}: shape {'x'.join(map(str, shape))} has {len(shape)} extents, the machine "
                f"{dimensions}"
            )
        asked = request.connection
        if isinstance(asked, Connection):
            asked = (asked,) * dimensions
        if len(asked) != dimensions:
            raise MachineError(f"job {request.job_id}: got {len(asked)} connections, expected 1 or {dimensions}")
        if Connection.NAV not in asked:
            return [asked]
        return [
            tuple(choice if connection is Connection.NAV else connection for connection in asked)
            for choice in (Connection.TORUS, Connection.MESH)
        ]

    def _add(self, layouts: Iterable[_Layout]) -> int:
        found: list[tuple[list[int], Candidate]] = []
        for extents, connection in layouts:
            self._add_rotation(extents, connection, found)
        return self._add_found(found)

    def _listed(self, request: JobRequest, choices: list[tuple[Connection, ...]]) -> list[tuple[list[int], Candidate]]:
        """Return the listed blocks that are large enough, also in each dimension of a shape, and joined as asked."""
        shape = request.shape or ()
        shape += (1,) * (len(self.grid.extents) - len(shape))
        turned = set(permutations(shape)) if request.rotate else {shape}
        found = []
        for order, block in enumerate(self._blocks):
            extents = tuple(map(len, block.members))
            size = prod(extents)
            joined = (block.connection,) * len(extents)
            fits = any(all(map(int.__le__, one, extents)) for one in turned)
            if size >= request.size and fits and joined in choices:
                columns: list[int] = []
                for dimension, labels in enumerate(block.links):
                    columns += self._listed_links(dimension, labels)
                    columns += self._line_range(dimension, block.members)
                cost = size << COST_BITS
                origin = tuple(coordinates[0] for coordinates in block.members)
                units = self.grid.bits(block.members)
                candidate = Candidate(block.members, joined, units, extents, origin, size, block.name)
                found.append(([cost, order, cost, *columns], candidate))
        return found

    def _listed_links(self, dimension: int, labels: tuple[int, ...]) -> tuple[int, int]:
        key = (dimension, labels, Connection.NAV)  # no set of the policy is joined as NAV
        if key not in self._pools.link_ranges:
            first = len(self._pools.link_sets)
            self._pools.link_sets.append(sum(1 << label for label in labels))
            self._pools.link_costs.append(0)
            self._pools.link_labels.append(labels)
            self._pools.link_ranges[key] = (first, first + 1)
        return self._pools.link_ranges[key]

    def _add_found(self, found: list[tuple[list[int], Candidate]]) -> int:
        found.sort(key=lambda entry: entry[0][:2])
        first = len(self.candidates)
        self.candidates.extend(candidate for _, candidate in found)
        self._kind_rows.append((first, len(self.candidates)))
        self._extend_arrays([row for row, _ in found], [candidate.units for _, candidate in found])
        return len(self._kind_rows) - 1

    def _add_rotation(
        self,
        extents: tuple[int, ...],
        connection: tuple[Connection, ...],
        found: list[tuple[list[int], Candidate]],
    ) -> None:
        if any(extent > width for extent, width in zip(extents, self.grid.extents, strict=True)):
            return
        choices = [
            list(self.policy.member_sets(width, extent))
            for width, extent in zip(self.grid.extents, extents, strict=True)
        ]
        if len(found) + prod(map(len, choices)) > CANDIDATES_MAX:
            raise MachineError(
                f"allocator {type(self.policy).__name__} has more than {CANDIDATES_MAX} candidates for shape "
                f"{'x'.join(map(str, extents))} on {'x'.join(map(str, self.grid.extents))}"
            )
        for members in product(*choices):
            row = self._row(members, connection, len(found))
            if row is not None:
                origin = tuple([coordinates[0] for coordinates in members])
                units = self.grid.bits(members)
                found.append((row, Candidate(members, connection, units, extents, origin, prod(extents))))

    def _row(
        self, members: tuple[tuple[int, ...], ...], connection: tuple[Connection, ...], order: int
    ) -> list[int] | None:
        place_cost = self.policy.place_cost(members) << COST_BITS
        least = place_cost
        columns: list[int] = []
        for dimension in range(len(members)):
            links_from, links_to = self._link_range(dimension, members[dimension], connection[dimension])
            if links_from == links_to:
                return None
            lines_from, lines_to = self._line_range(dimension, members)
            least += self._pools.link_costs[links_from] * (lines_to - lines_from)
            columns += (links_from, links_to, lines_from, lines_to)
        return [least, order, place_cost, *columns]

    def _link_range(self, dimension: int, members: tuple[int, ...], connection: Connection) -> tuple[int, int]:
        key = (dimension, members, connection)
        found = self._pools.link_ranges.get(key)
        if found is None:
            pools = self._pools
            first = len(pools.link_sets)
            for labels in self._link_tables[dimension].link_sets(members, connection):
                pools.link_sets.append(sum(1 << label for label in labels))
                pools.link_costs.append(self.policy.link_cost(len(labels)))
                pools.link_labels.append(labels)
            found = (first, len(pools.link_sets))
            pools.link_ranges[key] = found
        return found

    def _line_range(self, dimension: int, members: tuple[tuple[int, ...], ...]) -> tuple[int, int]:
        if len(members[dimension]) == 1:
            return (0, 0)  # a single midplane takes no cable, so its lines need not be looked at
        key = (dimension, (*members[:dimension], (), *members[dimension + 1 :]))
        found = self._pools.line_ranges.get(key)
        if found is None:
            first = len(self._pools.lines)
            offset = self.line_offsets[dimension]
            self._pools.lines.extend(offset + line for line in self.grid.lines_through(dimension, members))
            found = (first, len(self._pools.lines))
            self._pools.line_ranges[key] = found
        return found

    def _extend_arrays(self, rows: list[list[int]], units: list[int]) -> None:
        old, pools = self.tables, self._pools
        columns = old.candidate_rows.shape[1]
        self.tables = old._replace(
            kind_rows=np.array(self._kind_rows, np.int64).reshape(-1, 2),
            candidate_units=np.concatenate([old.candidate_units, self._words(units)]),
            candidate_rows=np.concatenate([old.candidate_rows, np.array(rows, np.int64).reshape(-1, columns)]),
            link_sets=np.concatenate([old.link_sets, np.array(pools.link_sets[len(old.link_sets) :], np.uint64)]),
            link_costs=np.concatenate([old.link_costs, np.array(pools.link_costs[len(old.link_costs) :], np.int64)]),
            lines=np.concatenate([old.lines, np.array(pools.lines[len(old.lines) :], np.int64)]),
        )

    def _words(self, units: Iterable[int]) -> NDArray[np.uint64]:
        text = b"".join(bits.to_bytes(self.unit_words * 8, "little") for bits in units)
        return np.frombuffer(text, "<u8").reshape(-1, self.unit_words).astype(np.uint64)

    def _boxes(self) -> list[tuple[int, int]]:
        """Return size and units of every set that could serve some job, the largest first."""
        sides = [
            [members for extent in range(1, width + 1) for members in self.policy.member_sets(width, extent)]
            for width in self.grid.extents
        ]
        if prod(map(len, sides)) > CANDIDATES_MAX:
            raise MachineError(f"the merit {Merit.FRAGMENTATION} has more than {CANDIDATES_MAX} boxes to look at")
        boxes = [(prod(map(len, members)), self.grid.bits(members)) for members in product(*sides)]
        return sorted(boxes, key=lambda box: -box[0])
