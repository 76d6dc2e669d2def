"""Pictures of the experiments on simultaneous users, drawn from their result files."""

from __future__ import annotations

from pathlib import Path

from simulation.plots.bluegene import Row, new_figure, read_rows, save_figure
from simulation.plots.market_style import GREY, OURS, OURS_TOO, PAPER, footnote, quiet_grid

_PANELS = (
    ("response_s", "response time of a resource (ms)", "Response time"),
    ("round_s", "duration of the round (ms)", "Round duration"),
)


def draw_users(source: Path, target: Path, title: str, note: str) -> None:
    """Figure 12: response time and round duration over simultaneous users.

    Args:
        source: `figure12.csv`.
        target: the picture.
        title: of the picture.
        note: stands below.
    """
    draw_series(((source, "twenty resources on one host", OURS, "o"),), target, title, note)


def draw_series(series: tuple[tuple[Path, str, str, str], ...], target: Path, title: str, note: str) -> None:
    """Response time and round duration over simultaneous users, several deployments in one picture.

    Args:
        series: result file, label, colour and marker of each deployment.
        target: the picture.
        title: of the picture.
        note: stands below.
    """
    figure = new_figure(11, 4.6)
    for axes, (column, label, name) in zip(figure.subplots(1, 2), _PANELS, strict=True):
        for source, what, colour, marker in series:
            rows: list[Row] = read_rows(source)
            users = [int(row["users"]) for row in rows]
            axes.errorbar(
                users,
                [1000 * float(row[column]) for row in rows],
                yerr=[1000 * float(row[f"{column}_sd"]) for row in rows],
                color=colour,
                marker=marker,
                markersize=4,
                capsize=2,
                linewidth=1.3,
                label=what,
            )
            if column == "round_s" and len(series) == 1:
                longest = [1000 * float(row["longest_round_s"]) for row in rows]
                axes.plot(users, longest, ":", color=GREY, label="slowest user")
        axes.set_ylim(bottom=0)
        axes.set_xlabel("simultaneous users")
        axes.set_ylabel(label)
        axes.set_title(f"{name}, {title}", fontsize=10)
        quiet_grid(axes)
        axes.legend(frameon=False, fontsize=8, loc="upper left")
    footnote(figure, f"Bars: standard deviation. The paper's curves are not told in numbers. {note}")
    save_figure(figure, target)


COLOURS_OF_DEPLOYMENTS = (OURS, PAPER, OURS_TOO, GREY)
