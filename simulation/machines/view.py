"""Content of a map: a machine, its jobs, blocks, reservations and Slurm partitions at one moment.

Made from a machine state (a JSON document), from a simulation's trace at any second, or from a machine in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from ramp.errors import DocumentError, MachineError
from ramp.model.instant import SECOND
from simulation.machines.bluegene.blocks import BLOCK_PREFIX, BlockState, BlockTimes, BootedBlocks
from simulation.machines.grid import Grid
from simulation.machines.hostlist import expand_units
from simulation.machines.interface import GridMachine, Machine, NodeState, Placement, has_cables, has_places

RUNNING = "R"
"""Slurm's short state of a running job."""
CONFIGURING, COMPLETING = "CF", "CG"
"""Slurm's short states of a job whose block boots, and of one whose block is deallocated."""
PENDING = "PD"
"""Slurm's short state of a job that waits."""
HELD = "H"
"""A market's hold: units set aside for an offer."""
RESERVED = "RV"
"""What a market has sold: a confirmed reservation."""
TRACE_VERSION = 1
"""Of the traces of `ramp simulate`."""
STATE_KEYS = frozenset({"time_s", "drained", "down", "jobs", "blocks", "reservations", "slurm_partitions"})
"""Keys of a machine state document."""


@dataclass(frozen=True, slots=True)
class ViewJob:
    """A job as the map and the job table show it.

    Attributes:
        job_id: its number; negative for market bookings.
        state: R, PD, H or RV.
        units: bit set of its units; 0 while it waits and on a flat machine.
        size: number of its units.
        hostlist: its units, as Slurm writes them.
        elapsed_s: seconds since its start.
        connection: how each dimension is joined.
        links: cable labels by dimension name.
        slurm_partition: queue.
        block: name of its Blue Gene block.
        user: owner.
        name: of the job.
    """

    job_id: int
    state: str = RUNNING
    units: int = 0
    size: int = 0
    hostlist: str = ""
    elapsed_s: float = 0.0
    connection: tuple[str, ...] = ()
    links: tuple[tuple[str, tuple[int, ...]], ...] = ()
    slurm_partition: str = ""
    block: str = ""
    user: str = ""
    name: str = ""

    @property
    def is_booked(self) -> bool:
        """Return whether this is a market's hold or reservation, now or later."""
        return self.state in (HELD, RESERVED)


@dataclass(frozen=True, slots=True)
class ViewBlock:
    """A Blue Gene block: the booted set of midplanes that a job runs on."""

    name: str
    state: str
    user: str
    connection: str
    node_use: str
    size: int
    hostlist: str


@dataclass(frozen=True, slots=True)
class ViewReservation:
    """An advance reservation; times in seconds of the machine's clock, and as ISO 8601 where that is known."""

    name: str
    state: str
    start_s: float
    end_s: float
    size: int
    hostlist: str
    start: str = ""
    end: str = ""


@dataclass(frozen=True, slots=True)
class ViewSlurmPartition:
    """A Slurm partition (queue)."""

    name: str
    available: str
    time_limit: str
    size: int
    hostlist: str


@dataclass(frozen=True, slots=True)
class MachineView:
    """A machine at one moment.

    Attributes:
        machine: its name.
        extents: units in each dimension; (n,) on a flat machine.
        dimension_names: of the dimensions; empty on a flat machine.
        prefix: of the units' names; empty on a flat machine.
        jobs: running ones first, then those that wait.
        drained: bit set.
        down: bit set.
        blocks: Blue Gene blocks.
        reservations: advance reservations.
        slurm_partitions: queues.
        now_s: the moment, in seconds.
    """

    machine: str
    extents: tuple[int, ...]
    dimension_names: tuple[str, ...] = ()
    prefix: str = ""
    jobs: tuple[ViewJob, ...] = ()
    drained: int = 0
    down: int = 0
    blocks: tuple[ViewBlock, ...] = ()
    reservations: tuple[ViewReservation, ...] = ()
    slurm_partitions: tuple[ViewSlurmPartition, ...] = ()
    now_s: float = 0.0

    @property
    def is_flat(self) -> bool:
        """Whether the units have no coordinates."""
        return not self.dimension_names

    @property
    def total(self) -> int:
        """Number of units."""
        return Grid(self.extents).size

    @property
    def placed_jobs(self) -> tuple[ViewJob, ...]:
        """Jobs that hold units."""
        return tuple(job for job in self.jobs if job.state != PENDING)

    @property
    def allocated(self) -> int:
        """Units with running jobs, without market bookings."""
        return sum(job.size for job in self.placed_jobs if not job.is_booked)


