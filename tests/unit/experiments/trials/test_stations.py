"""The queues in front of processes: first gaps, link delays, and who waits for whom."""

from random import Random

import pytest

from ramp.model.instant import MILLISECOND, MINUTE, SECOND
from ramp.protocol.events import AuctionOptions
from simulation.experiments.trials.plan import Links, MarketPlan, Submission, UnitWish, table2_resources
from simulation.experiments.trials.simulated import Stations, link_delay, run_simulated


class Clock:
    """What a station needs of a world."""

    now = 0


def stations() -> Stations:
    plan = MarketPlan("none", table2_resources()[:1], 1, ())
    made = Stations(plan)
    made.attach(Clock())  # type: ignore[arg-type]
    return made


def test_the_first_gap_is_taken() -> None:
    made = stations()
    assert made._serve("s", 100, 10) == 110
    assert made._serve("s", 0, 50) == 50  # before it
    assert made._serve("s", 0, 50) == 100  # between
    assert made._serve("s", 0, 5) == 115  # no gap is left before 110
    assert made._booked["s"] == [(0, 115)]


def test_bookings_never_overlap_and_start_as_early_as_they_can() -> None:
    """Against a search over every microsecond."""
    random = Random(5)
    made, taken = stations(), set()
    for _ in range(200):
        arrival, work = random.randrange(400), random.randrange(1, 9)
        end = made._serve("s", arrival, work)
        start = next(t for t in range(arrival, 5_000) if not any(t + i in taken for i in range(work)))
        assert end == start + work
        taken.update(range(start, end))
    assert made.busy_s()["s"] == len(taken) / SECOND


def test_what_is_over_is_forgotten() -> None:
    made = stations()
    made._serve("s", 0, 10)
    made._world.now = 20  # type: ignore[union-attr]
    made._serve("s", 30, 10)
    assert made._booked["s"] == [(30, 40)]


def test_a_lost_packet_costs_a_retransmission() -> None:
    """Expected delay: latency + jitter + loss / (1 - loss) retransmissions."""
    links = Links({"a": "far"}, {"far": 10_000}, jitter=2_000, loss=0.2, retransmission=100_000)
    random = Random(1)
    mean = sum(link_delay(links, "a", random) for _ in range(40_000)) / 40_000
    assert mean == pytest.approx(10_000 + 2_000 + 0.25 * 100_000, rel=0.03)
    assert link_delay(links, "somebody else", random) == 0


def plan(users: int, links: Links | None = None) -> MarketPlan:
    wish, options = UnitWish(70, 16, 5 * MINUTE), AuctionOptions(rounds=1, quote_only=True, round_time=5 * MINUTE)
    submissions = tuple(Submission(f"r{n}", f"user{n}", SECOND, (wish,), options) for n in range(1, users + 1))
    resources = tuple(each for each in table2_resources() if each.name.startswith("atlas"))
    return MarketPlan("queue", resources, users, submissions, links=links)


def mean_round(market_plan: MarketPlan) -> float:
    durations = [duration for each in run_simulated(market_plan).auctions for duration in each.round_durations]
    return sum(durations) / len(durations)


def test_more_users_wait_longer() -> None:
    one, ten = mean_round(plan(1)), mean_round(plan(10))
    assert ten > 4 * one


def test_a_far_resource_delays_the_round_by_its_round_trip() -> None:
    far = Links({"atlas2": "far"}, {"far": 25 * MILLISECOND})
    extra = mean_round(plan(1, far)) - mean_round(plan(1))
    assert 49 * MILLISECOND <= extra <= 51 * MILLISECOND


def test_heartbeats_do_not_hold_a_purchase_up() -> None:
    """In virtual time all resources send theirs at the same instants, every five seconds."""
    resources = tuple(each for each in table2_resources() if each.name.startswith("atlas"))
    wish, options = UnitWish(70, 16, 5 * MINUTE), AuctionOptions(rounds=1, quote_only=True)
    submissions = tuple(Submission(f"at-{s}", "user1", s * SECOND, (wish,), options) for s in range(1, 12))
    results = run_simulated(MarketPlan("beat", resources, 1, submissions)).auctions
    assert len({each.outcome.duration for each in results}) == 1
