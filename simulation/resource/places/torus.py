"""Boxes of a real site's torus, chosen by the allocators of `simulation.machines`, for plug-ins of batch systems.

The entry point `torus` of the group `ramp.batch_places`. Nodes get their places by their order in the system, the last
dimension fastest, by their names: the last characters are the coordinates, a digit in base 36 each, as Slurm named the
midplanes of Blue Gene; or by a table of the site's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import prod
from typing import Annotated, Any

from ramp.batch.node_lists import expand
from ramp.batch.system import Node, Parts
from ramp.errors import ConfigurationError, MachineError
from ramp.model.offer import Refusal
from ramp.model.request import RequestUnit
from ramp.options import Bounds, read_options
from simulation.machines.allocator_declaration import make_policy
from simulation.machines.boxes.policy import BoxPolicy
from simulation.machines.grid import Grid
from simulation.machines.interface import JobRequest, NodeState
from simulation.resource.torus_request import TorusRequests, UnitKind


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


@dataclass(frozen=True, slots=True)
class TorusOptions:
    """A site's table `torus`.

    Attributes:
        extents: nodes in each dimension.
        coordinates: `order` (the last dimension runs fastest), `names` (the last characters, base 36) or `table`.
        rows: that table: coordinates by node, or by a list of nodes that lie along the last dimension.
        allocator: which boxes are taken, and which of several.
        allocator_options: of that allocator.
    """

    extents: tuple[Annotated[int, Bounds(1, 36)], ...]
    coordinates: Coordinates = Coordinates.ORDER
    rows: Mapping[str, Any] = field(default_factory=dict)
    allocator: str = "base"
    allocator_options: Mapping[str, Any] = field(default_factory=dict)


class TorusPlaces:
    """A `ramp.batch.places.Places` of nodes of equal size.

    Args:
        options: the site's.
        nodes: all nodes, in the system's order.
        key: of the table, for messages.

    Raises:
        ConfigurationError: the nodes are no such torus, or there is no such allocator.
    """

    def __init__(self, options: TorusOptions, nodes: Sequence[Node], key: str) -> None:
        from simulation.machines.angara import AngaraMachine, TorusLayout  # only here: most sites have no torus
        from simulation.machines.boxes.ranked import RankedBoxes

        extents = options.extents
        if not extents or prod(extents) != len(nodes):
            shape = "x".join(map(str, extents))
            raise ConfigurationError(
                f"{shape} gives {prod(extents)} nodes, expected {len(nodes)}", key=f"{key}.extents"
            )
        sizes = {node.cores for node in nodes}
        if len(sizes) != 1:
            raise ConfigurationError(
                f"nodes of a torus must have the same number of cores, got {', '.join(map(str, sorted(sizes)))}",
                key=key,
            )
        policy = make_policy(options.allocator, options.allocator_options, BoxPolicy)
        names = tuple(f"d{number}" for number in range(len(extents)))
        self._machine = AngaraMachine(TorusLayout(key, "", names, extents), RankedBoxes(extents, policy))
        (self._cores,) = sizes
        self._names = placed(options.coordinates, options.rows, nodes, self._machine.grid, key)
        self._machine.fits_ever(JobRequest(0, 1))  # what is compiled for it would cost the first buyer seconds
        self._requests = TorusRequests(self._machine, UnitKind("nodes", self._cores, 1, 1, has_node_use=False))

    def refused(self, unit: RequestUnit) -> Refusal | None:
        translated = self._requests.translate(unit)
        return translated if isinstance(translated, Refusal) else None

    def choose(self, unit: RequestUnit, free: Mapping[str, int]) -> Parts:
        """Choose a box of nodes of which every core is free; see `Places`."""
        request = self._requests.translate(unit)
        if isinstance(request, Refusal):
            return ()
        now = self._machine.copy()
        taken = sum(1 << unit for unit, name in enumerate(self._names) if free.get(name, 0) < self._cores)
        now.set_node_state(taken, NodeState.DRAINED)
        placement = now.place(request)
        if placement is None:
            return ()
        chosen = {self._names[unit] for unit in range(len(self._names)) if placement.nodes >> unit & 1}
        return tuple((name, self._cores) for name in self._names if name in chosen)


def open_places(options: Mapping[str, Any], nodes: Sequence[Node], key: str) -> TorusPlaces:
    """Open the places: the entry point `torus`; see `ramp.batch.places.OpenPlaces`."""
    return TorusPlaces(read_options(options, TorusOptions, within=key), nodes, key)
