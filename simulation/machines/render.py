"""Slurm's smap: the map of a machine and its tables, as text.

The map has one plane for each Y, the highest on top. Within a plane Z=0 is the back line and every further Z comes one
line down and one column to the left; X grows to the right. `.` is idle, `#` down or drained, and jobs get letters in
list order. Machines with more dimensions are shown as slices side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product, zip_longest
from typing import Literal

from ramp.errors import MachineError
from simulation.machines.bluegene.blocks import BlockState
from simulation.machines.grid import Grid
from simulation.machines.view import HELD, PENDING, MachineView, ViewJob

UPPER, LOWER, DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz", "0123456789"
SMAP_LETTERS = UPPER + LOWER + DIGITS
"""Letters in the order in which smap gives them out."""
DOCUMENTED_LETTERS = LOWER + UPPER + DIGITS
"""The order in the sample of Slurm's documentation."""
IDLE, OUT = ".", "#"
COLORS = ("\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[34m", "\x1b[35m", "\x1b[36m")
"""Six terminal colours in rotation, as in smap."""
HELD_COLOR = "\x1b[7m"
"""Holds of a market are shown in reverse video."""
RESET = "\x1b[0m"
SLICE_GAP = "   "
FLAT_ROW = 64
"""Processors a line of the map of a flat machine."""
UNITS_MAX = 65_536
"""Units a map may have; a larger one could not be read, and would fill memory."""

Display = Literal["jobs", "slurm_partitions", "blocks", "reservations"]


@dataclass(frozen=True, slots=True)
class Style:
    """How to draw.

    Attributes:
        letters: given to jobs in list order, again and again.
        color: whether to colour cells and table rows for a terminal.
        header: whether tables begin with their column names.
    """

    letters: str = SMAP_LETTERS
    color: bool = False
    header: bool = True


def render(view: MachineView, display: Display = "jobs", style: Style = Style()) -> str:
    """Render the map with a table to its right, as smap's screen does."""
    left = map_lines(view, style)
    right = table_lines(view, display, style)
    width = max(map(_visible, left), default=0) + 2
    rows = [(_pad(cell, width) + row).rstrip() for cell, row in zip_longest(left, right, fillvalue="")]
    return "\n".join(rows) + "\n"


def map_lines(view: MachineView, style: Style = Style()) -> list[str]:
    """Render the map alone, one text for each line.

    Raises:
        MachineError: the machine has more than `UNITS_MAX` units.
    """
    if view.total > UNITS_MAX:
        raise MachineError(f"{view.machine}: a map can show at most {UNITS_MAX} units, got {view.total}")
    cells = _cells(view, style)
    if view.is_flat:
        return [" ".join(cells[first : first + FLAT_ROW]) for first in range(0, len(cells), FLAT_ROW)]
    grid = Grid(view.extents)
    inner = view.extents[-3:]
    leading = view.extents[:-3]
    if not leading:
        # a plane of two dimensions lies flat, X to the right and Z to the front; a row is X alone
        box = {1: (*inner, 1, 1), 2: (inner[0], 1, inner[-1]), 3: inner}[len(inner)]
        axes = {1: (0,), 2: (0, 2), 3: (0, 1, 2)}[len(inner)]
        return _planes(box, lambda place: cells[grid.unit([place[axis] for axis in axes])])
    # slices lie side by side along the last leading dimension, rows of slices along the others
    rows: list[str] = []
    for above in product(*map(range, leading[:-1])):
        blocks = []
        for last in range(leading[-1]):
            fixed = (*above, last)
            planes = _planes(inner, lambda place, fixed=fixed: cells[grid.unit((*fixed, *place))])  # type: ignore[misc]
            names = ", ".join(f"{name}={value}" for name, value in zip(view.dimension_names, fixed, strict=False))
            width = inner[2] - 1 + 2 * inner[0] - 1
            blocks.append([_pad(line, width) for line in (names, *planes)])
        rows += [SLICE_GAP.join(parts).rstrip() for parts in zip(*blocks, strict=True)] + [""]
    return rows[:-1]


def table_lines(view: MachineView, display: Display, style: Style = Style()) -> list[str]:
    """Render one of smap's tables, one text for each line."""
    columns, rows, colors = _TABLES[display](view, style)
    names = [name.lstrip(">") for name in columns]
    widths = [
        max([len(name) if style.header else 0, *(len(row[index]) for row in rows)]) for index, name in enumerate(names)
    ]
    lines = []
    for texts in ([names] if style.header else []) + rows:
        parts = [
            text.rjust(width) if column.startswith(">") else text.ljust(width)
            for text, width, column in zip(texts, widths, columns, strict=True)
        ]
        lines.append(" ".join(parts).rstrip())
    if style.color:
        first = 1 if style.header else 0
        for index, color in enumerate(colors):
            lines[first + index] = f"{color}{lines[first + index]}{RESET}" if color else lines[first + index]
    return lines


def letters_of(view: MachineView, letters: str) -> dict[int, str]:
    """Return the letter of each job by its number: in list order, repeated as needed."""
    return {job.job_id: letters[index % len(letters)] for index, job in enumerate(view.jobs)}


