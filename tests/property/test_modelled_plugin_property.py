"""Histories of the plug-in `modelled`, clock, book and restarts: what is held or sold stands, and nothing else does.

Holds run out, clocks run faster than the wall, jobs outrun their requests, and the machine restarts in the middle,
under every scheduler.
"""

import tempfile
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from ramp.model.instant import DAY, HOUR, MINUTE, SECOND, Duration, Instant, from_iso
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import RequestUnit, TorusTerms, TotalCores
from ramp.model.slot import Reservation, Slot
from ramp.plugins.interface import PluginSettings
from simulation.queueing.queue_simulation import EndedJob, EndReason
from simulation.resource.modelled import ModelledMachine
from simulation.resource.placement_text import read_token
from simulation.schedulers.declaration import SCHEDULERS
from simulation.schedulers.planner import placements_conflict

pytestmark = pytest.mark.loops

OPENING = from_iso("2026-11-21T08:00:00Z")
CORES = {"bgl-half": 64 * 1024, "angara-4x4x2": 32 * 16}

OPTIONS = st.fixed_dictionaries(
    {
        "machine": st.sampled_from(sorted(CORES)),
        "load": st.sampled_from((0.3, 0.8)),
        "malleable_share": st.sampled_from((0.0, 0.5)),
        "fat": st.just(0.5),
        "torus": st.just(0.5),
        "overrun": st.sampled_from(("cut", "keep")),
        "scheduler": st.sampled_from(SCHEDULERS.names()),
        "base_time_s": st.sampled_from((0, 43_200)),
        "speed": st.sampled_from((1, 1.7, 60)),
        "load_of": st.sampled_from(("cores", "cores-and-links")),
    }
)
PAUSES = st.sampled_from((0, 1, SECOND, 5 * MINUTE, 20 * MINUTE))


@dataclass
class Market:
    """A machine, and what a user who notes everything knows of it."""

    options: dict[str, Any]
    folder: Path
    now: Instant = OPENING
    granted: dict[str, tuple[Slot, Instant | None]] = field(default_factory=dict)
    """Slot of every key that still stands, and when its hold runs out (None: confirmed)."""
    keys: int = 0
    steps: int = 0

    def __post_init__(self) -> None:
        self.machine = self.opened()

    def opened(self) -> ModelledMachine:
        settings = PluginSettings("m", CORES[self.options["machine"]], 2, OPENING, self.options, self.folder, seed=7)
        machine = ModelledMachine(settings)
        machine.live.on_end = self.ended
        return machine

    def ended(self, job: EndedJob) -> None:
        if job.reason is EndReason.RESERVATION_BEGAN and not job.earlier:
            assert job.end_time - job.start_time >= job.job.requested_time, "only what has outrun its request gives way"

    def wait(self, pause: Duration) -> None:
        self.now += pause
        self.machine.advance(self.now)
        for key, (slot, until) in list(self.granted.items()):
            if slot.end <= self.now or (until is not None and until <= self.now):
                del self.granted[key]

    def buy(self, unit: RequestUnit, hold_for: Duration) -> None:
        slot = self.machine.quote(unit, self.now)
        if isinstance(slot, Refusal):
            return
        assert max(self.now, unit.not_before or 0) <= slot.start < slot.end <= unit.deadline
        assert slot.cores >= unit.cores.total
        assert all(0 <= share <= 1 for share in (slot.load, slot.fragmentation, slot.links_taken))
        self.keys += 1
        until = self.now + hold_for
        held = self.machine.hold(f"key{self.keys}", unit, slot, until, self.now)
        assert isinstance(held, Reservation), f"what has just been quoted is refused: {held}"
        self.granted[f"key{self.keys}"] = (slot, until)

    def resize(self, key: str, units: int, longer: Duration) -> None:
        """Give a firm slot another size: it keeps its place as far as it can, or nothing changes."""
        slot, _ = self.granted[key]
        self.steps += 1
        cores = units * CORES[self.options["machine"]] // 32
        answer = self.machine.resize(key, self.steps, cores, slot.end + longer, self.now)
        if isinstance(answer, Refusal):
            assert answer.code is RefusalCode.SLOT_TAKEN
            return
        given = answer.slot
        assert (given.cores, given.start, given.end) == (cores, slot.start, slot.end + longer)
        before, after = (read_token(each.token, self.machine.machine) for each in (slot, given))
        assert before.nodes & after.nodes in (before.nodes, after.nodes), "one box is within the other"
        self.granted[key] = (given, None)

    def restart(self) -> None:
        before = self.state()
        self.machine = self.opened()
        assert self.state() == before

    def state(self) -> tuple[object, ...]:
        self.machine.advance(self.now)
        queue = self.machine.live.queue
        running = {number: (job.placement, job.start_time) for number, job in queue.running.items()}
        return running, [job.job_number for job in queue.waiting], self.machine.reservations(self.now)

    def check(self) -> None:
        """What stands is in the book and on the machine at once, nothing else is, and nothing is there twice."""
        live, hardware = self.machine.live, self.machine.machine
        assert {each.key for each in self.machine.reservations(self.now)} == self.granted.keys()
        assert len(live.reservations()) == len(self.granted), "a hold that has run out keeps no place"
        places = {key: read_token(slot.token, hardware) for key, (slot, _) in self.granted.items()}
        for (one, place), (other, elsewhere) in combinations(places.items(), 2):
            first, second = self.granted[one][0], self.granted[other][0]
            if first.start < second.end and second.start < first.end:
                assert not placements_conflict(place, elsewhere), (first, second)
        begun = {key for key, (slot, _) in self.granted.items() if slot.start <= self.now}
        on_machine = [placement.nodes for number, placement in hardware.running.items() if number < 0]
        for key in begun:
            assert places[key].nodes in on_machine, f"{key} has begun, but does not have its place"
            for job in live.queue.running.values():
                assert not placements_conflict(job.placement, places[key])


