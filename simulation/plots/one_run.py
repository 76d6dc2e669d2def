"""Pictures of one run: who held which units when, and how much ran and waited over time.

Sizes of jobs go from dark blue to yellow (cividis, made for eyes that confuse colours). A run of few jobs is drawn job
by job, one of many as the share of each point that was held and the mean size of the jobs that held it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PolyCollection
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter
from numpy.typing import NDArray

from simulation.compiling import compiled
from simulation.queueing.run_history import RESERVED, Bars, Steps

_DOTS_PER_INCH: Final = 120
_WIDTH: Final = 12.0
_GANTT_HEIGHT: Final = 6.2
BARS_DRAWN_MAX: Final = 3000
"""More are drawn as shares of points."""
LABELS_MAX: Final = 150
"""Jobs up to which bars carry their numbers, where these fit."""
LABELS_ABOVE_MAX: Final = 30
"""Jobs up to which numbers that do not fit stand above the bars."""
STEPS_DRAWN_MAX: Final = 1500
"""More are drawn as mean and range of stretches of time."""
_POINTS: Final = (1400, 560)
_HOUR: Final = 3_600_000_000
_UNITS_OF_TIME: Final = ((48 * _HOUR, 24 * _HOUR, "days"), (2 * _HOUR, _HOUR, "hours"), (0, _HOUR // 60, "minutes"))
_BLUE: Final = "#1f4e9c"
_BAND: Final = "#b9c9e3"


def draw_gantt(
    target: Path | None,
    bars: Bars,
    *,
    origin: int,
    title: str,
    capacity: int,
    unit_noun: str,
    name_of: Callable[[int], str] | None = None,
) -> Figure:
    """Draw which units were held by whom when.

    Args:
        target: the PNG to write; None for none.
        bars: what was held.
        origin: the first submission, microseconds.
        title: above the picture.
        capacity: units of the machine.
        unit_noun: what they are called.
        name_of: the name of a unit; numbers by default.
    """
    figure = _new_figure(_GANTT_HEIGHT)
    axes = figure.subplots()
    time_unit, time_name = _time_unit(int(bars.end.max()) - origin)
    jobs = bars.job_number != RESERVED
    sizes = bars.size[jobs] if jobs.any() else np.ones(1, np.int64)
    smallest, largest = int(sizes.min()), int(sizes.max())
    norm = LogNorm(smallest, max(largest, smallest + 1))
    mapping = ScalarMappable(norm, mpl.colormaps["cividis"])
    last = (int(bars.end.max()) - origin) / time_unit
    axes.set_xlim(0, last or 1)
    axes.set_ylim(0, capacity)
    if len(bars.begin) <= BARS_DRAWN_MAX:
        _draw_bars(axes, bars, origin, time_unit, mapping)
    else:
        _draw_shares(axes, bars, origin, mapping, capacity, last)
    axes.set_xlabel(f"{time_name} after the first submission")
    axes.set_ylabel(f"{unit_noun}s")
    axes.yaxis.set_major_locator(MaxNLocator(9, integer=True))
    if name_of is not None:
        _name_units(axes, capacity, name_of)
    axes.set_title(title, fontsize=10, loc="left")
    scale = figure.colorbar(mapping, ax=axes, pad=0.01, label=f"requested {unit_noun}s")
    scale.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    scale.ax.yaxis.set_minor_formatter(NullFormatter())
    scale.set_ticks(_sizes_to_name(smallest, largest))
    if not jobs.all():
        patch = Patch(facecolor="white", edgecolor="#555555", hatch="////", label="reserved")
        figure.legend(handles=[patch], loc="outside upper right", frameon=False, fontsize=8)
    return _saved(figure, target)


def draw_timeline(
    target: Path | None,
    running: Steps,
    waiting_jobs: Steps,
    waiting_units: Steps,
    *,
    title: str,
    capacity: int,
    unit_noun: str,
) -> Figure:
    """Draw how much ran and how much waited over time.

    Args:
        target: the PNG to write; None for none.
        running: units held.
        waiting_jobs: jobs in the queue.
        waiting_units: units that they ask for.
        title: above the picture.
        capacity: units of the machine.
        unit_noun: what they are called.
    """
    figure = _new_figure(7.0)
    panels = figure.subplots(3, 1, sharex=True, height_ratios=(3, 2, 2))
    series = (running, waiting_jobs, waiting_units)
    begin = min(int(each.times[0]) for each in series)
    end = max(int(each.times[-1]) for each in series)
    time_unit, time_name = _time_unit(end - begin)
    in_per_cent = Steps(running.times, 100 * running.values / capacity)
    labels = ("utilisation (%)", "jobs waiting", f"requested {unit_noun}s")
    for axes, steps, label in zip(panels, (in_per_cent, waiting_jobs, waiting_units), labels, strict=True):
        _draw_steps(axes, steps, begin, end, time_unit)
        axes.set_ylabel(label)
        axes.set_ylim(0, 1.05 * max(float(steps.values.max()), 1))
        axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.grid(visible=True, color="#e5e5e5", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
    panels[0].set_ylim(0, 105)
    panels[0].set_xlim(0, (end - begin) / time_unit or 1)
    panels[0].set_title(title, fontsize=10, loc="left")
    if any(len(each.times) > STEPS_DRAWN_MAX for each in series):
        panels[0].legend(frameon=False, fontsize=8, loc="upper right", bbox_to_anchor=(1, 1.14), ncols=2)
    panels[-1].set_xlabel(f"{time_name} after the first submission")
    return _saved(figure, target)


def _draw_bars(axes: Axes, bars: Bars, origin: int, time_unit: int, mapping: ScalarMappable) -> None:
    left, right = (bars.begin - origin) / time_unit, (bars.end - origin) / time_unit
    corners = np.stack(
        [np.stack([left, bars.low], 1), np.stack([left, bars.high], 1), np.stack([right, bars.high], 1),
         np.stack([right, bars.low], 1)], 1,
    )  # fmt: skip
    jobs = bars.job_number != RESERVED
    across, up = _points_a_unit(axes)
    colours = mapping.to_rgba(bars.size[jobs].astype(np.float64))
    # white lines between neighbours, but of its own colour around what is hardly wider than a line and would be lost
    thin = ((right - left) * across < 4)[jobs] | ((bars.high - bars.low) * up < 4)[jobs]
    edges = np.where(thin[:, None], colours, 1.0)
    axes.add_collection(PolyCollection(list(corners[jobs]), facecolors=colours, edgecolors=edges, linewidths=0.6))
    reserved = PolyCollection(list(corners[~jobs]), facecolors="white", edgecolors="#555555", linewidths=0.5)
    reserved.set_hatch("////")
    axes.add_collection(reserved)
    numbers = set(bars.job_number[jobs].tolist())
    if len(numbers) <= LABELS_MAX:
        _label_bars(axes, bars, left, right, mapping, all_of_them=len(numbers) <= LABELS_ABOVE_MAX)


def _label_bars(
    axes: Axes,
    bars: Bars,
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    mapping: ScalarMappable,
    *,
    all_of_them: bool,
) -> None:
    """Write each job's number into its largest bar; where it does not fit, above it or not at all."""
    across, up = _points_a_unit(axes)
    areas = (right - left) * (bars.high - bars.low)
    largest: dict[int, int] = {}
    for index in np.flatnonzero(bars.job_number != RESERVED).tolist():
        best = largest.setdefault(int(bars.job_number[index]), index)
        if areas[index] > areas[best]:
            largest[int(bars.job_number[index])] = index
    for number, index in largest.items():
        text = str(number)
        middle = (left[index] + right[index]) / 2
        width, height = (right[index] - left[index]) * across, (bars.high[index] - bars.low[index]) * up
        if width > 8 * len(text) + 4 and height > 9:
            red, green, blue, _ = np.asarray(mapping.to_rgba(np.array([float(bars.size[index])])))[0]
            colour = "white" if 0.3 * red + 0.59 * green + 0.11 * blue < 0.5 else "black"
            where = (middle, (bars.low[index] + bars.high[index]) / 2)
            size = 8 if height > 14 else 6
            axes.text(*where, text, ha="center", va="center_baseline", fontsize=size, color=colour)
        elif all_of_them:
            # flat bars often lie one on the other: their numbers stand apart
            place = left[index] + (right[index] - left[index]) * (0.25 if number % 2 else 0.6)
            where = (max(float(place), 5 / across), float(bars.high[index]))
            axes.annotate(text, where, (0, 2), textcoords="offset points", ha="center", fontsize=7, color="#333333")


