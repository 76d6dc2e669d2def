"""PWA by itself: a machine's own queue has cores taken back, so many as its first job lacks, of who started last.

The machine has 64 cores and runs a job of 16. Alice buys 24, of which 8 stay, bob 20, of which 10 stay; he begins
later. So 4 are free, and 26 can be taken. At second 1507 a job of 20 cores comes into the queue: it lacks 16. Bob,
who started last, gives the 10 that he can, and alice 6.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.request import ReclaimTerms, RequestForQuotation, RequestUnit, TotalCores
from ramp.model.slot import StaticTerms
from ramp.plugins.interface import PluginSettings
from ramp.protocol import events as ev
from ramp.protocol.progress import Progress, ReclamationAdvanced
from ramp.protocol.reclaiming.asking import Precedence
from ramp.protocol.resource.reclaiming.policy import ReclaimPolicy
from ramp.protocol.resource.reclaiming.waiting import LOOK_EVERY
from ramp.protocol.resource.seller import PriceRange
from simulation.market.specs import ResourceSpec, UserSpec
from simulation.market.swarm import new_checkers
from simulation.market.world import START, World
from simulation.resource import fake_qstat

RUNS = "1 1000 0 40000 16 -1 -1 16 50000 -1 1 -1 -1 -1 -1 -1 -1 -1\n"
WAITS = "2 2507 9000 600 {cores} -1 -1 {cores} 900 -1 1 -1 -1 -1 -1 -1 -1 -1\n"
COMES = START + 1507 * SECOND


class Market:
    """Two buyers with slots on one machine, whose queue is a log."""

    def __init__(self, folder: Path, log: str, precedence: Precedence) -> None:
        path = folder / "queue.swf"
        path.write_text(log)
        self.machine = fake_qstat.open_plugin(PluginSettings("res", 64, 1, START, {"log": str(path)}))
        seller = ResourceSpec(
            "res", self.machine, StaticTerms(64), PriceRange(60, 60), reclaiming=ReclaimPolicy(precedence)
        )
        self.advanced: list[tuple[int, ReclamationAdvanced]] = []
        self.checkers = new_checkers()
        buyers = [UserSpec("alice", 10**7), UserSpec("bob", 10**7)]
        self.world = World([seller], buyers, seed=0, checkers=self.checkers, listen=self._listen)
        self.world.run(limit=SECOND)
        for number, (name, cores, least) in enumerate((("alice", 24, 8), ("bob", 20, 10))):
            begins = START + (10 + number) * MINUTE
            right = ReclaimTerms(least, MINUTE, 30)
            unit = RequestUnit(1, 70, begins + 3 * HOUR, TotalCores(cores), begins, 3 * HOUR, reclaim=right)
            wanted = ev.RequestSubmitted(f"r-{name}", RequestForQuotation((unit,)), ev.AuctionOptions(rounds=1))
            self.world.command(name, wanted)
        self.world.run(limit=10 * SECOND)

    def _listen(self, party: str, progress: Progress, now: int) -> None:
        if party == "res" and isinstance(progress, ReclamationAdvanced):
            self.advanced.append((now, progress))

    def until(self, instant: int) -> list[tuple[str, str, int]]:
        """What has become of what was taken until then: stage, from whom, and the cores that stay."""
        self.world.run(limit=instant - self.world.now)
        self.world.finish(at_rest=False)
        return [(told.stage, told.reclamation.user, told.reclamation.cores) for _, told in self.advanced]

    @property
    def sizes(self) -> list[int]:
        return [each.slot.cores for each in self.machine.reservations(self.world.now)]


def test_the_queue_takes_what_its_first_job_lacks_of_who_started_last(tmp_path: Path) -> None:
    market = Market(tmp_path, RUNS + WAITS.format(cores=20), Precedence.WAITING)
    assert market.until(COMES - 1) == []
    assert market.sizes == [24, 20]
    assert market.until(COMES + LOOK_EVERY + SECOND) == [("noticed", "bob", 10), ("noticed", "alice", 18)]
    assert market.sizes == [24, 20]  # while the notice runs
    done = [("posted", "bob", 10), ("posted", "alice", 18)]
    assert market.until(COMES + LOOK_EVERY + 66 * SECOND)[2:] == done
    assert market.sizes == [18, 10]
    drawn = {told.reclamation.issued_at for _, told in market.advanced}
    assert len(drawn) == 1
    assert COMES <= drawn.pop() <= COMES + LOOK_EVERY
    assert market.until(COMES + 2 * HOUR)[2:] == done  # it lacks nothing any more, and waits on in the log


def test_a_job_that_fits_takes_nothing(tmp_path: Path) -> None:
    market = Market(tmp_path, RUNS + WAITS.format(cores=4), Precedence.WAITING)
    assert market.until(COMES + HOUR) == []


def test_nothing_is_taken_when_nobody_waits(tmp_path: Path) -> None:
    market = Market(tmp_path, RUNS, Precedence.WAITING)
    assert market.until(COMES + HOUR) == []
    assert market.sizes == [24, 20]


@pytest.mark.parametrize(("cores", "taken"), [(30, 2), (31, 0)])
def test_nothing_is_taken_where_all_is_not_enough(tmp_path: Path, cores: int, taken: int) -> None:
    market = Market(tmp_path, RUNS + WAITS.format(cores=cores), Precedence.WAITING)
    assert len([stage for stage, *_ in market.until(COMES + HOUR) if stage == "posted"]) == taken
    assert market.sizes == ([8, 10] if taken else [24, 20])


def test_who_gives_precedence_to_what_runs_takes_nothing(tmp_path: Path) -> None:
    market = Market(tmp_path, RUNS + WAITS.format(cores=20), Precedence.RUNNING)
    assert market.until(COMES + HOUR) == []
