"""How far a command with many simulations is: a bar on a terminal, else a line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ramp.cli.views.output import console
from simulation.experiments.measuring import Progress as Told

PROGRESS_LINE_S: Final = 10.0
"""Between two lines of progress at least, in seconds, where nothing else is asked for."""


@contextmanager
def progress_of(name: str, every_s: float = PROGRESS_LINE_S) -> Iterator[Told]:
    """Give a function to call with the numbers of simulations done and of all."""
    if not sys.stderr.isatty():
        yield progress_lines(name, time.monotonic, every_s)
        return
    columns = (TextColumn(name), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(error=True), transient=True) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def progress_lines(
    name: str, clock: Callable[[], float], every_s: float = PROGRESS_LINE_S
) -> Callable[[int, int], None]:
    """Return a function that prints progress at most every `every_s` seconds, for output that is no terminal."""
    begun = last = clock()

    def advance(done: int, total: int) -> None:
        nonlocal last
        now = clock()
        if now - last >= every_s:
            last = now
            left = f", about {_minutes((now - begun) / done * (total - done))} left" if done else ""
            click.echo(f"{name}: {done} of {total}{left}", err=True)

    return advance
