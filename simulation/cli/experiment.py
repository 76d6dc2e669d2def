"""`ramp experiment`: the studies, with the numbers of the papers beside ours."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from ramp.cli.options import RealNumber, WholeNumber, example, folder_type
from ramp.cli.views.output import print_rows
from ramp.errors import ConfigurationError, RampError
from simulation.cli.executor_option import check_alone, executor_option
from simulation.cli.progress import PROGRESS_LINE_S, progress_of
from simulation.experiments.comparison import Verdict
from simulation.experiments.discovery import experiment_names, find_experiment
from simulation.experiments.executors import check_executor, working_on
from simulation.experiments.report import MARKDOWN, write_report
from simulation.experiments.running import REPLACE_OPTION, prepare, run_into
from simulation.experiments.study import Study
from simulation.experiments.worker_processes import ending_on_sigterm
from simulation.lab import check_pictures, tell_loops


@click.group()
def experiment() -> None:
    """Studies: whole sweeps of simulations, with figures and the numbers of the papers beside ours."""


@experiment.command(
    "run",
    epilog=example(
        "ramp experiment run bluegene --out results         # in results/bluegene/",
        "ramp experiment run --all --out results --quick    # and results/index.html, results/report.md",
        "ramp experiment run rounds --rule second-price --pricing ramp-2014 --swarm table2 --out results",
    ),
)
@click.argument("name", required=False)
@click.option("--all", "everything", is_flag=True, help="Run all experiments and write one report.")
@click.option(
    "--out",
    required=True,
    type=folder_type,
    help="Directory for results, with a folder for each experiment.",
)
@click.option(REPLACE_OPTION, is_flag=True, help="Replace earlier results of the same experiment in DIR.")
@click.option("--quick", is_flag=True, help="Run a small version, in under a minute.")
@click.option("--strict", is_flag=True, help="Exit with 1 if a result DIFFERS from a paper.")
@click.option("--seed", type=WholeNumber(min=0), default=1, show_default=True, help="Seed of all random numbers.")
@click.option("--processes", type=WholeNumber(min=1), help="Number of processes [default: one per core].")
@executor_option
@click.option("--simulated", is_flag=True, help="Run markets in virtual time [default].")
@click.option("--xmpp", is_flag=True, help="Run markets over XMPP, with agents in their own processes.")
@click.option("--repeat", type=WholeNumber(min=1), help="Number of repetitions [default: the paper's].")
@click.option("--rule", metavar="NAME", help="rounds: auction rule of all requests.")
@click.option("--pricing", metavar="NAME", help="rounds: price strategy of all sellers.")
@click.option("--requests", metavar="FILE", help="rounds: RFQL file; each unit becomes a request.")
@click.option("--swarm", metavar="FILE", help="rounds: swarm of the sellers, a file or the name of a shipped one.")
@click.option("--log", multiple=True, metavar="LOG[:N]", help="Log of a machine with N processors, for some studies.")
@click.option("--whole-logs", is_flag=True, help="bluegene: also the whole logs; implied by --all.")
@click.option("--progress-every", "progress_s", type=RealNumber(min=0.1), default=PROGRESS_LINE_S,
              show_default=True, metavar="SECONDS", help="Interval of progress lines without a terminal.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON; with --all, by experiment.")
@click.pass_context
def run_command(
    context: click.Context,
    /,
    name: str | None,
    everything: bool,
    out: Path,
    replace: bool,
    quick: bool,
    strict: bool,
    seed: int,
    processes: int | None,
    executor: str,
    simulated: bool,
    xmpp: bool,
    progress_s: float,
    as_json: bool,
    **of_some: Any,
) -> None:
    """Run experiment NAME, or all of them, and write tables, pictures, columns.md and summary.json."""
    if everything == (name is not None):
        raise ConfigurationError("give the name of an experiment, or --all, and not both", key="experiment")
    if simulated and xmpp:
        raise ConfigurationError("--simulated and --xmpp exclude each other; give one", key="xmpp")
    check_alone(executor, processes, "--processes")
    if xmpp and check_executor(executor):
        raise ConfigurationError("markets over XMPP run on this computer; leave it out with --xmpp", key="--executor")
    wanted = {"mode": "xmpp" if xmpp else "simulated" if simulated else None, **of_some}
    further = {key: value for key, value in wanted.items() if value not in (None, False, ())}
    if name is not None:
        chosen = [find_experiment(name)]
        _refuse_unknown(chosen[0], further)
    else:
        chosen = [find_experiment(one) for one in experiment_names()]
        further.setdefault("whole_logs", not quick)
    options = {"quick": quick, "seed": seed, "processes": processes}
    with working_on(executor):
        summaries, not_run = run_studies(chosen, out, further, progress_s, replace=replace, **options)
    if as_json:
        click.echo(json.dumps(summaries if everything else summaries[chosen[0].name]))
    elif everything:
        _tell_all(summaries)
    else:
        _tell_one(chosen[0], summaries[chosen[0].name], out)
    write_page(out, [find_experiment(one) for one in experiment_names()], not_run)
    if not_run or (strict and any(one["verdicts"][Verdict.DIFFERS] for one in summaries.values())):
        context.exit(1)


def _refuse_unknown(chosen: Study, further: Mapping[str, Any]) -> None:
    for key, value in further.items():
        if key not in chosen.options:
            option = str(value if key == "mode" else key).replace("_", "-")
            raise ConfigurationError(f"the experiment {chosen.name} has no such option", key=f"--{option}")


def run_studies(
    chosen: Sequence[Study],
    out: Path,
    further: Mapping[str, Any],
    progress_s: float = PROGRESS_LINE_S,
    *,
    replace: bool,
    **options: Any,
) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Run studies one after another and tell how far they are; one of several that cannot be run stops no other.

    Returns:
        The summaries, and why studies were not run, both by the studies' names.
    """
    check_pictures()
    prepare(chosen, out, replace=replace)
    tell_loops()
    summaries, not_run = {}, {}
    for number, each in enumerate(chosen, 1):
        if len(chosen) > 1:
            click.echo(f"{number} of {len(chosen)}: {each.name}", err=True)
        known = {key: value for key, value in further.items() if key in each.options}
        try:
            with ending_on_sigterm(), progress_of(each.name, progress_s) as advance:
                summaries[each.name] = run_into(each, out, on_progress=advance, **options, **known)
        except RampError as error:
            if len(chosen) == 1:
                raise
            not_run[each.name] = str(error)
    return summaries, not_run


def _tell_one(chosen: Study, summary: dict[str, Any], out: Path) -> None:
    for line in chosen.tell(summary):
        click.echo(line)
    click.echo(f"{len(summary['files'])} files in {out / chosen.name} after {summary['wall_s']:.0f} s", err=True)


def _tell_all(summaries: Mapping[str, Mapping[str, Any]]) -> None:
    rows = [
        (name, *(summary["verdicts"][verdict] for verdict in Verdict), f"{summary['wall_s']:.0f} s")
        for name, summary in summaries.items()
    ]
    print_rows(("Experiment", *Verdict, "time"), rows)


def write_page(out: Path, experiments: Sequence[Study], not_run: Mapping[str, str]) -> None:
    """Write the page of all results in a directory, and tell where it is and what is not in it."""
    page = write_report(out, experiments, not_run)
    for name, reason in not_run.items():
        click.echo(f"{name} was not run: {reason}", err=True)
    click.echo(f"{page} and {MARKDOWN} show all results in {out}", err=True)
