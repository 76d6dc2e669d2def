"""Try a request on a machine in the state that a view shows (Slurm's --test-only); link sets and cables as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from simulation.machines.bluegene.link_sets import LinkTable
from simulation.machines.bluegene.machine import BlueGene
from simulation.machines.grid import Grid, bits_of
from simulation.machines.interface import Connection, JobRequest, NodeState, Placement, emptied
from simulation.machines.view import PENDING, MachineView, ViewBlock, ViewJob, job_of_placement, with_block


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


TRIAL_USER = "--test-only"
"""Stands in the user column of the job that is tried."""


@dataclass(frozen=True, slots=True)
class Trial:
    """Result of trying a job.

    Attributes:
        view: the view with this job, waiting if it does not fit now.
        placement: where it would run now, or None.
        fits_empty: whether it would fit if no job ran, given what is out of service.
        cables: that its place takes, a line of text for each dimension.
    """

    view: MachineView
    placement: Placement | None
    fits_empty: bool
    cables: tuple[str, ...] = ()


def machine_in_state(machine: BlueGene, view: MachineView) -> BlueGene:
    """Copy the machine with the view's jobs running and its drained and down midplanes out of service.

    Raises:
        MachineError: two jobs of the view hold the same midplane or cable.
    """
    twin = emptied(machine)
    # a job may run on a midplane that was drained since, so all midplanes are in service until the jobs are back
    twin.set_node_state((1 << twin.grid.size) - 1, NodeState.IDLE)
    grid = Grid(view.extents)
    scattered = 0
    for job in view.placed_jobs:
        placement = _placement(grid, view, job)
        if placement is None:
            scattered |= job.units
        else:
            twin.allocate(placement)
    # midplanes that are no product of coordinates have no cables known to us; they are only kept out of the way
    twin.set_node_state(view.drained | scattered, NodeState.DRAINED)
    twin.set_node_state(view.down, NodeState.DOWN)
    return twin


def try_job(machine: BlueGene, view: MachineView, request: JobRequest, node_use: str = "") -> Trial:
    """Try a job on the machine in the state that the view shows.

    Args:
        machine: the machine.
        view: its state.
        request: the job.
        node_use: how its block would use the second processors (Slurm's --node-use).
    """
    blocks: tuple[ViewBlock, ...] = ()
    busy = machine_in_state(machine, view)
    placement = busy.place(request)
    if placement is None:
        job = ViewJob(request.job_id, PENDING, size=request.size, user=TRIAL_USER)
    else:
        job, blocks = with_block(replace(job_of_placement(busy, placement), user=TRIAL_USER), node_use)
    known = {each.name: each for each in (*view.blocks, *blocks)}
    tried = replace(view, jobs=(*view.jobs, job), blocks=tuple(known.values()))
    cables = () if placement is None else tuple(cable_lines(machine, placement))
    return Trial(tried, placement, busy.fits_ever(request), cables)


def _placement(grid: Grid, view: MachineView, job: ViewJob) -> Placement | None:
    cells = [grid.coordinates(unit) for unit in bits_of(job.units)]
    members = tuple(tuple(sorted(set(axis))) for axis in zip(*cells, strict=True))
    if not cells or prod(map(len, members)) != len(cells):
        return None
    labels = dict(job.links)
    return Placement(
        job.job_id,
        len(cells),
        job.units,
        tuple(map(len, members)),
        tuple(axis[0] for axis in members),
        tuple(Connection(connection) for connection in job.connection),
        members,
        tuple(labels.get(name, ()) for name in view.dimension_names),
    )
