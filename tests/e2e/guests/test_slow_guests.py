"""Machines that need time to answer: twenty of them take a round no longer than one, and nobody waits for another's."""

from __future__ import annotations

import statistics
from typing import Any

import pytest
from guest_package import MoodyPackage
from swarm_market import Machine, Market, in_hours, unit

pytestmark = [pytest.mark.e2e, pytest.mark.alone]

RESOURCES = 20
ANSWER_S = 0.2


def rounds(market: Market, request_id: str, hours: int) -> list[dict[str, Any]]:
    """Every round of an auction as its user's agent tells of it when it closes."""
    events = market.submit("alice", request_id, [unit(1, 8, in_hours(hours))], rounds=3, quote_only=True)
    return [event for event in events if event["event"] == "round_closed"]


def longest_s(market: Market, request_id: str, hours: int) -> float:
    return max(each["record"]["duration"] for each in rounds(market, request_id, hours)) / 1e6


def test_twenty_machines_that_take_a_fifth_of_a_second(
    new_market: Any, moody: MoodyPackage, capsys: pytest.CaptureFixture[str]
) -> None:
    """One after another their answers would take four seconds a round."""
    machines = [Machine(f"moody{number:02}", 64, 20 + number, plugin="moody") for number in range(RESOURCES)]
    guests = {"environment": ["MOODY_MOODS"]}
    market = new_market(users={"alice": 1_000_000}, machines=machines, per_process=10, guests=guests)
    market.up()
    market.wait_ready()
    quick = [longest_s(market, f"quick-{number}", 1 + number) for number in range(5)]
    moody.be(quote=f"slow {ANSWER_S}")
    slow = [longest_s(market, f"slow-{number}", 11 + number) for number in range(5)]
    with capsys.disabled():
        print(
            f"\nlongest round, s: quick {[round(each, 3) for each in quick]}, slow {[round(each, 3) for each in slow]}"
        )
    assert min(slow) >= ANSWER_S
    assert statistics.median(slow) - statistics.median(quick) < RESOURCES * ANSWER_S / 4


def test_one_slow_machine_delays_nobody_elses_answer(new_market: Any, moody: MoodyPackage) -> None:
    """All are in one process; the slow one is the last to answer, long after all others."""
    machines = [Machine("moody1", 64, 20, plugin="moody"), Machine("moody2", 64, 21, plugin="moody")]
    machines += [Machine(f"good{number}", 64, 30 + number) for number in range(4)]
    guests = {"environment": ["MOODY_MOODS"]}
    market = new_market(users={"alice": 1_000_000}, machines=machines, per_process=6, guests=guests)
    market.up()
    market.wait_ready()
    moody.be_at({"moody1.quote": "slow 3"})
    closed = rounds(market, "first", 1)[0]  # in the later ones who cannot bid so low is not called
    times = {name.partition("@")[0]: after / 1e6 for name, after in closed["answered"]}
    assert len(times) == len(machines)
    slow = times.pop("moody1")
    assert slow >= 3
    assert max(times.values()) < slow / 2, times
