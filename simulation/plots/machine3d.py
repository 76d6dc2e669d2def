"""A picture of a machine in space: every unit, each job's box and the cables it holds.

Drawn in smap's perspective: X to the right, Y up, Z to the front left. Planes of equal Y are pulled apart so that none
hides another. Machines with more than three dimensions are drawn as slices side by side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import matplotlib as mpl
import matplotlib.colors
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Patch, PathPatch, Polygon
from matplotlib.path import Path as Outline

from ramp.errors import MachineError
from simulation.machines.bluegene.link_sets import Cable, LineWiring
from simulation.machines.grid import Grid
from simulation.machines.render import SMAP_LETTERS, duration, letters_of
from simulation.machines.view import HELD, MachineView, ViewJob, seconds_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PALETTE = (
    "#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#b07aa1", "#edc948", "#76b7b2", "#9c755f", "#2b3a67", "#8cd17d",
)  # fmt: skip
"""Colours of jobs, in rotation."""
BOOKED_COLOR = "#d6006c"
"""Colour of market bookings, which no job uses. Holds are hatched with it."""
HATCH = "////"
IDLE_COLOR, OUT_COLOR = "#e9ecef", "#3d4248"
EDGE = 0.46
"""Edge of a unit's cube, where neighbours along X are 1 apart."""
DEPTH = (-0.52, -0.56)
"""Shift on paper from one Z to the next."""
PLANE_GAP = 1.25
"""Free height between two planes of equal Y."""
CABLE_BOW = 0.17
"""How far a cable bends away from its line for each unit that it skips."""
BADGE = 0.16
"""Radius of the spot behind a letter, which keeps cables off it."""
CROSS_AT = (0.4, 1.15)
"""How far left of and below the nearest corner the cross of axes stands."""
LEGEND_ROWS_MAX = 40
LEGEND_WIDTH = 3.2
"""Inches."""
BOOKED_STEP, BOOKED_ROWS = 12, 8
"""Height of a booking's bar and its gap on the scale of the load, and how many lie one above the other."""
LOAD_HEIGHT = 1.8
"""Inches of the line of projected load below the map."""

_Point = tuple[float, float]


class _Paper:
    def __init__(self, extents: Sequence[int]) -> None:
        self.extents = tuple(extents)
        self.plane_height = -DEPTH[1] * (extents[2] - 1) + PLANE_GAP

    @property
    def limits(self) -> tuple[float, float, float, float]:
        far, near = self.corner((0, 0, 0)), self.corner((0, 0, self.extents[2] - 1))
        last = self.corner((self.extents[0] - 1, self.extents[1] - 1, 0))
        depth = EDGE * (1 - DEPTH[0])
        bow = max(CABLE_BOW * (1 + (extent - 1) / 2) if extent > 1 else 0.0 for extent in self.extents[1:])
        return (
            near[0] - max(CROSS_AT[0] - DEPTH[0] + 0.2, bow),
            last[0] + depth + max(bow, 0.2),
            far[1] + (near[1] - far[1]) - CROSS_AT[1] + DEPTH[1] - 0.2,
            last[1] + EDGE * (1 - DEPTH[1]) + CABLE_BOW * (1 + (self.extents[0] - 1) / 2) * (self.extents[0] > 1),
        )

    def corner(self, place: Sequence[float]) -> _Point:
        x, y, z = place
        return x + z * DEPTH[0], y * self.plane_height + z * DEPTH[1]

    def socket(self, place: Sequence[float]) -> _Point:
        left, bottom = self.corner(place)
        return left + EDGE / 2 * (1 - DEPTH[0]), bottom + EDGE * (1 - DEPTH[1] / 2)


@dataclass(frozen=True, slots=True)
class LiveDetails:
    """What is known of a machine on a running market besides its map.

    Attributes:
        moment: when it was, ISO 8601; empty = the second of the view.
        load: hours from then and share of the machine taken from then on, drawn as a line below the map.
    """

    moment: str = ""
    load: Sequence[tuple[float, float]] = ()


def draw_machine(
    view: MachineView,
    path: Path,
    file_format: Literal["svg", "png"],
    wirings: Mapping[str, LineWiring] | None = None,
    now: LiveDetails = LiveDetails(),
) -> None:
    """Write the picture.

    Args:
        view: what is shown.
        path: file to write.
        file_format: vector graphics or pixels.
        wirings: of the dimensions by name; without them no cables are drawn.
        now: what is known besides of a machine on a running market.

    Raises:
        MachineError: the machine is flat.
    """
    whole = machine_figure(view, wirings, now)
    # no date in the file, so that equal states give equal files
    with mpl.rc_context({"svg.hashsalt": view.machine}):
        whole.savefig(
            path,
            format=file_format,
            dpi=130,
            bbox_inches="tight",
            metadata={"Date": None} if file_format == "svg" else None,
        )


