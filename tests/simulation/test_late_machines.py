"""Machines that need time: rounds grow by no more than their answers take, and one slow machine delays nobody else."""

from dataclasses import replace

import pytest

from ramp.model.instant import MILLISECOND, MINUTE, SECOND, Duration
from ramp.protocol.outcome import RequestStatus
from ramp.protocol.progress import Progress, RequestEnded, RoundClosed
from simulation.market.faults.late_guests import GuestFaults
from simulation.market.faults.plan import NO_FAULTS, FaultPlan
from simulation.market.specs import UserSpec
from simulation.market.world import World
from simulation.swarm import new_checkers
from tests.simulation.small_markets import seller, submission

SELLERS = [f"res{number:02}" for number in range(20)]


class Seen:
    """What the buyers of one market see: their rounds, and how their requests end."""

    def __init__(self) -> None:
        self.rounds: dict[tuple[str, int], RoundClosed] = {}
        self.ended: dict[str, RequestEnded] = {}

    def listen(self, _: str, progress: Progress, __: int) -> None:
        if isinstance(progress, RoundClosed):
            self.rounds[progress.request_id, progress.record.round_number] = progress
        elif isinstance(progress, RequestEnded):
            self.ended[progress.outcome.request_id] = progress

    def answered(self) -> dict[tuple[str, int, str], Duration]:
        """How long after the calls each seller's answer came, in every round."""
        return {(*key, name): after for key, closed in self.rounds.items() for name, after in closed.answered}


def market(plan: FaultPlan, buyers: int, units: int) -> Seen:
    """Twenty sellers, and buyers who ask for several units at the same instant."""
    seen = Seen()
    world = World(
        [seller(name, 512, 0.02 * rank, (40 + rank, 20 + rank)) for rank, name in enumerate(SELLERS)],
        [UserSpec(f"user{number}", 10**9) for number in range(buyers)],
        seed=1,
        faults=plan,
        checkers=new_checkers(),
        listen=seen.listen,
    )
    world.run(limit=SECOND)
    for number in range(buyers):
        world.command(f"user{number}", submission(f"r{number}", units, rounds=3))
    world.run(until=lambda: len(seen.ended) == buyers, limit=10 * MINUTE)
    world.run(limit=10 * MINUTE)
    world.finish()
    return seen


def taking(by: Duration, *names: str) -> FaultPlan:
    """Every answer of these machines takes so long, and nothing else is wrong."""
    return replace(NO_FAULTS, machines=dict.fromkeys(names, GuestFaults(takes=by)))


@pytest.mark.parametrize(
    ("buyers", "units"),
    [(1, 8), *(pytest.param(*each, marks=pytest.mark.slow) for each in ((1, 1), (5, 4)))],
)
def test_twenty_machines_that_take_200_ms_lengthen_no_round_beyond_300_ms(buyers: int, units: int) -> None:
    prompt, slow = market(NO_FAULTS, buyers, units), market(taking(200 * MILLISECOND, *SELLERS), buyers, units)
    assert len(prompt.rounds) == 3 * buyers
    assert slow.rounds.keys() == prompt.rounds.keys()
    longer = [slow.rounds[key].record.duration - each.record.duration for key, each in prompt.rounds.items()]
    assert all(200 * MILLISECOND <= each <= 300 * MILLISECOND for each in longer)
    assert all(len(each.answered) == len(SELLERS) for each in slow.rounds.values())
    assert {each.outcome.status for each in slow.ended.values()} == {RequestStatus.COMMITTED}
    prices = [[offer.cpu_hour_cost for _, offer in seen.rounds["r0", 3].best] for seen in (prompt, slow)]
    assert prices[0] == prices[1]


@pytest.mark.slow
@pytest.mark.parametrize("takes", [5 * SECOND, 10 * MINUTE])
@pytest.mark.parametrize("buyers", [1, 3])
def test_one_slow_machine_delays_nobody_elses_answer(takes: Duration, buyers: int) -> None:
    slow = SELLERS[7]
    prompt, late = market(NO_FAULTS, buyers, 2), market(taking(takes, slow), buyers, 2)
    before = {key: after for key, after in prompt.answered().items() if key[2] != slow}
    after = {key: after for key, after in late.answered().items() if key[2] != slow}
    assert len(before) == 3 * buyers * (len(SELLERS) - 1)
    assert after == before
    assert {each.outcome.status for each in late.ended.values()} == {RequestStatus.COMMITTED}


@pytest.mark.slow
def test_what_a_machine_is_slow_at_delays_none_of_its_other_answers() -> None:
    """Setting a slot aside takes a minute; the same machine's quotes for others come at once."""
    faults = {name: GuestFaults(takes=MINUTE, asks_well=True) for name in SELLERS}
    prompt, slow = market(NO_FAULTS, 4, 2), market(replace(NO_FAULTS, machines=faults), 4, 2)
    assert slow.answered() == prompt.answered()