def seconds_text(seconds: float) -> str:
    """Format a moment in seconds with all significant digits: 5, 1059644, 49.5."""
    return f"{seconds:.6f}".rstrip("0").rstrip(".")


def view_of(machine: Machine, now_s: float = 0.0) -> MachineView:
    """Return the view of a machine in memory with its drained and down units and running jobs."""
    view = empty_view(machine, now_s)
    jobs = tuple(job_of_placement(machine, placement) for placement in machine.running.values())
    return with_listed(machine, replace(view, jobs=jobs))


def job_of_placement(machine: Machine, placement: Placement) -> ViewJob:
    """Return a running job as the map shows it."""
    described = machine.describe(placement)
    return ViewJob(
        placement.job_id,
        units=placement.nodes,
        size=placement.size,
        hostlist=described["nodes"],
        connection=tuple(described["connection"]),
        links=tuple((name, tuple(labels)) for name, labels in described["links"].items()),
        block=described.get("block", ""),
    )


def empty_view(machine: Machine, now_s: float = 0.0) -> MachineView:
    """Return the view of a machine without its jobs."""
    if not has_places(machine):
        return MachineView(machine.name, machine.extents, now_s=now_s)
    states = {unit: machine.node_state(unit) for unit in range(Grid(machine.extents).size)}
    stated = machine.layout.slurm_partitions if has_cables(machine) else ()
    partitions = stated or ((machine.name, machine.hostlist((1 << machine.grid.size) - 1)),)
    return MachineView(
        machine.name,
        machine.extents,
        machine.dimension_names,
        machine.prefix,
        drained=sum(1 << unit for unit, state in states.items() if state is NodeState.DRAINED),
        down=sum(1 << unit for unit, state in states.items() if state is NodeState.DOWN),
        slurm_partitions=tuple(
            ViewSlurmPartition(name, "up", "infinite", units_named(machine, nodes).bit_count(), nodes)
            for name, nodes in partitions
        ),
        now_s=now_s,
    )


def with_block(
    job: ViewJob, node_use: str = "", state: BlockState = BlockState.BUSY
) -> tuple[ViewJob, tuple[ViewBlock, ...]]:
    """Add a running job's block: a listed one, or one made for it. Machines without cables have no blocks.

    Args:
        job: of a machine of cabled lines it knows its connections.
        node_use: of the block (Slurm's --node-use).
        state: of the block.
    """
    if not job.connection or not job.units:
        return job, ()
    kinds = set(job.connection)
    connection = kinds.pop() if len(kinds) == 1 else "".join(one[0] for one in job.connection)
    name = job.block or f"{BLOCK_PREFIX}{job.job_id}"
    block = ViewBlock(name, str(state), job.user, connection, node_use, job.size, job.hostlist)
    return replace(job, block=block.name), (block,)