def machine_figure(
    view: MachineView, wirings: Mapping[str, LineWiring] | None = None, now: LiveDetails = LiveDetails()
) -> Figure:
    """The picture before it is written; arguments and errors as for `draw_machine`."""
    if view.is_flat:
        raise MachineError(f"{view.machine}: a flat machine has no coordinates to draw; use `smap` for a text map")
    inner = (*view.extents, 1, 1)[:3] if len(view.extents) < 3 else view.extents[-3:]
    slices = list(product(*map(range, view.extents[:-3])))
    paper = _Paper(inner)
    left, right, bottom, top = paper.limits
    scale = min(0.8, 20 / ((right - left) * len(slices)))
    size = (scale * (right - left) * len(slices) + LEGEND_WIDTH, max(3.0, scale * (top - bottom)))
    below = LOAD_HEIGHT if now.load else 0.0
    whole = Figure(figsize=(size[0], size[1] + below), layout="constrained")
    figure: Any = whole
    if now.load:
        parts: Any = whole.subfigures(2, 1, height_ratios=[size[1], below])
        figure = parts[0]
        _draw_load(parts[1].subplots(), now.load, view)
    panels = figure.subplots(1, len(slices), squeeze=False)[0]
    colors = {
        job.job_id: BOOKED_COLOR if job.is_booked else PALETTE[index % len(PALETTE)]
        for index, job in enumerate(view.jobs)
    }
    letters = letters_of(view, SMAP_LETTERS)
    for axes, fixed in zip(panels, slices, strict=True):
        _draw_slice(axes, view, paper, fixed, colors, letters)
        if wirings is not None and not fixed:
            for job in view.placed_jobs:
                _draw_cables(axes, view, paper, job, colors[job.job_id], wirings)
        axes.set_xlim(left, right)
        axes.set_ylim(bottom, top)
        names = zip(view.dimension_names, fixed, strict=False)
        axes.set_title(", ".join(f"{name}={value}" for name, value in names), fontsize=10)
    title = f"{view.machine}: {_summary(view, now.moment)}"
    if len(slices) > 1:
        figure.suptitle(title, fontsize=11)
    else:
        panels[0].set_title(title, fontsize=11)
        panels[0].set_anchor("E")  # next to the legend, which may be narrow
    _draw_legend(figure, view, colors, letters)
    return whole


def _draw_load(axes: Axes, load: Sequence[tuple[float, float]], view: MachineView) -> None:
    hours = [hour for hour, _ in load]
    shares = [100 * share for _, share in load]
    # the last part is as long as the one before it
    end = 2 * hours[-1] - hours[-2] if len(hours) > 1 else hours[-1] + 1
    axes.step([*hours, end], [*shares, shares[-1]], where="post", color=PALETTE[0])
    letters = letters_of(view, SMAP_LETTERS)
    booked = {job.name: job for job in view.jobs if job.is_booked}
    for row, entry in enumerate(view.reservations):
        job = booked[entry.name]
        first, last = ((moment - view.now_s) / 3600 for moment in (entry.start_s, entry.end_s))
        first, bottom = max(first, hours[0]), 4 + BOOKED_STEP * (row % BOOKED_ROWS)
        if first >= end:
            continue
        last, held = min(last, end), job.state == HELD
        face = "white" if held else BOOKED_COLOR
        bars = axes.broken_barh([(first, last - first)], (bottom, 8), facecolor=face, edgecolor=BOOKED_COLOR)
        if held:
            bars.set_hatch(HATCH)
        axes.text(last, bottom + 4, f" {letters[job.job_id]}", ha="left", va="center", fontsize=8)
    axes.set_xlim(hours[0], end)
    axes.set_ylim(0, 105)
    axes.set_xlabel("hours from now" + (" (bars: market bookings)" if booked else ""))
    axes.set_ylabel("projected load (%)")
    axes.grid(visible=True, color=IDLE_COLOR)


def _summary(view: MachineView, moment: str) -> str:
    out = (view.drained | view.down).bit_count()
    parts = [f"{view.allocated} of {view.total} allocated"]
    if out:
        parts.append(f"{out} out of service")
    if moment:
        parts.append(moment)
    elif view.now_s:
        parts.append(f"second {seconds_text(view.now_s)}")
    return ", ".join(parts)


