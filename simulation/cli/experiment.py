"""`ramp experiment`: the studies, with the numbers of the papers beside ours."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from ramp.errors import ConfigurationError
from simulation.experiments.discovery import Experiment, experiment_names, find_experiment

PROGRESS_LINE_S: Final = 10.0
"""Between two lines of progress at least, in seconds."""


@click.group()
def experiment() -> None:
    """Studies: whole sweeps of simulations, with figures and the numbers of the papers beside ours."""


@experiment.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
def list_command(as_json: bool) -> None:
    """Name the experiments."""
    found = [find_experiment(name) for name in experiment_names()]
    if as_json:
        click.echo(json.dumps([{"name": one.name, "about": one.about} for one in found]))
        return
    table = Table("Experiment", "About", box=None, pad_edge=False)
    for one in found:
        table.add_row(one.name, one.about)
    Console(highlight=False).print(table)


@experiment.command("run")
@click.argument("name")
@click.option("--out", required=True, type=click.Path(file_okay=False, path_type=Path), help="Directory for results.")
@click.option("--quick", is_flag=True, help="A small version of the study, in under a minute.")
@click.option("--seed", type=int, default=1, show_default=True, help="Of all that is drawn.")
@click.option("--processes", type=click.IntRange(min=1), help="Processes to use [default: one a core].")
@click.option("--simulated", is_flag=True, help="Markets in virtual time [default].")
@click.option("--xmpp", is_flag=True, help="Markets over XMPP, agents in their own processes.")
@click.option("--repeat", type=click.IntRange(min=1), help="Repetitions [default: the paper's].")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def run_command(
    name: str,
    out: Path,
    quick: bool,
    seed: int,
    processes: int | None,
    simulated: bool,
    xmpp: bool,
    repeat: int | None,
    as_json: bool,
) -> None:
    """Run experiment NAME and write its CSV, PNG and summary.json."""
    chosen = find_experiment(name)
    if simulated and xmpp:
        raise ConfigurationError("--simulated and --xmpp exclude each other; give one", key="xmpp")
    mode = "xmpp" if xmpp else "simulated" if simulated else None
    further = {key: value for key, value in (("mode", mode), ("repeat", repeat)) if value is not None}
    for key in further:
        if key not in chosen.further:
            option = f"--{mode}" if key == "mode" else f"--{key}"
            raise ConfigurationError(f"the experiment {name} knows no such option", key=option)
    _make_folder(out)
    began = time.perf_counter()
    summary = _run_with_progress(chosen, out, quick=quick, seed=seed, processes=processes, **further)
    if as_json:
        click.echo(json.dumps(summary))
        return
    for line in chosen.tell(summary):
        click.echo(line)
    click.echo(f"{len(list(out.iterdir()))} files in {out} after {time.perf_counter() - began:.0f} s", err=True)


def _make_folder(out: Path) -> None:
    """Make the folder of the results; refuse before the study what could not be written after it."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"cannot be made: {error.strerror}", path=out, key="out") from error
    for path in (out, *out.glob("*.csv"), *out.glob("*.json"), *out.glob("*.png")):
        if path != out and not path.is_file():
            raise ConfigurationError("is in the way of a file of results", path=path, key="out")
        if not os.access(path, os.W_OK):
            raise ConfigurationError("cannot be written: it is not writable", path=path, key="out")


def progress_lines(name: str, clock: Callable[[], float]) -> Callable[[int, int], None]:
    """What tells the progress of an experiment where standard error is no terminal: a line now and then.

    Args:
        name: of the experiment.
        clock: seconds from any beginning.
    """
    last = clock()

    def advance(done: int, total: int) -> None:
        nonlocal last
        if clock() - last >= PROGRESS_LINE_S:
            last = clock()
            click.echo(f"{name}: {done} of {total}", err=True)

    return advance


def _run_with_progress(
    chosen: Experiment, out: Path, *, quick: bool, seed: int, processes: int | None, **further: Any
) -> dict[str, Any]:
    if not sys.stderr.isatty():
        tell = progress_lines(chosen.name, time.monotonic)
        return chosen.run(out, quick=quick, seed=seed, processes=processes, on_progress=tell, **further)
    columns = (TextColumn(chosen.name), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(chosen.name, total=None)

        def advance(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total)

        return chosen.run(out, quick=quick, seed=seed, processes=processes, on_progress=advance, **further)
