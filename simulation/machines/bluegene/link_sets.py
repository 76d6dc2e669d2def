"""Cables of one line of midplane switches, and link-set tables: which cables join which midplanes.

Each midplane has one switch a dimension. Ports 2 and 4 of a switch send to other switches, 3 and 5 receive, 0 and 1
belong to the midplane itself. A cable joins an out port to an in port of the same line; a port holds at most one cable.
All lines of a dimension are wired alike (Aridor et al. 2005; port numbers as in Slurm's Blue Gene plug-in).

Made once for each wiring by searching the line's graph for simple directed walks (every switch at most once), as in
Aridor et al. 2005, section "Creating lookup tables of link sets". A set of midplanes is looked up when it is asked for.
A mesh needs a path that starts and ends at midplanes of the set and touches all others; a torus needs a cycle. Switches
of other midplanes may be passed through. Sets of one midplane need no cable: the switch closes the midplane on itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from ramp.errors import MachineError
from simulation.machines.interface import Connection

OUT_PORTS = (2, 4)
"""Ports through which a switch sends to another switch."""
IN_PORTS = (3, 5)
"""Ports through which a switch receives from another switch."""
RING_OUT_PORT, RING_IN_PORT = 2, 5
"""Ports of the main ring's cables."""
CABLES_MAX = 64
"""Cables a line may have: one machine word holds the state of a line."""

_CABLE = re.compile(r"(\d+)\.(\d)>(\d+)\.(\d)")


@dataclass(frozen=True, slots=True)
class Cable:
    """One cable of a line.

    Attributes:
        label: its number on the line, from 0.
        source: switch whose out port it leaves.
        out_port: 2 or 4.
        target: switch whose in port it enters.
        in_port: 3 or 5.
    """

    label: int
    source: int
    out_port: int
    target: int
    in_port: int

    def __str__(self) -> str:
        return f"{self.source}.{self.out_port}>{self.target}.{self.in_port}"


@dataclass(frozen=True, slots=True)
class LineWiring:
    """The wiring that all lines of a dimension share.

    Attributes:
        width: midplanes (and switches) on the line.
        cables: in the order of their labels.
        pass_through: whether a job's traffic may cross switches of midplanes that are not its own
            (Slurm's DenyPassthrough switches it off for a dimension).
    """

    width: int
    cables: tuple[Cable, ...]
    pass_through: bool = True

    def __post_init__(self) -> None:
        if self.width < 1:
            raise MachineError(f"a line must have at least 1 midplane, got {self.width}")
        if len(self.cables) > CABLES_MAX:
            raise MachineError(f"a line must have at most {CABLES_MAX} cables, got {len(self.cables)}")
        ports: dict[tuple[int, int], Cable] = {}
        for cable in self.cables:
            for switch, port, allowed in (
                (cable.source, cable.out_port, OUT_PORTS),
                (cable.target, cable.in_port, IN_PORTS),
            ):
                if not 0 <= switch < self.width:
                    raise MachineError(f"cable {cable}: switch must be 0 to {self.width - 1}, got {switch}")
                if port not in allowed:
                    raise MachineError(f"cable {cable}: port must be {allowed[0]} or {allowed[1]}, got {port}")
                other = ports.setdefault((switch, port), cable)
                if other is not cable:
                    raise MachineError(f"cable {cable}: port {port} of switch {switch} already holds cable {other}")

    @property
    def text(self) -> str:
        """The wiring in one line."""
        cables = " ".join(map(str, self.cables))
        return f"{self.width}{'' if self.pass_through else ' no-pass-through'}: {cables}"


def parse_wiring(width: int, cables: Iterable[str], *, pass_through: bool = True) -> LineWiring:
    """Read cables in the form `1.4>0.3` (out port 4 of switch 1 to in port 3 of switch 0); labels count from 0.

    Args:
        width: midplanes on the line.
        cables: one text a cable, in the order of their labels.
        pass_through: see `LineWiring`.

    Raises:
        MachineError: a text is no cable, names a switch or port that is not there, or doubles a port.
    """
    parsed = []
    for label, text in enumerate(cables):
        match = _CABLE.fullmatch(text.strip())
        if match is None:
            raise MachineError(f"invalid cable {text!r}; expected SWITCH.PORT>SWITCH.PORT, for example 1.4>0.3")
        source, out_port, target, in_port = map(int, match.groups())
        parsed.append(Cable(label, source, out_port, target, in_port))
    return LineWiring(width, tuple(parsed), pass_through)


def ring_wiring(order: Sequence[int], *, pass_through: bool = True) -> LineWiring:
    """Return a simple ring through the switches in the order given: 0, 1, 3, 2 for Blue Gene/L's y- and z-lines.

    Cable `i` leaves the `i`-th switch of the order. A line of one midplane needs no cable.

    Raises:
        MachineError: the order is not a permutation of 0, 1, ..., n - 1.
    """
    if sorted(order) != list(range(len(order))):
        raise MachineError(f"a ring must list each switch from 0 to {len(order) - 1} once, got {list(order)}")
    if len(order) == 1:
        return LineWiring(1, (), pass_through)
    following = [*order[1:], order[0]]
    cables = tuple(
        Cable(label, source, RING_OUT_PORT, target, RING_IN_PORT)
        for label, (source, target) in enumerate(zip(order, following, strict=True))
    )
    return LineWiring(len(order), cables, pass_through)


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
