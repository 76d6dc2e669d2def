"""What the pictures of all experiments have in common: colours, titles, axes, and legends.

Colours are those of M. Okabe and K. Ito, "Color Universal Design", 2008, which people with any colour vision can tell
apart; what a paper says is always black.
"""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE: Final = "#0072b2"
VERMILION: Final = "#d55e00"
GREEN: Final = "#009e73"
ORANGE: Final = "#e69f00"
PURPLE: Final = "#cc79a7"
SKY: Final = "#56b4e9"
GREY: Final = "#8c8c8c"
PAPER: Final = "#000000"
"""Values and statements of a paper."""

SERIES: Final = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY, GREY)
"""In the order in which series without a colour of their own take them."""

_GRID: Final = "#e5e5e5"
_DOTS_PER_INCH: Final = 130
_LETTERS_PER_INCH: Final = 17
"""Of small print."""
_LINE_INCHES: Final = 0.13
"""Height of a line of small print."""


def save_figure(figure: Figure, path: Path) -> None:
    """Write a picture as PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure).print_png(str(path), metadata={"Software": None})  # type: ignore[no-untyped-call]


def new_figure(width: float, height: float, title: str, *, quick: bool, mode: str = "") -> Figure:
    """An empty figure with its title.

    Args:
        width: inches.
        height: inches.
        title: which figure of which paper it is, or that it is beyond them, and what it shows.
        quick: whether it shows the small version of a study; the title says so.
        mode: how markets were run; empty = nothing to say.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=_DOTS_PER_INCH, layout="constrained")
    marks = [mark for mark in (mode, "quick" if quick else "") if mark]
    figure.suptitle(title + (f" ({', '.join(marks)})" if marks else ""), fontsize=11)
    return figure


def quiet_grid(axes: Axes) -> None:
    """Light lines behind the data."""
    axes.grid(visible=True, color=_GRID, linewidth=0.6)
    axes.set_axisbelow(True)


def legend_below(figure: Figure, *panels: Axes, columns: int) -> None:
    """One legend for several panels, below them.

    Args:
        figure: the figure.
        panels: whose series it names; a series of several panels is named once.
        columns: of the legend.
    """
    named: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    figure.legend(
        list(named.values()),
        list(named),
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        fontsize=8,
        handlelength=3.5,
    )


def footnote(figure: Figure, text: str) -> None:
    """Small print below everything else of a picture; nothing for an empty text. Comes last, after the legend."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    text = text.strip()
    if not text:
        return
    width, height = figure.get_size_inches()
    lines = textwrap.wrap(text, round(_LETTERS_PER_INCH * width))
    share = (_LINE_INCHES * len(lines) + 0.04) / height
    figure.text(0.01, 0.01, "\n".join(lines), fontsize=7, va="bottom", color="#555555")
    engine = figure.get_layout_engine()
    assert isinstance(engine, ConstrainedLayoutEngine), "that is how new_figure makes them"
    # the engine makes room for a legend below the panels, but none once the legend has been moved above the small print
    renderer = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]
    taken = share
    for legend in figure.legends:
        box = legend.get_tightbbox(renderer)
        assert box is not None, "a legend is somewhere"
        taken = max(taken, share + box.height / figure.bbox.height + 0.02)
        legend.set_bbox_to_anchor((0, share, 1, 1 - share), figure.transFigure)
    engine.set(rect=(0, taken, 1, 1 - taken))
