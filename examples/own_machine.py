"""Two kinds of machines of one's own: a fat tree and a dragonfly. Each says which free nodes a job gets."""

from dataclasses import dataclass
from typing import Annotated

from ramp.options import Bounds
from simulation import NodeMachine, machine_kind


def lowest(size, nodes):
    """Return the `size` lowest nodes of a set."""
    taken = 0
    for _ in range(size):
        taken |= nodes & -nodes
        nodes &= nodes - 1
    return taken


class Grouped(NodeMachine):
    """Nodes below switches of equal size."""

    def __init__(self, name, switches, nodes_per_switch):
        super().__init__(name, switches * nodes_per_switch)
        group = (1 << nodes_per_switch) - 1
        self.switches = [group << switch * nodes_per_switch for switch in range(switches)]

    def room(self, free):
        """Return the free nodes of each switch."""
        return [free & switch for switch in self.switches]

    def alone(self, size, room):
        """Return nodes below the fullest switch that has room for the whole job; 0 if none has."""
        fitting = [nodes for nodes in room if nodes.bit_count() >= size]
        return lowest(size, min(fitting, key=int.bit_count)) if fitting else 0


class FatTree(Grouped):
    """A job stays below the fullest leaf switch that has room for it, else it takes whole leaves first."""

    def choose(self, size, free):
        room = self.room(free)
        if alone := self.alone(size, room):
            return alone
        taken = 0
        for nodes in sorted(room, key=int.bit_count, reverse=True):
            taken |= lowest(min(size - taken.bit_count(), nodes.bit_count()), nodes)
        return taken


class Dragonfly(Grouped):
    """A job stays in one group, or takes as many nodes of each group as the others, to use all global links."""

    def choose(self, size, free):
        room = self.room(free)
        if alone := self.alone(size, room):
            return alone
        share = -(-size // len(room))
        if any(nodes.bit_count() < share for nodes in room):
            return None
        taken = 0
        for nodes in room:
            taken |= lowest(min(share, size - taken.bit_count()), nodes)
        return taken


@dataclass(frozen=True)
class Description:
    """The file of such a machine.

    Attributes:
        name: name of the machine.
        switches: leaf switches or groups.
        nodes_per_switch: nodes of each.
    """

    name: str
    switches: Annotated[int, Bounds(1)]
    nodes_per_switch: Annotated[int, Bounds(1)]


FAT_TREE = machine_kind(
    Description,
    lambda file, options: FatTree(file.name, file.switches, file.nodes_per_switch),
    about="Nodes below leaf switches; jobs keep to few leaves.",
)
DRAGONFLY = machine_kind(
    Description,
    lambda file, options: Dragonfly(file.name, file.switches, file.nodes_per_switch),
    about="Groups of nodes; a job takes one group or all.",
)
