"""Machines that need time to answer: all are asked at once, and nobody waits for another's answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from guest_package import MoodyPackage
from swarm_market import Machine, in_hours, own_id, unit, until

pytestmark = [pytest.mark.e2e, pytest.mark.full]

GUESTS = {"environment": ["MOODY_MOODS"], "quote_s": 600}
"""A machine may think for as long as a test lets it."""


def waiting(moody: MoodyPackage) -> set[str]:
    """Resources whose machine has been asked for a quote that it does not give yet."""
    return {words[1] for words in moody.notes() if words[0] == "waits"}


def test_twenty_machines_are_asked_at_once(new_market: Any, moody: MoodyPackage, tmp_path: Path) -> None:
    """None of them answers before all have been asked: one after another they would not get there."""
    machines = [Machine(f"moody{number:02}", 64, 20 + number, plugin="moody") for number in range(20)]
    market = new_market(users={"alice": 1_000_000}, machines=machines, per_process=10, guests=GUESTS)
    market.up()
    market.wait_ready()
    gate = tmp_path / "open"
    moody.be(quote=f"gate {gate}")
    with market.submitted("alice", own_id("twenty"), [unit(1, 8, in_hours(1))], quote_only=True) as events:
        until(lambda: len(waiting(moody)) == 20, lambda: f"all have been asked: {sorted(waiting(moody))}")
        gate.touch()
        *_, last = events
    assert len(last["outcome"]["rounds"][0]["offers"]) == 20


def test_one_slow_machine_delays_nobody_elses_answer(new_market: Any, moody: MoodyPackage, tmp_path: Path) -> None:
    """All are in one process; the slow one does not answer before all others have."""
    machines = [Machine("moody1", 64, 20, plugin="moody"), Machine("moody2", 64, 21, plugin="moody")]
    machines += [Machine(f"good{number}", 64, 30 + number) for number in range(4)]
    market = new_market(armed=True, users={"alice": 1_000_000}, machines=machines, per_process=6, guests=GUESTS)
    market.up()
    market.wait_ready()
    gate = tmp_path / "open"
    moody.be_at({"moody1.quote": f"gate {gate}"})
    request_id = own_id("slow")

    def has_bid(name: str) -> bool:
        return "alice propose Proposal" in market.steps(name, {request_id})

    with market.submitted("alice", request_id, [unit(1, 8, in_hours(1))], quote_only=True) as events:
        others = [machine.name for machine in machines if machine.name != "moody1"]
        until(lambda: all(map(has_bid, others)), lambda: f"the others bid: {list(map(has_bid, others))}")
        assert not has_bid("moody1")
        gate.touch()
        closed = next(event for event in events if event["event"] == "round_closed")
        *_, _ = events
    assert [name.partition("@")[0] for name, _ in closed["answered"]][-1] == "moody1"