def _draw_slice(
    axes: Axes,
    view: MachineView,
    paper: _Paper,
    fixed: tuple[int, ...],
    colors: Mapping[int, str],
    letters: Mapping[int, str],
) -> None:
    grid = Grid(view.extents)
    x_extent, y_extent, z_extent = paper.extents
    own = min(3, len(view.extents))
    # from the back to the front, so that nearer cubes cover farther ones
    for z, y, x in product(range(z_extent), range(y_extent), range(x_extent)):
        unit = grid.unit((*fixed, *(x, y, z)[:own]))
        job = next((job for job in view.placed_jobs if job.units >> unit & 1), None)
        out = bool((view.drained | view.down) >> unit & 1)
        color = colors[job.job_id] if job is not None else OUT_COLOR if out else IDLE_COLOR
        text = letters[job.job_id] if job is not None else "#" if out else ""
        _draw_cube(axes, paper, (x, y, z), color, text, hatched=job is not None and job.state == HELD)
    for job in view.placed_jobs:
        places = [
            grid.coordinates(unit)[-own:]
            for unit in range(grid.size)
            if job.units >> unit & 1 and grid.coordinates(unit)[: len(fixed)] == fixed
        ]
        if places:
            padded = [(*place, 0, 0)[:3] for place in places]
            _draw_outline(axes, paper, padded, colors[job.job_id])
    _draw_axes_cross(axes, paper, view.dimension_names[-own:])
    axes.set_aspect("equal")
    axes.axis("off")


def _draw_cube(axes: Axes, paper: _Paper, place: Sequence[int], color: str, text: str, *, hatched: bool) -> None:
    left, bottom = paper.corner(place)
    right, top = left + EDGE, bottom + EDGE
    shift_x, shift_y = -DEPTH[0] * EDGE, -DEPTH[1] * EDGE
    faces = (
        ([(left, bottom), (right, bottom), (right, top), (left, top)], 0.0),
        ([(left, top), (right, top), (right + shift_x, top + shift_y), (left + shift_x, top + shift_y)], 0.35),
        ([(right, bottom), (right + shift_x, bottom + shift_y), (right + shift_x, top + shift_y), (right, top)], -0.2),
    )
    for corners, light in faces:
        axes.add_patch(
            Polygon(
                corners,
                facecolor="white" if hatched else _lighten(color, light),
                edgecolor=color if hatched else "#495057",
                linewidth=0.5,
                hatch=HATCH if hatched else None,
            )
        )
    if text:
        ground = "white" if hatched else color
        red, green, blue = mpl.colors.to_rgb(ground)
        ink = "black" if 0.3 * red + 0.6 * green + 0.1 * blue > 0.55 else "white"
        axes.add_patch(
            Circle((left + EDGE / 2, bottom + EDGE / 2), BADGE, facecolor=ground, edgecolor="none", zorder=3.5)
        )
        axes.text(
            left + EDGE / 2,
            bottom + EDGE / 2,
            text,
            ha="center",
            va="center_baseline",
            fontsize=8,
            weight="bold",
            color=ink,
            zorder=4,
        )


def _draw_outline(axes: Axes, paper: _Paper, places: Sequence[Sequence[int]], color: str) -> None:
    """The floor of a job's box in each plane: the box as smap's planes cut it."""
    low = [min(place[axis] for place in places) for axis in range(3)]
    high = [max(place[axis] for place in places) for axis in range(3)]
    if len(places) != (high[0] - low[0] + 1) * (high[1] - low[1] + 1) * (high[2] - low[2] + 1):
        return  # a set with gaps has no box
    rim = 0.13
    for y in range(low[1], high[1] + 1):
        corners = [
            paper.corner((x, y, z))
            for x, z in (
                (low[0] - rim, high[2] + 0.3),
                (high[0] + EDGE + rim, high[2] + 0.3),
                (high[0] + EDGE + rim, low[2] - EDGE - 0.1),
                (low[0] - rim, low[2] - EDGE - 0.1),
            )
        ]
        axes.add_patch(Polygon(corners, closed=True, fill=False, edgecolor=color, linewidth=1.6, zorder=0.9))
    # upright edges at the two outer corners join the planes of one box
    for x, z in ((low[0] - rim, high[2] + 0.3), (high[0] + EDGE + rim, low[2] - EDGE - 0.1)):
        first, last = paper.corner((x, low[1], z)), paper.corner((x, high[1], z))
        axes.add_line(
            Line2D(*zip(first, last, strict=True), color=color, linewidth=1.0, linestyle=(0, (2, 2)), zorder=0.9)
        )


