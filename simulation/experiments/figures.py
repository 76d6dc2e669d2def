"""Pictures of a study, declared: the engine makes titles, legends, small print and grids of panels of curves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from simulation.experiments.result import Row, Rows, grouped
from simulation.plots.style import (
    SERIES,
    footnote,
    legend_below,
    new_figure,
    quiet_grid,
    save_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from simulation.experiments.study import Found


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A picture.

    Attributes:
        title: which figure of which paper it is, or that it is beyond them, and what it shows.
        size: width and height in inches.
        draw: draws the panels and returns those whose series stand in the legend below.
        legend: columns of the legend.
        note: small print below everything else.
    """

    title: str
    size: tuple[float, float] | Callable[[Found], tuple[float, float]]
    draw: Callable[[Drawing, Found], Iterable[Axes]]
    legend: int = 3
    note: str | Callable[[Found], str] = ""

    def save(self, found: Found, path: Path) -> None:
        """Draw it and write it as PNG."""
        run = found.run
        width, height = self.size(found) if callable(self.size) else self.size
        drawing = new_figure(width, height, self.title, quick=run.quick, mode=run.options.get("mode", ""))
        named = list(self.draw(drawing, found))
        for axes in drawing.axes:
            is_twin, is_colorbar = not axes.patch.get_visible(), axes.get_label() == "<colorbar>"
            if axes.axison and not is_twin and not is_colorbar:
                quiet_grid(axes)
        if named:
            legend_below(drawing, *named, columns=self.legend)
        footnote(drawing, self.note(found) if callable(self.note) else self.note)
        save_figure(drawing, path)


class Axis(NamedTuple):
    """A measure on an axis: its column, its label, and by what values are multiplied for it."""

    column: str
    label: str
    factor: float = 1.0


def plain_style(line: tuple[Any, ...], number: int) -> dict[str, Any]:
    """How the line of some values is drawn: the next colour, thinner than those before it so that they are seen."""
    width = max(1.0, 2.8 - 0.4 * number)
    return {
        "color": SERIES[number % len(SERIES)], "marker": "o", "linewidth": width, "markersize": 2.4 * width,
        "label": ", ".join(map(str, line)),
    }  # fmt: skip


def _no_change(axes: Axes, found: Found, panel: tuple[Any, ...], rows: Rows) -> None:
    """Leave the panel as it is."""


def _every(_: Row) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """Panels of curves: one panel for each measure and each value of some columns, a line for each value of others.

    Attributes:
        table: whose rows are drawn.
        x: the horizontal axis; words stand at even distances.
        y: vertical axes; several are rows of panels, or stand side by side where there are no other panels.
        panels: columns of the table whose values make panels side by side.
        down: column whose values make rows of panels, where there is one measure.
        lines: columns whose values make lines.
        spread: ending of the columns that hold half of the error bars' lengths, or half of the length for a row.
        style: of the line of some values, by the line and its number; with its `label`.
        where: which rows are drawn.
        title: of the panel of some values, where there are several axes after the column of its own.
        wrap: panels in a row at most; 0: all.
        bottom: where vertical axes begin; None: where the values do.
        finish: adds to a panel what the paper says.
    """

    table: str
    x: Axis
    y: Sequence[Axis]
    panels: tuple[str, ...] = ()
    down: str = ""
    lines: tuple[str, ...] = ()
    spread: str | Callable[[Row], float | None] = ""
    style: Callable[[tuple[Any, ...], int], Mapping[str, Any]] = plain_style
    where: Callable[[Row], bool] = _every
    title: Callable[[tuple[Any, ...]], str] = field(default=lambda panel: ", ".join(map(str, panel)))
    wrap: int = 0
    bottom: float | None = 0.0
    finish: Callable[[Axes, Found, tuple[Any, ...], Rows], None] = _no_change

    def __call__(self, drawing: Drawing, found: Found) -> list[Axes]:
        """Draw the panels; returns those whose series stand in the legend."""
        rows = [row for row in found[self.table] if self.where(row)]
        numbers = {line: number for number, line in enumerate(grouped(rows, *self.lines))}
        panels = grouped(rows, *self.panels)
        down = list(grouped(rows, self.down)) if self.down else [()]
        layers = [(axis, value) for axis in self.y for value in down]
        shape = (len(layers), len(panels))
        if not self.panels and not self.down:
            shape = (1, len(layers))
        if self.wrap:
            assert len(layers) == 1, "panels are wrapped where there is one row of them"
            shape = (-(-len(panels) // self.wrap), min(self.wrap, len(panels)))
        share = bool(self.panels) and not self.wrap
        grid = drawing.subplots(*shape, squeeze=False, sharey="row" if share else False).ravel().tolist()
        drawn: list[tuple[Axes, tuple[Any, ...], list[Row]]] = []
        for axis, value in layers:
            for panel, of_panel in panels.items():
                axes = grid[len(drawn)]
                mine = [row for row in of_panel if not self.down or (row[self.down],) == value]
                name = (*([axis.column] if len(self.y) > 1 else []), *value, *panel)
                self._draw(axes, axis, mine, numbers)
                axes.set_title(self.title(name), fontsize=9)
                if not share or len(drawn) % shape[1] == 0:
                    axes.set_ylabel(axis.label)
                drawn.append((axes, name, mine))
        for axes in grid[len(drawn) :]:
            axes.set_axis_off()
        for axes, name, of_axes in drawn:  # only now, for panels side by side share their scales
            if self.bottom is not None:
                axes.set_ylim(bottom=self.bottom)
            self.finish(axes, found, name, of_axes)
        return [axes for axes, *_ in drawn]

    def _draw(self, axes: Axes, axis: Axis, rows: Rows, numbers: Mapping[tuple[Any, ...], int]) -> None:
        words = list(dict.fromkeys(row[self.x.column] for row in rows if isinstance(row[self.x.column], str)))
        if words:
            axes.set_xticks(range(len(words)), words, fontsize=7, rotation=30)
        for line, mine in grouped(rows, *self.lines).items():
            given = [row for row in mine if row[axis.column] not in (None, "")]
            given.sort(key=lambda row: words.index(row[self.x.column]) if words else row[self.x.column])
            places = [words.index(row[self.x.column]) if words else self.x.factor * row[self.x.column] for row in given]
            values = [axis.factor * row[axis.column] for row in given]
            style = {"markersize": 3, "linewidth": 1.3, **self.style(line, numbers[line])}
            spreads = [axis.factor * (self._spread(row, axis) or 0) for row in given] if self.spread else None
            axes.errorbar(places, values, yerr=spreads, capsize=2, **style)
        axes.set_xlabel(self.x.label)

    def _spread(self, row: Row, axis: Axis) -> Any:
        return self.spread(row) if callable(self.spread) else row[axis.column + self.spread]
