"""The markets of the swarm with liars and planted bugs in them."""

from collections.abc import Callable
from contextlib import nullcontext

from simulation.market.faults.plan import FaultPlan
from simulation.market.observing import Observer
from simulation.market.seed_reports import SeedReport
from simulation.market.world import START
from simulation.swarm import SeedMarket, run_seed
from tests.swarm.drawn_liars import with_liars
from tests.swarm.planted_bugs import PLANTED_BUGS
from tests.swarm.transcript import Transcript


def run(
    seed: int,
    planted_bug: str | None = None,
    *,
    faults: FaultPlan | None = None,
    observer: Observer | None = None,
    wired: bool = False,
    ruled: bool = True,
    resized: bool | None = None,
    alter: Callable[[SeedMarket], SeedMarket] = lambda drawn: drawn,
) -> SeedReport:
    """Run the market of one seed as `run_seed` does, with the liars that the seed draws and one of `PLANTED_BUGS`.

    `alter` changes the market after its liars have been drawn.
    """
    with PLANTED_BUGS[planted_bug].context() if planted_bug is not None else nullcontext():
        return run_seed(
            seed,
            faults=faults,
            observer=observer,
            wired=wired,
            ruled=ruled,
            resized=resized,
            alter=lambda drawn: alter(with_liars(drawn, ruled=ruled)),
        )


def replay(seed: int, planted_bug: str | None = None) -> tuple[SeedReport, list[str]]:
    """Run the market of one seed again; returns the report, and the lines of its transcript."""
    transcript = Transcript(START)
    report = run(seed, planted_bug, observer=transcript)
    return report, transcript.lines
