"""`ramp sweep`: a simulation or an experiment at every combination of some parameters."""

from __future__ import annotations

import json
from pathlib import Path

import click

from ramp.cli.options import WholeNumber, example, existing_file_type, folder_type
from ramp.cli.views.output import print_rows
from simulation.cli.executor_option import check_alone, executor_option
from simulation.cli.progress import progress_of
from simulation.experiments.executors import working_on
from simulation.experiments.sweeps import SIMULATE, TABLE_CSV, TABLE_JSON, SweepResult, read_sweep, run_sweep
from simulation.experiments.worker_processes import ending_on_sigterm
from simulation.lab import check_pictures, tell_loops


@click.command(
    epilog=example(
        "ramp sweep loads.toml --out loads",
        "ramp sweep loads.toml --out loads --executor dask:tcp://10.0.0.5:8786",
    )
)
@click.argument("file", type=existing_file_type)
@click.option(
    "--out",
    required=True,
    type=folder_type,
    help="Directory for results; points already there are not run again.",
)
@click.option("--processes", type=WholeNumber(min=1), help="Number of processes [default: one per core].")
@executor_option
@click.option("--json", "as_json", is_flag=True, help="Print the table as a JSON list.")
@click.pass_context
def sweep(context: click.Context, file: Path, out: Path, processes: int | None, executor: str, as_json: bool) -> None:
    """Run the sweep of FILE: a simulation or an experiment at every combination of values.

    FILE is TOML: `run` is "simulate" or "experiment NAME"; the table [fixed] has parameters with one value, the table
    [vary] a list of values for each. Each point is saved when it is done; run the command again to continue an
    interrupted sweep. Writes sweep.csv and sweep.json. Exit status 1: at least one point failed.
    """
    check_alone(executor, processes, "--processes")
    plan = read_sweep(file)
    if plan.run != SIMULATE:
        check_pictures()  # an experiment draws them
    tell_loops()
    with ending_on_sigterm(), working_on(executor), progress_of(file.stem) as advance:
        result = run_sweep(plan, out, processes=processes, on_progress=advance)
    _tell(result, len(plan.points), out)
    if as_json:
        click.echo(json.dumps(result.rows))
    else:
        _print(result)
    if result.failures:
        context.exit(1)


def _tell(result: SweepResult, points: int, out: Path) -> None:
    earlier = f", {result.resumed} of them earlier" if result.resumed else ""
    done = points - len(result.failures)
    click.echo(f"{done} of {points} points{earlier}; {out / TABLE_CSV}, {out / TABLE_JSON}", err=True)
    for point, reason in result.failures.items():
        click.echo(f"{point}: {reason}", err=True)


def _print(result: SweepResult) -> None:
    names = list(dict.fromkeys(name for row in result.rows for name in row))
    print_rows(names, [[_cell(row.get(name, "")) for name in names] for row in result.rows])


def _cell(value: object) -> str:
    return f"{value:,.3f}" if isinstance(value, float) else str(value)
