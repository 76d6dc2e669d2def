"""`ramp papers`: the headlines of the five papers beside ours."""

from __future__ import annotations

import json
from pathlib import Path

import click

from ramp.cli.options import WholeNumber, example, folder_type
from ramp.cli.views.output import print_rows
from simulation.cli.experiment import run_studies, write_page
from simulation.experiments.headlines import HEADLINES, as_row
from simulation.experiments.running import REPLACE_OPTION

COLUMNS = ("result", "paper", "here", "verdict", "experiment")


@click.command(epilog=example("ramp papers", "ramp papers --out again --quick --json"))
@click.option("--out", type=folder_type, default="papers", show_default=True, help="Directory for tables and pictures.")
@click.option(REPLACE_OPTION, is_flag=True, help="Replace earlier results in DIR.")
@click.option("--quick", is_flag=True, help="Run a small version, whose numbers are not comparable.")
@click.option("--processes", type=WholeNumber(min=1), help="Number of processes [default: one per core].")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@click.pass_context
def papers(
    context: click.Context, *, out: Path, replace: bool, quick: bool, processes: int | None, as_json: bool
) -> None:
    """Repeat the headline result of each paper, with its number, ours, a verdict and a picture.

    It takes about a minute on two cores. Each headline is a part of an experiment, which `ramp experiment run NAME`
    runs whole. Without the workload logs (`ramp logs --fetch all`), synthetic workloads take their place, and Blue
    Gene/L is left out. Exit status 1: a headline was not run.
    """
    summaries, not_run = run_studies(HEADLINES, out, {}, replace=replace, quick=quick, seed=1, processes=processes)
    found = [
        (*as_row(each.about, summaries[each.name]["comparison"]), each.name)
        for each in HEADLINES
        if each.name in summaries
    ]
    if as_json:
        click.echo(json.dumps([dict(zip(COLUMNS, row, strict=True)) for row in found]))
    else:
        print_rows(COLUMNS, found, wrap=("result",))
    write_page(out, HEADLINES, not_run)
    if not_run:
        context.exit(1)
