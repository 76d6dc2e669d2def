"""`ramp swarm`: many small markets under faults, every invariant checked."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import NoReturn

import click

from ramp.cli.options import WholeNumber
from ramp.runtime.configuration.file import load_config
from ramp.shipped_files import find_config
from simulation.cli.executor_option import check_alone, executor_option
from simulation.cli.progress import progress_of
from simulation.experiments.executors import working_on
from simulation.experiments.worker_processes import ending_on_sigterm, run_all
from simulation.market.seed_reports import SeedReport, SwarmSummary, summarise
from simulation.swarm import as_configured, replay_seed, run_seed, unaltered

SEEDS_AT_ONCE = 20
"""Seeds handed to a worker at a time; each takes some milliseconds."""

SHOWN_MAX = 10
"""Violations printed in full; one is enough to start with."""


@click.command()
@click.option("--seeds", default=200, show_default=True, type=WholeNumber(min=1), help="Number of markets to run.")
@click.option("--first", default=0, show_default=True, type=WholeNumber(min=0), metavar="SEED", help="First seed.")
@click.option("--workers", "--jobs", type=WholeNumber(min=1), help="Number of processes; default: one per core.")
@executor_option
@click.option("--config", metavar="CONFIG", help="Market to check: a TOML file or a shipped name.")
@click.option("--replay", type=WholeNumber(min=0), metavar="SEED", help="Seed of one market whose events to print.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def swarm(
    seeds: int, first: int, workers: int | None, executor: str, config: str | None, replay: int | None, as_json: bool
) -> None:
    """Run simulated markets under faults and check every invariant.

    A seed draws machines, users, requests and faults: messages lost, doubled, late and out of order, network cuts,
    parties crashing after any step, full disks, clocks apart, and machines and price strategies that answer late, fail
    or never answer. With --config the resources, users and limits are those of a market of yours.
    Exit status 0: no invariant broken; 1: an invariant is broken.

    Example: ramp swarm --config quickstart --seeds 20
    """
    alter = unaltered if config is None else partial(as_configured, load_config(find_config(config)))
    again = f"ramp swarm{'' if config is None else f' --config {shlex.quote(config)}'} --replay {{seed}}"
    if replay is not None:
        report, lines = replay_seed(replay, alter)
        for line in () if as_json else lines:
            click.echo(line)
        finish([report], as_json, again)
    check_alone(executor, workers, "--workers")
    with ending_on_sigterm(), working_on(executor):
        reports = run_seeds(range(first, first + seeds), partial(run_seed, alter=alter), workers)
    finish(reports, as_json, again)


def run_seeds(seeds: range, run: Callable[[int], SeedReport], workers: int | None) -> list[SeedReport]:
    """Run the markets of many seeds in worker processes (None: one a core), with a progress bar on a terminal."""
    lots = [(seeds[first : first + SEEDS_AT_ONCE], run) for first in range(0, len(seeds), SEEDS_AT_ONCE)]
    with progress_of("markets") as advance:
        reports = run_all(
            _run_lot,
            lots,
            processes=workers,
            on_progress=lambda done, _: advance(min(done * SEEDS_AT_ONCE, len(seeds)), len(seeds)),
        )
    return [report for lot in reports for report in lot]


def _run_lot(lot: tuple[range, Callable[[int], SeedReport]]) -> list[SeedReport]:
    seeds, run = lot
    return [run(seed) for seed in seeds]


def finish(reports: list[SeedReport], as_json: bool, again: str) -> NoReturn:
    """Print the results of the markets and exit: 0 if no invariant is broken, else 1.

    `again` is the command that runs one seed again.
    """
    summary = summarise(reports)
    if as_json:
        click.echo(json.dumps({"ok": not summary.violations, **asdict(summary)}, indent=2))
    else:
        _print(summary, again)
    sys.exit(1 if summary.violations else 0)


def _print(summary: SwarmSummary, again: str) -> None:
    outcomes = ", ".join(f"{count} {status}" for status, count in sorted(summary.outcomes.items()))
    click.echo(f"{summary.seeds} markets: requests {outcomes or 'none'}")
    click.echo(f"{summary.messages} messages, {summary.lost} lost, {summary.crashes} crashes")
    click.echo(
        f"{summary.late_answers} late answers of machines and price strategies, {summary.in_doubt} calls in doubt, "
        f"{summary.unheard} answers after a crash"
    )
    for report in summary.violations[:SHOWN_MAX]:
        click.echo(f"seed {report.seed}: {report.checker}: {report.violation}")
        click.echo(f"  again: {again.format(seed=report.seed)}")
    if len(summary.violations) > SHOWN_MAX:
        click.echo(f"... and {len(summary.violations) - SHOWN_MAX} more")
    click.echo("no invariant broken" if not summary.violations else f"BROKEN in {len(summary.violations)} markets")
