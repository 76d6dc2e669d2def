"""Link sets and cables of a box of midplanes, as text: the table of figure 5 of Aridor et al. 2005."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from simulation.machines.bluegene.link_sets import LinkTable
from simulation.machines.bluegene.machine import BlueGene
from simulation.machines.interface import Connection, Placement


def link_set_lines(machine: BlueGene, members: Sequence[Sequence[int]]) -> list[str]:
    """Return the link sets of each dimension of a box, smallest first: label sets that join its midplanes of a line.

    Args:
        machine: the machine.
        members: coordinates in each dimension.
    """
    lines = []
    for name, table, axis in zip(machine.dimension_names, machine.layout.tables, members, strict=True):
        for connection in (Connection.MESH, Connection.TORUS):
            sets = " ".join(f"{{{','.join(map(str, one))}}}" for one in table.link_sets(axis, connection))
            lines.append(f"{name}  {_places(axis)}  {str(connection).upper():5}  {sets or 'none'}")
    return lines


def cable_lines(machine: BlueGene, placement: Placement) -> list[str]:
    """Return which cables a place takes on each line that crosses it, and the way of the signal over its switches."""
    lines = []
    members, links = placement.members, placement.links
    parts = zip(machine.dimension_names, machine.layout.tables, members, links, placement.connection, strict=True)
    for name, table, axis, labels, connection in parts:
        count = prod(map(len, members)) // len(axis)
        cables = " ".join(f"{label}:{table.wiring.cables[label]}" for label in labels)
        way = _way(table, axis, labels, connection)
        lines.append(f"{name}  {_places(axis)}  {str(connection).upper():5}  {cables or 'no cables'}  way {way}  "
                     f"on {count} {name}-line{'s' if count > 1 else ''}")  # fmt: skip
    return lines


def _places(axis: Sequence[int]) -> str:
    return f"{{{','.join(map(str, axis))}}}"


def _way(table: LinkTable, axis: Sequence[int], labels: Sequence[int], connection: Connection) -> str:
    """Return the switches in order; those in brackets are passed through, and a torus returns to its first."""
    switches = table.walk(axis, connection, labels)
    closed = (*switches, switches[0]) if connection is Connection.TORUS and labels else switches
    return ">".join(str(switch) if switch in axis else f"({switch})" for switch in closed)