def duration(seconds: float) -> str:
    """Format elapsed time as squeue does: [days-]hours:minutes:seconds without leading zero parts."""
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    if days:
        return f"{days}-{hour:02}:{minute:02}:{second:02}"
    return f"{hour}:{minute:02}:{second:02}" if hour else f"{minute}:{second:02}"


def _cells(view: MachineView, style: Style) -> list[str]:
    cells = [IDLE] * view.total
    letters = letters_of(view, style.letters)
    colors = _colors(view)
    filled = 0
    for job in view.placed_jobs:
        letter = letters[job.job_id]
        text = f"{colors[job.job_id]}{letter}{RESET}" if style.color else letter
        if view.is_flat:
            # processors have no identity: jobs are drawn one after another
            last = min(view.total, filled + job.size)
            cells[filled:last] = [text] * (last - filled)
            filled = last
        else:
            for unit in range(view.total):
                if job.units >> unit & 1:
                    cells[unit] = text
    for unit in range(view.total):
        # a drained unit shows the job that still runs on it
        if view.down >> unit & 1 or (view.drained >> unit & 1 and cells[unit] == IDLE):
            cells[unit] = OUT
    return cells


def _colors(view: MachineView) -> dict[int, str]:
    return {
        job.job_id: HELD_COLOR if job.state == HELD else COLORS[index % len(COLORS)]
        for index, job in enumerate(view.jobs)
    }


def _planes(extents: Sequence[int], cell: Callable[[tuple[int, int, int]], str]) -> list[str]:
    x_extent, y_extent, z_extent = extents
    lines = []
    for y in reversed(range(y_extent)):
        lines += [
            " " * (z_extent - 1 - z) + " ".join(cell((x, y, z)) for x in range(x_extent)) for z in range(z_extent)
        ]
        lines.append("")
    return lines[:-1]


def _pad(line: str, width: int) -> str:
    return line + " " * (width - _visible(line))


def _visible(line: str) -> int:
    """Return the width of a line on a terminal, without its colours."""
    return len(line) - sum(line.count(code) * len(code) for code in (*COLORS, HELD_COLOR, RESET))


_Table = tuple[list[str], list[list[str]], list[str]]


def _job_table(view: MachineView, style: Style) -> _Table:
    letters = letters_of(view, style.letters)
    colors = _colors(view)
    columns = ["ID", ">JOBID", "PARTITION", "BG_BLOCK", "USER", "NAME", "ST", ">TIME", ">NODES", "BP_LIST"]
    rows = [[letters[job.job_id], *_job_row(job)] for job in view.jobs]
    return columns, rows, [colors[job.job_id] for job in view.jobs]


def _job_row(job: ViewJob) -> list[str]:
    waits = job.state == PENDING
    return [
        "-" if job.job_id < 0 else str(job.job_id),
        job.slurm_partition or "-",
        job.block or "-",
        job.user or "-",
        job.name or "-",
        job.state,
        duration(0 if waits else job.elapsed_s),
        str(job.size),
        "waiting..." if waits else job.hostlist,
    ]


def _slurm_partition_table(view: MachineView, style: Style) -> _Table:
    rows = [
        [style.letters[index % len(style.letters)], queue.name, queue.available, queue.time_limit, str(queue.size),
         queue.hostlist]
        for index, queue in enumerate(view.slurm_partitions)
    ]  # fmt: skip
    return ["ID", "PARTITION", "AVAIL", ">TIMELIMIT", ">NODES", "NODELIST"], rows, [""] * len(rows)


def _block_table(view: MachineView, style: Style) -> _Table:
    given = letters_of(view, style.letters)
    letters = {job.block: given[job.job_id] for job in view.jobs if job.block}  # as on the map
    idle = (BlockState.FREE, BlockState.READY, BlockState.ERROR, BlockState.DEALLOCATING)
    rows = [
        [letters.get(block.name, "-" if block.state in idle else style.letters[index % len(style.letters)]),
         view.machine, block.name, block.state, block.user or "-", block.connection.upper(),
         block.node_use.upper() or "-", str(block.size), block.hostlist]
        for index, block in enumerate(view.blocks)
    ]  # fmt: skip
    columns = ["ID", "PARTITION", "BG_BLOCK", "STATE", "USER", "CONN", "NODE_USE", ">NODES", "BP_LIST"]
    return columns, rows, [""] * len(rows)


def _reservation_table(view: MachineView, style: Style) -> _Table:
    given = letters_of(view, style.letters)
    letters = {job.name: given[job.job_id] for job in view.jobs if job.is_booked}  # as on the map
    clocked = any(held.start for held in view.reservations)
    rows = [
        [letters.get(held.name, style.letters[index % len(style.letters)]), held.name, held.state,
         held.start if clocked else f"{held.start_s:.0f}", held.end if clocked else f"{held.end_s:.0f}",
         str(held.size), held.hostlist]
        for index, held in enumerate(view.reservations)
    ]  # fmt: skip
    times = ["START", "END"] if clocked else [">START_S", ">END_S"]
    return ["ID", "RESV_NAME", "STATE", *times, ">NODES", "NODELIST"], rows, [""] * len(rows)


_TABLES: dict[Display, Callable[[MachineView, Style], _Table]] = {
    "jobs": _job_table,
    "slurm_partitions": _slurm_partition_table,
    "blocks": _block_table,
    "reservations": _reservation_table,
}
