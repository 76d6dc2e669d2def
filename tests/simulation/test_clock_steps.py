"""Clocks that are set in the middle of a purchase: durations last as long as before, and what was promised holds.

Where nothing dated runs out, a step must make no difference at all: the same messages at the same true times.
"""

from __future__ import annotations

from random import Random

import pytest

from ramp.model.acl import Message
from ramp.model.instant import HOUR, MILLISECOND, MINUTE, SECOND, Duration
from ramp.protocol.clock_comparison import OFFSET_MAX
from ramp.protocol.events import ClockAsked
from ramp.protocol.outcome import RequestOutcome, RequestStatus
from ramp.protocol.progress import ClockCompared, Progress, RequestEnded
from ramp.protocol.transition_tables import ParticipantState
from simulation.market.faults.plan import FaultPlan
from simulation.market.network import NetworkFaults
from simulation.market.observing import Script
from simulation.market.party_clock import ClockFault
from simulation.market.specs import UserSpec
from simulation.market.world import BANK, DIRECTORY, START, World
from simulation.swarm import new_checkers
from tests.simulation.small_markets import THREE, sellers, submission

USER = "alice"
SLOW_LINE = NetworkFaults(delay_floor=100 * MILLISECOND)
BAD_LINE = NetworkFaults(loss=0.3, duplication=0.2, delay_floor=5 * MILLISECOND, delay_mean=300 * MILLISECOND)


