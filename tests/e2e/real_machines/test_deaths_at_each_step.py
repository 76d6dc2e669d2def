"""kill -9 of each agent and of each system's daemons, at each step of a purchase of two units across both systems.

What is judged at the end of each is said by the real systems' own lists, by the bank's ledger and by the agreements: no
reservation that nobody has paid for, no paid slot without its reservation, and each its buyer's.
"""

import pytest

from tests.e2e.real_machines.deaths import CELLS, World

pytestmark = [pytest.mark.e2e, pytest.mark.full, pytest.mark.timeout(900)]


@pytest.fixture
def world(market, gridengine, slurm, books, hours):
    return World(market, gridengine, slurm, books, hours)


@pytest.mark.parametrize(("step", "who"), CELLS, ids=[f"{step}-{who}".replace(" ", "-") for step, who in CELLS])
def test_what_is_paid_is_reserved_and_nothing_else(world, step, who, request, record_property, tmp_path):
    slots = request.getfixturevalue("slots") if step == "launch" else None
    outcome, seconds = world.dies_at(step, who, slots, tmp_path)
    record_property("outcome", outcome)
    record_property("seconds", f"{seconds:.1f}")
