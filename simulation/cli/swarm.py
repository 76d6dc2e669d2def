"""`ramp swarm`: many small markets under faults, every invariant checked."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from simulation.cli.executor_option import check_alone, executor_option
from simulation.experiments.executors import working_on
from simulation.experiments.worker_processes import ending_on_sigterm, run_all
from simulation.market.faults.planted_bugs import PLANTED_BUGS
from simulation.market.faults.seed_reports import SeedReport, SwarmSummary, summarise
from simulation.market.swarm import replay_seed, run_seed

SEEDS_AT_ONCE = 20
"""Seeds handed to a worker at a time; each takes some milliseconds."""

SHOWN_MAX = 10
"""Violations printed in full; one is enough to start with."""


@click.command()
@click.option("--seeds", default=200, show_default=True, type=click.IntRange(min=1), help="How many markets to run.")
@click.option("--first", default=0, show_default=True, type=click.IntRange(min=0), metavar="SEED", help="First seed.")
@click.option("--plant", type=click.Choice(sorted(PLANTED_BUGS)), help="Plant this bug and see whether it is caught.")
@click.option("--workers", "--jobs", type=click.IntRange(min=1), help="Processes; default: one for each core.")
@executor_option
@click.option("--replay", type=click.IntRange(min=0), metavar="SEED", help="Print what happened in one seed's market.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def swarm(
    seeds: int,
    first: int,
    plant: str | None,
    workers: int | None,
    executor: str,
    replay: int | None,
    as_json: bool,
) -> None:
    """Run simulated markets under faults and check every invariant.

    A seed draws machines, users, requests and what goes wrong: messages lost, doubled, late and overtaking, lines cut,
    parties crashing after any step, disks full, clocks apart, machines and price strategies that answer late, fail or
    not at all, and liars among users and resources.
    Exit status 0: no invariant broken (with --plant: the bug was caught).

    Example: ramp swarm --seeds 5000 --workers 2
    """
    if replay is not None:
        report, lines = replay_seed(replay, plant)
        for line in () if as_json else lines:
            click.echo(line)
        _finish([report], plant, as_json)
    check_alone(executor, workers, "--workers")
    with ending_on_sigterm(), working_on(executor):
        reports = _run(range(first, first + seeds), plant, workers)
    _finish(reports, plant, as_json)


def _run(seeds: range, plant: str | None, workers: int | None) -> list[SeedReport]:
    lots = [(seeds[first : first + SEEDS_AT_ONCE], plant) for first in range(0, len(seeds), SEEDS_AT_ONCE)]
    with _progress(len(seeds)) as bar:

        def advance(done: int, _: int) -> None:
            bar.update(bar.task_ids[0], completed=min(done * SEEDS_AT_ONCE, len(seeds)))

        reports = run_all(_run_lot, lots, processes=workers, on_progress=advance)
    return [report for lot in reports for report in lot]


def _run_lot(lot: tuple[range, str | None]) -> list[SeedReport]:
    seeds, plant = lot
    # What has been imported stays for good: a collector that looks through it each time costs a sixth of a market.
    gc.collect()
    gc.freeze()
    return [run_seed(seed, planted_bug=plant) for seed in seeds]


@contextmanager
def _progress(total: int) -> Iterator[Progress]:
    columns = (TextColumn("markets"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty()) as bar:
        bar.add_task("markets", total=total)
        yield bar


def _finish(reports: list[SeedReport], plant: str | None, as_json: bool) -> None:
    summary = summarise(reports)
    good = bool(summary.violations) == (plant is not None)
    if as_json:
        click.echo(json.dumps({"planted_bug": plant, "ok": good, **asdict(summary)}, indent=2))
    else:
        _print(summary, plant)
    sys.exit(0 if good else 1)


def _print(summary: SwarmSummary, plant: str | None) -> None:
    outcomes = ", ".join(f"{count} {status}" for status, count in sorted(summary.outcomes.items()))
    click.echo(f"{summary.seeds} markets: requests {outcomes or 'none'}")
    click.echo(f"{summary.messages} messages, {summary.lost} lost, {summary.crashes} crashes")
    click.echo(
        f"{summary.late_answers} late answers of machines and price strategies, {summary.in_doubt} calls in doubt, "
        f"{summary.unheard} answers after a crash"
    )
    planted = f" --plant {plant}" if plant else ""
    for report in summary.violations[:SHOWN_MAX]:
        click.echo(f"seed {report.seed}: {report.checker}: {report.violation}")
        click.echo(f"  again: ramp swarm --replay {report.seed}{planted}")
    if len(summary.violations) > SHOWN_MAX:
        click.echo(f"... and {len(summary.violations) - SHOWN_MAX} more")
    if plant:
        caught = len(summary.violations)
        click.echo(f"planted bug {plant}: {f'caught in {caught} markets' if caught else 'NOT caught'}")
    else:
        click.echo("no invariant broken" if not summary.violations else f"BROKEN in {len(summary.violations)} markets")