def with_listed(machine: Machine, view: MachineView, past: Iterable[tuple[float, int | str]] = ()) -> MachineView:
    """Add the listed blocks of a machine that the view does not have.

    Args:
        machine: may list its blocks.
        view: what is known already.
        past: seconds at which midplanes failed (bit sets) and blocks began to boot (names).
    """
    if not has_cables(machine):
        return view
    booted = BootedBlocks(machine)
    for second, what in sorted(past, key=lambda each: each[0]):
        if second > view.now_s:
            break
        if isinstance(what, int):
            booted.fail(what)
        else:
            booted.boot(what, round(second * SECOND))
    times = machine.layout.block_times or BlockTimes()
    now, freeing = (round(each * SECOND) for each in (view.now_s, times.deallocate_s))
    of_jobs, listed = {job.block for job in view.jobs}, {}
    for each in machine.layout.blocks:
        units = machine.grid.bits(each.members)
        state = BlockState.FREE
        if each.name in of_jobs:
            state = BlockState.BUSY
        elif units & view.down:
            state = BlockState.ERROR
        elif each.name in booted.names:
            state = BlockState.READY
        elif each.name in booted.freed and now < booted.freed[each.name] + freeing:
            state = BlockState.DEALLOCATING
        named = (each.name, str(state), "", str(each.connection), "")
        listed[each.name] = ViewBlock(*named, units.bit_count(), machine.hostlist(units))
    return replace(view, blocks=tuple((listed | {block.name: block for block in view.blocks}).values()))


def view_of_trace(
    machine: Machine, rows: Iterable[tuple[int, Mapping[str, Any]]], at_s: float, source: str
) -> MachineView:
    """Return the machine at a second of a simulation's trace, each running job in its block (`with_block`).

    Advance reservations are listed until they end, and are on the map while they last.

    Args:
        machine: that the trace is of; its own jobs are left out.
        rows: line number and fields of each line after the first (`simulation.queueing.trace`): a job, a reservation,
            or units out of service.
        at_s: the moment; a job runs from its start until before its end.
        source: the trace's name, for messages.

    Raises:
        DocumentError: a row lacks a field or has an invalid one.
    """
    view = empty_view(machine, at_s)
    running: list[tuple[float, ViewJob, BlockState]] = []
    waiting: list[tuple[float, ViewJob]] = []
    reservations: list[ViewReservation] = []
    reserved: list[ViewJob] = []
    past: list[tuple[float, int | str]] = []  # when midplanes failed and blocks booted
    out = {str(NodeState.DRAINED): view.drained, str(NodeState.DOWN): view.down}
    for line_number, row in rows:
        try:
            if "out" in row:
                end = row["end_time"]
                if _seconds(row["start_time"]) <= at_s and (end is None or at_s < _seconds(end)):
                    out[row["out"]] |= _units(view, row["nodes"])
                if row["out"] == NodeState.DOWN:
                    past.append((_seconds(row["start_time"]), _units(view, row["nodes"])))
                continue
            placed = [each for each in row.get("segments", (row,)) if "block" in each]
            past.extend((_seconds(each["start_time"]), str(each["block"])) for each in placed)
            if "reservation" in row:
                one = _reservation_of_trace(view, row)
                if at_s < one.end_s:
                    reservations.append(one)
                if one.start_s <= at_s < one.end_s:
                    booked = {**row, "job_number": -1 - len(reserved), "state": RESERVED, "name": one.name}
                    reserved.append(_job(view, booked | {"elapsed_s": at_s - one.start_s}))
                continue
            submit, start, end = (_seconds(row[key]) for key in ("submit_time", "start_time", "end_time"))
            if start <= at_s < end:
                state, block = _life(row, at_s)
                job = _job(view, {**_at(row, at_s), "elapsed_s": at_s - start, "state": state})
                running.append((start, job, block))
            elif submit <= at_s < start:
                waiting.append((submit, ViewJob(int(row["job_number"]), PENDING, size=_job(view, row).size)))
        except (KeyError, TypeError, ValueError, MachineError) as error:
            raise DocumentError(f"line {line_number}: {_explain(error)}", source=source) from error
    running.sort(key=lambda entry: (entry[0], entry[1].job_id))
    blocked = [with_block(job, state=state) for _, job, state in running]
    ordered = [*(job for job, _ in blocked), *reserved]
    ordered += [job for _, job in sorted(waiting, key=lambda entry: (entry[0], entry[1].job_id))]
    blocks = tuple(block for _, blocks in blocked for block in blocks)
    drained, down = out[NodeState.DRAINED], out[NodeState.DOWN]
    view = replace(
        view, jobs=tuple(ordered), blocks=blocks, reservations=tuple(reservations), drained=drained & ~down, down=down
    )
    return with_listed(machine, view, past)


