"""Markets of `ramp swarm` with liars among users and resources; with a planted bug if wanted.

    python -m tests.swarm --seeds 5000
    python -m tests.swarm --seeds 50 --plant double_debit      shows which seeds see the bug, and by which checker
    python -m tests.swarm --replay 17                          a transcript of one market

Exit status 0: no invariant broken; 1: an invariant is broken, as it should be where a bug is planted.
"""

from functools import partial

import click

from simulation.cli.swarm import finish, run_seeds
from simulation.experiments.worker_processes import ending_on_sigterm
from tests.swarm.markets import replay, run
from tests.swarm.planted_bugs import PLANTED_BUGS


@click.command(help=__doc__)
@click.option("--seeds", default=200, show_default=True, type=click.IntRange(min=1), help="Number of markets to run.")
@click.option("--first", default=0, show_default=True, type=click.IntRange(min=0), metavar="SEED", help="First seed.")
@click.option("--plant", type=click.Choice(sorted(PLANTED_BUGS)), help="Bug to plant.")
@click.option("--workers", type=click.IntRange(min=1), help="Number of processes; default: one for each core.")
@click.option("--replay", "again", type=click.IntRange(min=0), metavar="SEED", help="Print one market's transcript.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def main(seeds: int, first: int, plant: str | None, workers: int | None, again: int | None, as_json: bool) -> None:
    if again is not None:
        report, lines = replay(again, plant)
        for line in () if as_json else lines:
            click.echo(line)
        reports = [report]
    else:
        with ending_on_sigterm():
            reports = run_seeds(range(first, first + seeds), partial(run, planted_bug=plant), workers)
    planted = f" --plant {plant}" if plant else ""
    finish(reports, as_json, f"python -m tests.swarm --replay {{seed}}{planted}")


if __name__ == "__main__":
    main()