def wanted(draw: Any, market: Market) -> RequestUnit:
    wall = draw(st.sampled_from((1, MINUTE, 20 * MINUTE, 3 * HOUR)))
    not_before = draw(st.sampled_from((None, market.now + 7, market.now + HOUR)))
    slack = draw(st.sampled_from((0, HOUR, 3 * DAY)))
    cores = draw(st.sampled_from((1, 2, 5, 16, 32))) * CORES[market.options["machine"]] // 32
    terms = draw(st.sampled_from((None, TorusTerms(connection="torus"))))
    deadline = (not_before or market.now) + wall + slack
    return RequestUnit(1, 70, deadline, TotalCores(cores), not_before, wall, torus=terms)


@given(data=st.data(), options=OPTIONS)
@settings(max_examples=examples(25))
def test_what_is_held_or_sold_stands_for_its_time_and_no_longer(data: st.DataObject, options: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        market = Market(options, Path(folder))
        for _ in range(data.draw(st.integers(1, 20))):
            market.wait(data.draw(PAUSES))
            steps = ("buy", "buy", "buy", "confirm", "confirm", "resize", "resize", "release", "restart")
            step = data.draw(st.sampled_from(steps))
            if step == "buy":
                market.buy(wanted(data.draw, market), data.draw(st.sampled_from((1, MINUTE, 5 * HOUR))))
            elif step == "restart":
                market.restart()
            elif market.granted:
                key = data.draw(st.sampled_from(sorted(market.granted)))
                if step == "confirm":
                    answer = market.machine.confirm(key, market.now)
                    assert isinstance(answer, Reservation)
                    assert answer.firm
                    market.granted[key] = (market.granted[key][0], None)
                elif step == "resize":
                    if market.granted[key][1] is None:
                        longer = data.draw(st.sampled_from((0, 0, -1, 20 * MINUTE)))
                        market.resize(key, data.draw(st.sampled_from((1, 2, 3, 4, 6, 8, 12, 16, 24, 32))), longer)
                else:
                    market.machine.release(key, market.now)
                    del market.granted[key]
                    assert isinstance(market.machine.confirm(key, market.now), Refusal)
            market.check()
