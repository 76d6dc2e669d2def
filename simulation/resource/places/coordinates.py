"""Where each node of a site's torus is: by the order of the nodes, by their names, or by a table of the site's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from ramp.batch.node_lists import expand
from ramp.batch.system import Node
from ramp.errors import ConfigurationError, MachineError
from simulation.machines.grid import Grid


class Coordinates(StrEnum):
    """Source of a node's place: its position among the nodes, its name, or the table `rows`."""

    ORDER = "order"
    NAMES = "names"
    TABLE = "table"


def placed(how: Coordinates, rows: Mapping[str, Any], nodes: Sequence[Node], grid: Grid, key: str) -> tuple[str, ...]:
    """Return the nodes' names by their numbers in the grid.

    Args:
        how: the source of their places.
        rows: the table; by a list of nodes as Slurm writes it, the coordinates of its first, from which the others
            follow along the last dimension.
        nodes: all of them, in the system's order.
        grid: as many places.
        key: of the site's table, for messages.

    Raises:
        ConfigurationError: a node has no place, or two; or a place none, or two.
    """
    if rows and how is not Coordinates.TABLE:
        raise ConfigurationError('needs coordinates = "table"', key=f"{key}.rows")
    if how is Coordinates.ORDER:
        return tuple(node.name for node in nodes)
    told = _in_rows(rows, f"{key}.rows") if how is Coordinates.TABLE else _in_names(nodes, len(grid.extents), key)
    there = {node.name for node in nodes}
    left = set(there)
    found: dict[int, str] = {}
    for name, coordinates, where in told:
        if name not in left:
            wrong = "is listed twice" if name in there else "is not in the partition"
            raise ConfigurationError(f"{name} {wrong}", key=where)
        left.remove(name)
        try:
            unit = grid.unit(coordinates)
        except MachineError as error:
            raise ConfigurationError(f"{name}: {error}", key=where) from error
        if unit in found:
            raise ConfigurationError(f"{name} and {found[unit]} have the same coordinates", key=where)
        found[unit] = name
    if left:
        first = next(node.name for node in nodes if node.name in left)
        raise ConfigurationError(f"{len(left)} nodes are not in the table, for example {first}", key=f"{key}.rows")
    return tuple(found[unit] for unit in range(len(nodes)))


def _in_names(nodes: Sequence[Node], dimensions: int, key: str) -> list[tuple[str, list[int], str]]:
    told = []
    for node in nodes:
        try:
            told.append((node.name, [int(digit, 36) for digit in node.name[-dimensions:]], key))
        except ValueError as error:
            raise ConfigurationError(f"{node.name} does not end with coordinates: {error}", key=key) from error
    return told


def _in_rows(rows: Mapping[str, Any], key: str) -> list[tuple[str, list[int], str]]:
    if not rows:
        raise ConfigurationError("is missing; expected for example rows = { 'n[0-3]' = [0, 0] }", key=key)
    told = []
    for text, begin in rows.items():
        where = f"{key}.{text}"
        if not isinstance(begin, list) or not begin or not all(type(each) is int for each in begin):
            raise ConfigurationError(f"got {begin!r:.60}, expected coordinates such as [0, 0]", key=where)
        try:
            names = expand(text)
        except ValueError as error:
            raise ConfigurationError(f"invalid list of nodes: {error}", key=where) from error
        told += [(name, [*begin[:-1], begin[-1] + offset], where) for offset, name in enumerate(names)]
    return told
