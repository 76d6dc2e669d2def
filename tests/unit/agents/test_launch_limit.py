"""A launch is given up when no agent comes up for its limit, not when all of them take longer than that together."""

import asyncio

import pytest

from ramp.agents.supervisor import Supervisor
from ramp.errors import TransportError


@pytest.fixture
def supervisor(small_market):
    return Supervisor(*small_market)


def passing_limits(monkeypatch, happening):
    """Every wait passes its whole limit at once, in which something happens; how many were waited."""
    waited = []

    async def wait_for(awaited, limit_s):
        awaited.close()
        waited.append(limit_s)
        happening()
        raise TimeoutError

    monkeypatch.setattr(asyncio, "wait_for", wait_for)
    return waited


async def test_it_goes_on_while_agents_come_up_one_by_one(supervisor, monkeypatch):
    missing = list(supervisor.agents)
    assert len(missing) == 5  # bank, directory, keeper, alice, m1

    waited = passing_limits(monkeypatch, lambda: supervisor._mark(missing.pop(), "ready", "", is_up=True))
    await supervisor._wait_ready()
    assert len(waited) == 5


async def test_it_ends_when_nobody_more_comes(supervisor, monkeypatch):
    coming = ["bank", "directory"]

    def one_of_two():
        if coming:
            supervisor._mark(coming.pop(), "ready", "", is_up=True)

    waited = passing_limits(monkeypatch, one_of_two)
    with pytest.raises(TransportError, match=r"not ready within 300 s: .*alice"):
        await supervisor._wait_ready()
    assert len(waited) == 3


async def test_agents_that_come_and_go_do_not_keep_it_waiting(supervisor, monkeypatch):
    def come_or_go():
        there = supervisor.agents["bank"].is_up
        supervisor._mark("bank", "failed" if there else "ready", "", is_up=not there)

    waited = passing_limits(monkeypatch, come_or_go)
    with pytest.raises(TransportError, match="not ready within 300 s"):
        await supervisor._wait_ready()
    assert len(waited) == 2