def _points_a_unit(axes: Axes) -> tuple[float, float]:
    """Points of the picture that one unit of the horizontal and of the vertical axis takes, nearly."""
    (low, high), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    return 0.86 * _WIDTH * _DOTS_PER_INCH / (high - low), 0.88 * _GANTT_HEIGHT * _DOTS_PER_INCH / (top - bottom)


def _draw_shares(axes: Axes, bars: Bars, origin: int, mapping: ScalarMappable, capacity: int, last: float) -> None:
    """An image: the share of each point that was held, in the colour of the mean size (of its logarithm)."""
    columns, rows = _POINTS[0], min(_POINTS[1], capacity * max(_POINTS[1] // capacity, 1))
    held, logs, reserved = (np.zeros((rows, columns)) for _ in range(3))
    length = max(int(bars.end.max()) - origin, 1)
    jobs = bars.job_number != RESERVED
    for chosen, target, weight in (
        (jobs, held, np.ones(int(jobs.sum()))),
        (jobs, logs, np.log(bars.size[jobs])),
        (~jobs, reserved, np.ones(int((~jobs).sum()))),
    ):
        _add_areas(
            target,
            (bars.begin[chosen] - origin) / length * columns,
            (bars.end[chosen] - origin) / length * columns,
            bars.low[chosen] / capacity * rows,
            bars.high[chosen] / capacity * rows,
            weight,
        )
    mean = np.exp(np.divide(logs, held, out=np.zeros_like(logs), where=held > 0))
    colours = mapping.to_rgba(mean)
    share = np.minimum(held, 1)[..., None]
    image = share * colours[..., :3] + (1 - share)
    image = image * (1 - 0.5 * np.minimum(reserved, 1)[..., None])
    axes.imshow(
        np.clip(image, 0, 1), origin="lower", aspect="auto", extent=(0, last, 0, capacity), interpolation="nearest"
    )


@compiled
def _add_areas(
    target: NDArray[np.float64],
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    weight: NDArray[np.float64],
) -> None:
    """Add to each point the share of it that each rectangle covers, times its weight."""
    rows, columns = target.shape
    for index in range(left.shape[0]):
        for row in range(int(low[index]), min(int(np.ceil(high[index])), rows)):
            up = min(high[index], row + 1.0) - max(low[index], float(row))
            for column in range(int(left[index]), min(int(np.ceil(right[index])), columns)):
                across = min(right[index], column + 1.0) - max(left[index], float(column))
                target[row, column] += weight[index] * up * across


def _draw_steps(axes: Axes, steps: Steps, begin: int, end: int, time_unit: int) -> None:
    if len(steps.times) <= STEPS_DRAWN_MAX:
        times = np.concatenate(([begin], steps.times, [end]))
        values = np.concatenate(([0.0], steps.values))
        axes.stairs(values, (times - begin) / time_unit, color=_BLUE, linewidth=1.2, baseline=None)
        axes.stairs(values, (times - begin) / time_unit, color=_BAND, fill=True)
        return
    whole = Steps(np.concatenate(([begin], steps.times)), np.concatenate(([0.0], steps.values)))
    edges = np.linspace(begin, end, STEPS_DRAWN_MAX // 3 + 1).astype(np.int64)
    mean, least, most = whole.mean_least_most(edges)
    scaled = (edges - begin) / time_unit
    axes.stairs(most, scaled, baseline=least, fill=True, color=_BAND, label="least to most")
    axes.stairs(mean, scaled, color=_BLUE, linewidth=1.1, baseline=None, label="mean")


def _name_units(axes: Axes, capacity: int, name_of: Callable[[int], str]) -> None:
    step = max(capacity // 8, 1)
    places = list(range(0, capacity, step))
    axes.set_yticks([place + 0.5 for place in places], [name_of(place) for place in places], fontsize=8)


def _sizes_to_name(smallest: int, largest: int) -> list[int]:
    powers = [1 << power for power in range(largest.bit_length()) if 1.3 * smallest < 1 << power < largest / 1.3]
    return sorted({smallest, largest, *powers[:: -(-len(powers) // 5) or 1]})


def _time_unit(length: int) -> tuple[int, str]:
    return next((unit, name) for least, unit, name in _UNITS_OF_TIME if length >= least)


def _new_figure(height: float) -> Figure:
    figure = Figure(figsize=(_WIDTH, height), dpi=_DOTS_PER_INCH, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _saved(figure: Figure, target: Path | None) -> Figure:
    metadata: dict[str, Any] = {"Software": None}
    if target is not None:
        figure.savefig(target, format="png", metadata=metadata)
    return figure