def out_of_service(machine: Machine, header: Mapping[str, Any], source: str) -> None:
    """Drain and set down the units of a machine that were so at the begin of a trace.

    Args:
        machine: changed.
        header: the trace's first line.
        source: the trace's name, for messages.

    Raises:
        DocumentError: the trace is of a machine of other extents, or names unknown units.
    """
    if header.get("extents") != list(machine.extents):
        expected = "x".join(map(str, machine.extents))
        raise DocumentError(f"line 1: not of {machine.name} ({expected}), but of {header['machine']}", source=source)
    try:
        if has_places(machine):
            machine.set_node_state((1 << machine.grid.size) - 1, NodeState.IDLE)
            for key, state in (("drained", NodeState.DRAINED), ("down", NodeState.DOWN)):
                machine.set_node_state(units_named(machine, str(header.get(key) or "")), state)
    except MachineError as error:
        raise DocumentError(f"line 1: {error}", source=source) from error


def _life(row: Mapping[str, Any], at_s: float) -> tuple[str, BlockState]:
    """Return the states of a job that holds its midplanes, and of its block."""
    if at_s >= _seconds(row.get("done_time", at_s + 1)):
        return COMPLETING, BlockState.DEALLOCATING
    if at_s < _seconds(row.get("boot_time", at_s)):
        return CONFIGURING, BlockState.CONFIGURING
    booting = at_s < _seconds(row.get("ready_time", at_s))
    return (CONFIGURING, BlockState.BOOTING) if booting else (RUNNING, BlockState.BUSY)


def _at(row: Mapping[str, Any], at_s: float) -> Mapping[str, Any]:
    """Return a job of a trace at a second of its run: with the place of that segment where its size changed."""
    for segment in row.get("segments", ()):
        if _seconds(segment["start_time"]) <= at_s < _seconds(segment["end_time"]):
            return {**row, **segment}
    return row


def view_of_state(machine: Machine, state: Mapping[str, Any], source: str) -> MachineView:
    """Return the machine that a state document describes.

    The document's keys, all optional: `time_s`; hostlists `drained`, `down`; lists `jobs`, `blocks`, `reservations`,
    `slurm_partitions`, whose entries have the fields of the classes here, with the hostlist under `nodes`.

    Raises:
        DocumentError: an entry lacks a field or has an invalid one, or two jobs hold the same unit.
    """
    view = empty_view(machine)
    where = "time_s"
    try:
        unknown = sorted(set(state) - STATE_KEYS)
        if unknown:
            where = unknown[0]
            raise ValueError(f"unknown key; expected one of {', '.join(sorted(STATE_KEYS))}")  # noqa: TRY301
        view = replace(view, now_s=_seconds(state.get("time_s", 0.0)))
        where = "drained"
        drained = view.drained | _units(view, str(state.get("drained", "")))
        where = "down"
        down = view.down | _units(view, str(state.get("down", "")))
        jobs = []
        taken: dict[int, int] = {}
        for index, entry in enumerate(state.get("jobs", ())):
            where = f"jobs[{index}]"
            job = _job(view, entry)
            for other, units in taken.items():
                if units & job.units:
                    raise MachineError(f"jobs {other} and {job.job_id} hold the same units")  # noqa: TRY301
            taken[job.job_id] = job.units
            jobs.append(job)
        lists: dict[str, list[Any]] = {}
        for key, make in (("blocks", _block), ("reservations", _reservation), ("slurm_partitions", _slurm_partition)):
            lists[key] = []
            for index, entry in enumerate(state.get(key, ())):
                where = f"{key}[{index}]"
                lists[key].append(make(view, entry))
    except (KeyError, TypeError, ValueError, AttributeError, MachineError) as error:
        raise DocumentError(f"{where}: {_explain(error)}", source=source) from error
    jobs.sort(key=lambda job: job.state == PENDING)
    view = replace(
        view,
        jobs=tuple(jobs),
        drained=drained,
        down=down,
        blocks=tuple(lists["blocks"]),
        reservations=tuple(lists["reservations"]),
        slurm_partitions=tuple(lists["slurm_partitions"]) or view.slurm_partitions,
    )
    return with_listed(machine, view)


