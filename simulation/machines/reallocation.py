"""Changes of a running job's size on a machine whose units have coordinates.

The job's own units and cables count as free. The search order is:

1. To grow, extend the box by whole planes at the ends of one dimension; to shrink, take a box within the job's own.
   The job keeps all units common to both sizes; cables follow the planes.
2. Take any place that the machine's allocator finds; the job moves as far as necessary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from ramp.errors import MachineError
from simulation.machines.interface import (
    Connection,
    GridMachine,
    JobRequest,
    NodeState,
    Placement,
    Reallocation,
    emptied,
)


def reallocate(machine: GridMachine, request: JobRequest) -> Reallocation | None:
    """Change the size of a running job; see `Machine.reallocate`.

    Args:
        machine: changed if the new size fits.
        request: the new request; a stated shape is kept.

    Raises:
        MachineError: the job is not running.
    """
    before = machine.running.get(request.job_id)
    if before is None:
        raise MachineError(f"{machine.name}: job {request.job_id} is not running")
    without = machine.copy()
    without.release(before.job_id)
    after = next(places_in_place(without, before, request), None) or without.place(request)
    if after is None:
        return None
    machine.release(request.job_id)
    machine.allocate(after)
    return Reallocation(before, after, (before.nodes & after.nodes).bit_count())


def places_in_place(machine: GridMachine, before: Placement, request: JobRequest) -> Iterator[Placement]:
    """List places for another size of a job that keep all units common to both sizes, best first.

    Args:
        machine: without the job; only its free units are used.
        before: the job's present placement.
        request: the new request.
    """
    if request.size <= before.size:
        within = _only(machine, before.nodes).place(request)
        if within is not None:
            yield within
        return
    for units in _longer_boxes(machine, before, request.size):
        around = _only(machine, units).place(request)
        # an allocator may give fewer planes and more of another; the whole box and nothing else is wanted here
        if around is not None and around.nodes == units:
            yield around


def places_of_a_box(machine: GridMachine, box: Placement, size: int, connection: Connection) -> Iterator[Placement]:
    """List places for another size of a reserved box as if the rest of the machine were free.

    Args:
        machine: not changed.
        box: the reserved box.
        size: new number of units, exact.
        connection: required connection.
    """
    empty = emptied(machine)
    request = JobRequest(box.job_id, size, connection=connection)
    yield from (place for place in places_in_place(empty, box, request) if place.size == size)


def sizes_of_planes(shape: Sequence[int], extents: Sequence[int]) -> list[int]:
    """List the sizes of a box with whole planes added or removed in one dimension, except its own size.

    Args:
        shape: of the box as it lies on the machine.
        extents: of the machine.
    """
    volume = prod(shape)
    sizes = {volume // side * count for side, full in zip(shape, extents, strict=True) for count in range(1, full + 1)}
    return sorted(sizes - {volume})


def _only(machine: GridMachine, units: int) -> GridMachine:
    """Return a copy in which all other units are out of service."""
    copy = machine.copy()
    copy.set_node_state(((1 << machine.grid.size) - 1) & ~units & ~machine.units_out, NodeState.DRAINED)
    return copy


def _longer_boxes(machine: GridMachine, before: Placement, size: int) -> Iterator[int]:
    """Return bit sets of the job's box with whole planes added in one dimension, so that it has that many units."""
    extents = machine.grid.extents
    members = before.members or tuple(
        tuple((origin + step) % full for step in range(side))
        for origin, side, full in zip(before.origin, before.shape, extents, strict=True)
    )
    volume = prod(map(len, members))
    if volume != before.size:
        return  # some units of its box are out of service: it has no whole planes
    for dimension, coordinates in enumerate(members):
        planes, rest = divmod(size - volume, volume // len(coordinates))
        if rest or len(coordinates) + planes > extents[dimension]:
            continue
        for longer in _longer_sides(coordinates, planes, extents[dimension], wraps=machine.traits.wraps):
            yield machine.grid.bits([*members[:dimension], longer, *members[dimension + 1 :]])


def _longer_sides(coordinates: Sequence[int], planes: int, width: int, *, wraps: bool) -> Iterator[list[int]]:
    taken = set(coordinates)
    first, last = coordinates[0], coordinates[-1]
    if wraps:
        above = [place for step in range(1, width) if (place := (last + step) % width) not in taken]
        below = above[::-1]
    else:
        above = [place for place in range(last + 1, width) if place not in taken]
        below = [place for place in range(first - 1, -1, -1) if place not in taken]
    for upwards in range(min(planes, len(above)), -1, -1):
        if planes - upwards <= len(below):
            yield [*coordinates, *above[:upwards], *below[: planes - upwards]]
