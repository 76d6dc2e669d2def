"""Try a request on a machine in the state that a view shows (Slurm's --test-only)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from simulation.machines.bluegene.cable_table import cable_lines
from simulation.machines.bluegene.machine import BlueGene
from simulation.machines.grid import Grid, bits_of
from simulation.machines.interface import Connection, JobRequest, NodeState, Placement, emptied
from simulation.machines.view import PENDING, MachineView, ViewBlock, ViewJob, job_of_placement, with_block

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
