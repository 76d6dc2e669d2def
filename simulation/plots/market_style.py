"""What the pictures of the market experiments have in common."""

from __future__ import annotations

from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure

OURS: Final = "#1f4e9c"
OURS_TOO: Final = "#5b8c3a"
PAPER: Final = "#c44e1f"
GREY: Final = "#999999"


def quiet_grid(axes: Axes) -> None:
    """Light lines behind the data."""
    axes.grid(visible=True, color="#e5e5e5", linewidth=0.6)
    axes.set_axisbelow(True)


def footnote(figure: Figure, text: str) -> None:
    """A line of small print below a picture."""
    figure.supxlabel(text, fontsize=7, x=0.01, ha="left", color="#555555")
