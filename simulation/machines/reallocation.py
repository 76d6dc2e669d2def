"""Another size for a running job on a machine whose units have coordinates.

The job's own units and cables count as free. What is looked for, in this order:

1. growing: the box with one dimension longer by whole planes, at its ends; shrinking: a box within its own. All units
   that both sizes have are kept, and cables come along with the planes.
2. any place that the machine's allocator finds; the job moves as far as it must.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Protocol, Self

from ramp.errors import MachineError
from simulation.machines.grid import Grid
from simulation.machines.interface import Connection, JobRequest, NodeState, Placement, Reallocation, Traits


class ResizableGrid(Protocol):
    """What is needed of the machine; decisions are tried on copies."""

    @property
    def traits(self) -> Traits: ...

    @property
    def grid(self) -> Grid: ...

    @property
    def name(self) -> str:
        """For messages."""
        ...

    @property
    def running(self) -> Mapping[int, Placement]: ...

    @property
    def units_out(self) -> int: ...

    def place(self, request: JobRequest) -> Placement | None:
        """Decide where the request would run now."""
        ...

    def allocate(self, placement: Placement) -> None:
        """Take a placement."""
        ...

    def release(self, job_id: int) -> None:
        """Give back what a job holds."""
        ...

    def set_node_state(self, units: int, state: NodeState) -> None:
        """Put units out of service."""
        ...

    def copy(self) -> Self:
        """An independent machine in the same state."""
        ...


def reallocate(machine: ResizableGrid, request: JobRequest) -> Reallocation | None:
    """Give a running job another size; see `Machine.reallocate`.

    Args:
        machine: changed where the size can be had.
        request: what the job wants; a shape that is stated is kept to.

    Raises:
        MachineError: the job holds nothing.
    """
    before = machine.running.get(request.job_id)
    if before is None:
        raise MachineError(f"{machine.name}: job {request.job_id} is not running")
    after = _new_place(machine, before, request)
    if after is None:
        return None
    machine.release(request.job_id)
    machine.allocate(after)
    return Reallocation(before, after, (before.nodes & after.nodes).bit_count())


def _new_place(machine: ResizableGrid, before: Placement, request: JobRequest) -> Placement | None:
    without = machine.copy()
    without.release(before.job_id)
    return next(places_in_place(without, before, request), None) or without.place(request)


def places_in_place(machine: ResizableGrid, before: Placement, request: JobRequest) -> Iterator[Placement]:
    """Where a job would run with another size that keeps all units which both sizes have, the best first.

    Args:
        machine: without the job; what is not free there is not taken.
        before: what the job holds.
        request: what it wants.
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


def places_of_a_box(machine: ResizableGrid, box: Placement, size: int, connection: Connection) -> Iterator[Placement]:
    """The same for a box that is set aside, as if nothing else were on the machine: who has what is not looked at.

    Args:
        machine: left as it is.
        box: what has been set aside.
        size: units that it shall have, exactly.
        connection: how it has to be joined.
    """
    empty = machine.copy()
    for job_id in list(empty.running):
        empty.release(job_id)
    request = JobRequest(box.job_id, size, connection=connection)
    yield from (place for place in places_in_place(empty, box, request) if place.size == size)


def sizes_of_planes(shape: Sequence[int], extents: Sequence[int]) -> list[int]:
    """Units that a box has with whole planes fewer or more in one dimension, its own size left out.

    Args:
        shape: of the box as it lies on the machine.
        extents: of the machine.
    """
    volume = prod(shape)
    sizes = {volume // side * count for side, full in zip(shape, extents, strict=True) for count in range(1, full + 1)}
    return sorted(sizes - {volume})


def _only(machine: ResizableGrid, units: int) -> ResizableGrid:
    """A copy in which all other units are out of service."""
    copy = machine.copy()
    copy.set_node_state(((1 << machine.grid.size) - 1) & ~units & ~machine.units_out, NodeState.DRAINED)
    return copy


def _longer_boxes(machine: ResizableGrid, before: Placement, size: int) -> Iterator[int]:
    """Bit sets of the job's box with whole planes added in one dimension, so that it has that many units."""
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
    """A box's coordinates in one dimension with that many more, from all above it to all below it."""
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