class Run(Script):
    """One purchase of two units on a bad line, and everything that was said.

    Attributes:
        said: true time and kind of every message, in order.
        outcome: how the request ended, or None.
    """

    def __init__(self, seed: int, clocks: dict[str, ClockFault], network: NetworkFaults = BAD_LINE) -> None:
        self.said: list[tuple[Duration, str, str, str]] = []
        self.compared: list[ClockCompared] = []
        self.outcome: RequestOutcome | None = None
        self.world = World(
            sellers(*THREE, cores=64, load=0.5, step=1),
            [UserSpec(USER, 10**9)],
            seed=seed,
            faults=FaultPlan(network, heal_after=HOUR, clocks=clocks),
            checkers=new_checkers(),
            listen=self._listen,
            script=self,
        )
        request = submission(units=2, rounds=2, round_time=5 * SECOND)
        self.world.command(USER, request, START + 20 * SECOND)

    def _listen(self, name: str, progress: Progress, now: int) -> None:
        if isinstance(progress, RequestEnded):
            self.outcome = progress.outcome
        elif isinstance(progress, ClockCompared):
            self.compared.append(progress)

    def route(self, message: Message) -> tuple[Duration, ...] | None:
        passed = self.world.now - START if hasattr(self, "world") else 0  # registrations leave while it is being built
        self.said.append((passed, message.sender, message.receiver, type(message.content).__name__))
        return None

    def end(self) -> Run:
        self.world.run(until=lambda: self.outcome is not None, limit=20 * MINUTE)
        return self


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", [USER, DIRECTORY, *THREE])
def test_a_step_makes_no_difference_where_nothing_dated_runs_out(name: str, seed: int) -> None:
    """Steps within the age that messages may have.

    A hold is dated, so a seller's clock goes forward by less; so is an order, and a user's clock goes back by less.
    """
    right = Run(seed, {}).end()
    assert right.outcome is not None
    chance = Random(f"{name}{seed}")
    for _ in range(5):
        forward = 4 * MINUTE if name not in THREE else 40 * SECOND
        back = 4 * MINUTE if name != USER else 40 * SECOND
        by = chance.choice((-back, -back // 3, -SECOND, forward // 4, forward))
        when = chance.randrange(2 * SECOND, right.said[-1][0])
        unset, stepped = (Run(seed, {name: ClockFault(steps=((when, each),))}).end() for each in (0, by))
        assert stepped.said == unset.said, (when, by)
        assert stepped.outcome is not None
        assert unset.outcome is not None
        assert (stepped.outcome.status, stepped.outcome.duration) == (unset.outcome.status, unset.outcome.duration)


@pytest.mark.parametrize("by", [-3 * HOUR, 3 * HOUR])
@pytest.mark.parametrize("name", [USER, DIRECTORY, BANK, *THREE])
def test_a_step_of_hours_silences_nobody(name: str, by: Duration) -> None:
    """Nobody takes the word of whose clock is hours off; but all go on asking, and once it is right again all ends."""
    run = Run(1, {name: ClockFault(steps=((22 * SECOND, by), (10 * MINUTE, -by)))})
    run.world.run(limit=15 * MINUTE)
    for first in range(1, 15):
        beating = {each[1] for each in run.said if first * MINUTE <= each[0] < (first + 1) * MINUTE}
        assert beating >= set(THREE)  # their heartbeats
    assert run.outcome is not None
    run.world.finish()


@pytest.mark.parametrize(("by", "restarts"), [(-3 * HOUR, False), (-4 * MINUTE, False), (0, False), (-3 * HOUR, True)])
def test_a_hold_that_nobody_lets_go_ends_after_the_time_promised(by: Duration, restarts: bool) -> None:
    """The buyer falls silent; its seller's clock is set back while it holds the slot, or has it on record only."""
    run = Run(0, {name: ClockFault(steps=((60 * SECOND, by),)) for name in THREE}, SLOW_LINE)
    run.world.run(limit=20 * SECOND + 500 * MILLISECOND)
    run.world.run(until=lambda: _held(run.world), limit=5 * SECOND)
    assert _held(run.world)
    run.world.crash(USER)
    for name in THREE if restarts else ():
        run.world.crash(name, MINUTE)
    run.world.run(limit=MINUTE * restarts + run.world.timing.hold_time + 10 * SECOND)
    assert not _held(run.world)
    assert all(not run.world.machines[name].reservations(run.world.time_of(name)) for name in THREE)


def test_a_bank_s_clock_set_forward_voids_what_is_dated_and_the_user_hears_of_it() -> None:
    run = Run(0, {BANK: ClockFault(steps=((24 * SECOND, 4 * MINUTE),))}, NetworkFaults(delay_floor=SECOND // 2)).end()
    assert run.outcome is not None
    run.world.run(limit=10 * MINUTE)
    run.world.finish()


def test_a_user_is_told_that_its_clock_is_wrong_and_that_it_is_right_again() -> None:
    run = Run(0, {USER: ClockFault(3 * SECOND, 0, ((30 * SECOND, HOUR), (60 * SECOND, -HOUR - 3 * SECOND)))})
    for number, at in enumerate((0, 40, 70)):
        run.world.run(limit=START + at * SECOND - run.world.now)
        before = len(run.compared)
        while len(run.compared) == before:
            run.world.command(USER, ClockAsked(f"clock-{number}-{run.world.now}"))
            run.world.run(limit=2 * SECOND)
    right, wrong, mended = (3 * SECOND, HOUR + 3 * SECOND, 0), (True, True, False), run.compared[-1]
    told = [run.compared[0], next(each for each in run.compared if each.offset > HOUR // 2), mended]
    for offset, is_wrong, each in zip(right, wrong, told, strict=True):
        assert abs(each.offset - offset) <= each.uncertainty
        assert each.wrong is is_wrong
    assert abs(mended.offset) < OFFSET_MAX + mended.uncertainty


@pytest.mark.parametrize("behind", [150 * SECOND, 290 * SECOND])
def test_an_order_that_is_over_when_it_comes_is_refused_with_how_far_the_clocks_are_apart(behind: Duration) -> None:
    """An order is dated two minutes ahead, by its user's clock; messages may be five minutes old."""
    run = Run(0, {USER: ClockFault(-behind)}, NetworkFaults())
    run.world.command(USER, ClockAsked("clock-1"), START + 10 * SECOND)
    run.end()
    assert run.outcome is not None
    assert run.outcome.status is RequestStatus.FAILED
    assert run.outcome.reason.startswith("the bank refuses the order: order ")
    assert f"; the clock here is {behind // SECOND}.000 s behind the bank's" in run.outcome.reason
    run.world.run(limit=10 * MINUTE)
    run.world.finish()


def test_what_a_user_submits_by_a_clock_an_hour_off_is_refused_with_words() -> None:
    run = Run(0, {USER: ClockFault(-HOUR)}, NetworkFaults())
    run.world.command(USER, ClockAsked("clock-1"), START + 10 * SECOND)
    run.end()
    assert run.outcome is not None
    assert run.outcome.status is RequestStatus.FAILED
    assert "the clock here is 3600.000 s behind the bank's" in run.outcome.reason
    assert {kind for _, sender, _, kind in run.said if sender == USER} == {"ClockQuery"}


def _held(world: World) -> bool:
    return any(
        each.state is ParticipantState.HELD
        for party in world.honest_resources.values()
        for each in party.participants.values()
    )
