"""Link-set tables: which cables of a line can join which midplanes, as a mesh or as a torus.

Made once for each wiring by searching the line's graph for simple directed walks (every switch at most once), as in
Aridor et al. 2005, section "Creating lookup tables of link sets". A set of midplanes is looked up when it is asked for.
A mesh needs a path that starts and ends at midplanes of the set and touches all others; a torus needs a cycle. Switches
of other midplanes may be passed through. Sets of one midplane need no cable: the switch closes the midplane on itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from ramp.errors import MachineError
from simulation.machines.bluegene.wiring import LineWiring
from simulation.machines.interface import Connection

WALKS_MAX = 200_000
"""Walks a wiring may have before it is refused: more would need a search of their own kind."""


@dataclass(frozen=True, slots=True)
class Walk:
    """A simple directed walk over a line.

    Attributes:
        switches: in the order visited; for a cycle the first one is the lowest.
        labels: cables taken, sorted.
    """

    switches: tuple[int, ...]
    labels: tuple[int, ...]

    @property
    def switch_bits(self) -> int:
        """Bit set of the switches visited."""
        return sum(1 << switch for switch in self.switches)


class LinkTable:
    """All link sets of one wiring.

    Args:
        wiring: the line.
        paths: its simple paths of two switches and more.
        cycles: its simple cycles of two switches and more.
    """

    def __init__(self, wiring: LineWiring, paths: tuple[Walk, ...], cycles: tuple[Walk, ...]) -> None:
        self.wiring = wiring
        self.paths = paths
        self.cycles = cycles
        self._entries: dict[tuple[Connection, int], tuple[tuple[int, ...], ...]] = {}
        self._path_bits = [path.switch_bits for path in paths]
        self._cycle_bits = [cycle.switch_bits for cycle in cycles]

    def link_sets(self, members: Iterable[int], connection: Connection) -> tuple[tuple[int, ...], ...]:
        """Return link sets that join the members, the smallest first (then by labels); each a sorted tuple of labels.

        Args:
            members: coordinates on the line.
            connection: MESH or TORUS.
        """
        bits = 0
        for member in members:
            if not 0 <= member < self.wiring.width:
                raise MachineError(f"midplanes of a line must be 0 to {self.wiring.width - 1}, got {member}")
            bits |= 1 << member
        return self._of_bits(bits, connection)

    def walk(self, members: Iterable[int], connection: Connection, labels: Sequence[int]) -> tuple[int, ...]:
        """Return the switches in the order in which the link set visits them, passed-through ones among them.

        Raises:
            MachineError: these cables do not join the members in this way.
        """
        bits = sum(1 << member for member in members)
        wanted = tuple(sorted(labels))
        if not wanted and bits.bit_count() == 1:
            return (bits.bit_length() - 1,)
        for walk, walk_bits in self._walks(connection):
            if walk.labels == wanted and self._joins(walk, walk_bits, bits, connection):
                return walk.switches
        raise MachineError(f"cables {list(wanted)} do not join these midplanes as a {connection}")

    def _walks(self, connection: Connection) -> Iterator[tuple[Walk, int]]:
        if connection is Connection.TORUS:
            return zip(self.cycles, self._cycle_bits, strict=True)
        return zip(self.paths, self._path_bits, strict=True)

    def _joins(self, walk: Walk, walk_bits: int, bits: int, connection: Connection) -> bool:
        if bits & ~walk_bits or not (self.wiring.pass_through or bits == walk_bits):
            return False
        # a path that starts or ends outside the set would hold cables for nothing
        return connection is Connection.TORUS or bool(bits >> walk.switches[0] & 1 and bits >> walk.switches[-1] & 1)

    def _of_bits(self, bits: int, connection: Connection) -> tuple[tuple[int, ...], ...]:
        if connection is Connection.NAV:
            raise MachineError("the connection of a link set must be mesh or torus, got nav")
        key = (connection, bits)
        entry = self._entries.get(key)
        if entry is None:
            if bits.bit_count() == 1:
                entry = ((),)
            else:
                found = {walk.labels for walk, walk_bits in self._walks(connection)
                         if self._joins(walk, walk_bits, bits, connection)}  # fmt: skip
                entry = tuple(sorted(found, key=lambda labels: (len(labels), labels)))
            self._entries[key] = entry
        return entry


@cache
def build_link_table(wiring: LineWiring) -> LinkTable:
    """Search the wiring's graph for all simple paths and cycles, depth first from every switch.

    Raises:
        MachineError: the wiring has more walks than `WALKS_MAX`.
    """
    outgoing: list[list[tuple[int, int]]] = [[] for _ in range(wiring.width)]
    for cable in wiring.cables:
        if cable.source != cable.target:
            outgoing[cable.source].append((cable.target, cable.label))
    paths: list[Walk] = []
    cycles: list[Walk] = []
    for start in range(wiring.width):
        stack: list[tuple[tuple[int, ...], tuple[int, ...]]] = [((start,), ())]
        while stack:
            switches, labels = stack.pop()
            for target, label in outgoing[switches[-1]]:
                if target == start:
                    # each cycle is found from each of its switches; the lowest one counts
                    if start == min(switches):
                        cycles.append(Walk(switches, tuple(sorted((*labels, label)))))
                elif target not in switches:
                    longer = ((*switches, target), (*labels, label))
                    paths.append(Walk(longer[0], tuple(sorted(longer[1]))))
                    stack.append(longer)
            if len(paths) + len(cycles) > WALKS_MAX:
                raise MachineError(f"the wiring must have at most {WALKS_MAX} walks; use fewer cables: {wiring.text}")
    return LinkTable(wiring, tuple(paths), tuple(cycles))
