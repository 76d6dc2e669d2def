"""Machines that need time to answer are asked at once."""

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