def units_named(machine: GridMachine, text: str) -> int:
    """Return the bit set of the units of a host list.

    Raises:
        MachineError: the machine has no such unit.
    """
    return expand_units(text, machine.prefix, machine.grid)


def _units(view: MachineView, text: str) -> int:
    return 0 if view.is_flat else expand_units(text, view.prefix, Grid(view.extents))


def _size(view: MachineView, text: str) -> int:
    if not view.is_flat:
        return _units(view, text).bit_count()
    size = int(text or 0)
    if not 0 <= size <= view.total:
        raise MachineError(f"processors must be 0 to {view.total}, got {size}")
    return size


def _seconds(value: Any) -> float:
    seconds = float(value)
    if not isfinite(seconds):
        raise ValueError(f"must be a number of seconds, got {value}")
    return seconds


def _job(view: MachineView, entry: Mapping[str, Any]) -> ViewJob:
    text = str(entry.get("nodes", ""))
    links = entry.get("links", {})
    connection = entry.get("connection", ())
    if isinstance(connection, str):
        connection = [connection] * len(view.extents)
    return ViewJob(
        job_id=int(entry["job_number"]),
        state=str(entry.get("state", RUNNING)),
        units=_units(view, text),
        size=_size(view, text),
        hostlist=text,
        elapsed_s=_seconds(entry.get("elapsed_s", 0.0)),
        connection=tuple(str(value) for value in connection),
        links=tuple((str(name), tuple(int(label) for label in labels)) for name, labels in links.items()),
        slurm_partition=str(entry.get("slurm_partition", "")),
        block=str(entry.get("block", "")),
        user=str(entry.get("user", "")),
        name=str(entry.get("name", "")),
    )


def _block(view: MachineView, entry: Mapping[str, Any]) -> ViewBlock:
    text = str(entry["nodes"])
    return ViewBlock(
        str(entry["name"]),
        str(entry.get("state", "READY")),
        str(entry.get("user", "")),
        str(entry.get("connection", "")),
        str(entry.get("node_use", "")),
        _size(view, text),
        text,
    )


def _reservation(view: MachineView, entry: Mapping[str, Any]) -> ViewReservation:
    text = str(entry["nodes"])
    start, end = _seconds(entry["start_s"]), _seconds(entry["end_s"])
    state = "ACTIVE" if start <= view.now_s < end else "INACTIVE"
    return ViewReservation(str(entry["name"]), str(entry.get("state", state)), start, end, _size(view, text), text)


def _reservation_of_trace(view: MachineView, row: Mapping[str, Any]) -> ViewReservation:
    named = {"name": row["reservation"], "start_s": row["start_time"], "end_s": row["end_time"]}
    return _reservation(view, {**named, "nodes": row["nodes"]})


def _slurm_partition(view: MachineView, entry: Mapping[str, Any]) -> ViewSlurmPartition:
    text = str(entry["nodes"])
    return ViewSlurmPartition(
        str(entry["name"]),
        str(entry.get("available", "up")),
        str(entry.get("time_limit", "infinite")),
        _size(view, text),
        text,
    )


def _explain(error: Exception) -> str:
    return f"field {error} is missing" if isinstance(error, KeyError) else str(error)
