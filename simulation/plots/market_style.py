"""What the pictures of the market experiments have in common."""

from __future__ import annotations

from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

OURS: Final = "#1f4e9c"
OURS_TOO: Final = "#5b8c3a"
PAPER: Final = "#c44e1f"
GREY: Final = "#999999"


def quiet_grid(axes: Axes) -> None:
    """Light lines behind the data."""
    axes.grid(visible=True, color="#e5e5e5", linewidth=0.6)
    axes.set_axisbelow(True)


def plain_log_scale(axes: Axes, smallest: float, largest: float) -> None:
    """A logarithmic vertical axis whose ticks are plain numbers: 1, 2, 5, 10 and so on.

    Args:
        axes: the axes.
        smallest: of the values drawn, above 0.
        largest: of the values drawn.
    """
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_ylim(smallest / 1.5, largest * 1.5)


def footnote(figure: Figure, text: str) -> None:
    """A line of small print below a picture."""
    figure.supxlabel(text, fontsize=7, x=0.01, ha="left", color="#555555")