def _draw_cables(
    axes: Axes, view: MachineView, paper: _Paper, job: ViewJob, color: str, wirings: Mapping[str, LineWiring]
) -> None:
    """Each cable of the job on each line, as an arc from switch to switch; its bow grows with the units it skips."""
    grid = Grid(view.extents)
    cells = [grid.coordinates(unit) for unit in range(grid.size) if job.units >> unit & 1]
    if not cells:
        return
    members = [sorted(set(axis)) for axis in zip(*cells, strict=True)]
    dark = _lighten(color, -0.35)
    for name, labels in job.links:
        dimension = view.dimension_names.index(name)
        others = [[0] if axis == dimension else coordinates for axis, coordinates in enumerate(members)]
        for label in labels:
            cable = wirings[name].cables[label]
            for place in product(*others):
                _draw_cable(axes, paper, place, dimension, cable, dark)


def _draw_cable(axes: Axes, paper: _Paper, place: Sequence[int], dimension: int, cable: Cable, color: str) -> None:
    ends = []
    for switch in (cable.source, cable.target):
        spot = [*place, 0, 0][:3]
        spot[dimension] = switch
        ends.append(paper.socket(spot))
    (x0, y0), (x1, y1) = ends
    bow = CABLE_BOW * (1 + abs(cable.source - cable.target) / 2)
    # each cable bends to its own left, so that two cables that join the same switches in both directions stay apart
    length = max(((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5, 1e-9)
    middle = ((x0 + x1) / 2 - (y1 - y0) / length * 2 * bow, (y0 + y1) / 2 + (x1 - x0) / length * 2 * bow)
    outline = Outline([(x0, y0), middle, (x1, y1)], [Outline.MOVETO, Outline.CURVE3, Outline.CURVE3])
    for width, ink in ((2.0, "white"), (1.0, color)):
        axes.add_patch(PathPatch(outline, fill=False, edgecolor=ink, linewidth=width, zorder=3, alpha=0.9))


def _draw_axes_cross(axes: Axes, paper: _Paper, names: Sequence[str]) -> None:
    left, bottom = paper.corner((0, 0, paper.extents[2] - 1))
    start = (left - CROSS_AT[0], bottom - CROSS_AT[1])
    tips = ((1.0, 0.0), (0.0, 1.0), (DEPTH[0], DEPTH[1]))
    for name, (dx, dy) in zip(names, tips, strict=False):
        axes.annotate("", (start[0] + dx * 0.8, start[1] + dy * 0.8), start, arrowprops={"arrowstyle": "->"})
        axes.text(start[0] + dx, start[1] + dy, name, ha="center", va="center")


def _draw_legend(figure: Any, view: MachineView, colors: Mapping[int, str], letters: Mapping[int, str]) -> None:
    jobs = view.placed_jobs
    spot: dict[str, Any] = {"marker": "s", "linestyle": "", "markersize": 9}
    lines: list[Line2D | Patch] = [
        Patch(facecolor="white", edgecolor=BOOKED_COLOR, hatch=HATCH, label=_legend_text(job, letters))
        if job.state == HELD
        else Line2D([], [], **spot, color=colors[job.job_id], label=_legend_text(job, letters))
        for job in jobs[:LEGEND_ROWS_MAX]
    ]
    lines.append(Line2D([], [], **spot, color=IDLE_COLOR, markeredgecolor="#495057", label="idle"))
    if view.drained | view.down:
        lines.append(Line2D([], [], **spot, color=OUT_COLOR, label="# drained or down"))
    title = "jobs" if len(jobs) <= LEGEND_ROWS_MAX else f"the first {LEGEND_ROWS_MAX} of {len(jobs)} jobs"
    figure.legend(handles=lines, title=title, loc="outside right center", frameon=False, fontsize=8, alignment="left")


def _legend_text(job: ViewJob, letters: Mapping[int, str]) -> str:
    kinds = "".join(value[0].upper() for value in job.connection)
    cables = " ".join(f"{name}:{','.join(map(str, labels))}" for name, labels in job.links if labels)
    if job.is_booked:
        what = f"{job.name} {'held' if job.state == HELD else 'sold'}  {job.hostlist}"
    else:
        what = f"{job.job_id} {job.user}".rstrip() + f"  {job.hostlist} {duration(job.elapsed_s)}"
    return f"{letters[job.job_id]}  {what}" + (f"\n     {kinds} {cables}" if cables else "")


def _lighten(color: str, amount: float) -> str:
    goal = 1.0 if amount > 0 else 0.0
    red, green, blue = (part + (goal - part) * abs(amount) for part in mpl.colors.to_rgb(color))
    return mpl.colors.to_hex((red, green, blue))
