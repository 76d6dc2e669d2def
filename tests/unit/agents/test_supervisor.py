"""The supervisor of a market: a launch that takes long, a process that ends when it is asked, a key that is revoked."""

import asyncio
import contextlib
import sys
from dataclasses import replace
from unittest.mock import Mock

import pytest

from ramp.agents import group
from ramp.agents.group import Group
from ramp.agents.group_calls import GroupCall
from ramp.agents.supervisor import Supervisor
from ramp.control.status import Health, headline
from ramp.errors import ConfigurationError, TransportError
from ramp.model.instant import HOUR, from_iso
from ramp.model.seal import Role
from ramp.runtime.keys.store import KeyStore
from tests.waiting import soon

NOW = from_iso("2026-11-21T08:00:00Z")
ENDS_WHEN_ASKED = "import sys; print(flush=True); sys.stdin.readline(); sys.exit(3)"


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


async def test_whoever_asks_is_told_at_once(supervisor, monkeypatch):
    monkeypatch.setattr("ramp.agents.supervisor.GROUP_COMMAND", (sys.executable, "-c", ENDS_WHEN_ASKED))
    (group,) = [group for group in supervisor._groups if "m1" in group.agents]
    kept_alive = asyncio.create_task(supervisor._keep_alive(group))
    while group.process is None:
        await asyncio.sleep(0)
    with pytest.raises(TransportError, match="has ended with status 3"):
        await supervisor.call(GroupCall("standing", "m1"))
    kept_alive.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await kept_alive
    if group.process.returncode is None:
        group.process.kill()
        await group.process.wait()


@pytest.fixture
def market(small_market, supervisor):
    """A supervisor that has not started anything; its agents count as up."""
    for name, agent in supervisor.agents.items():
        supervisor.agents[name] = replace(agent, state="ready", detail="live", is_up=True)
    config, state = small_market
    keys = KeyStore(state.keys)
    keys.create_ca(NOW)
    keys.issue(config.address("m1"), Role.RESOURCE, NOW)
    return supervisor, keys, config.address("m1")


def test_an_agent_whose_key_is_revoked_is_shown_as_broken_until_it_has_a_new_one(market):
    supervisor, keys, address = market
    supervisor._on_event = Mock()
    supervisor._look_at_keys()
    supervisor._state_shown = "up"
    assert headline(supervisor._status()).health is Health.UP
    keys.revoke(address, NOW + HOUR)
    for _ in range(2):
        supervisor._look_at_keys()
    shown = supervisor._status()
    found = shown.agent("m1")
    assert (found.state, found.is_up) == ("broken", False)
    assert found.detail == "its certificate is revoked; `ramp keys renew m1 --new-key` lets it back"
    assert headline(shown).health is Health.DEGRADED
    own = replace(found, detail="did not pay its bill")
    assert supervisor._keys.shown(own) == own, "its process has said why"
    keys.renew(address, NOW + HOUR, new_key=True)
    supervisor._look_at_keys()
    assert supervisor._status().agent("m1").state == "ready"
    assert [call.args[0]["event"] for call in supervisor._on_event.call_args_list] == ["broken", "ready"]


@pytest.mark.parametrize("then", ["ready", "failed"])
async def test_an_agent_that_starts_again_is_waited_for_until_it_has_failed_twice(supervisor, then):
    for state in ("failed", "failed", "starting"):  # earlier failures do not count
        supervisor._mark("m1", state, "")
    waiting = asyncio.create_task(supervisor.settled("m1"))
    await asyncio.sleep(0)
    for state in ("failed", "starting", then):
        assert not waiting.done()
        supervisor._mark("m1", state, "")
        await asyncio.sleep(0)
    assert (await waiting).state == then


async def test_the_account_of_a_removed_agent_is_closed(supervisor):
    supervisor._server = Mock()
    supervisor._group_of("m1").task = asyncio.create_task(asyncio.sleep(0))
    await supervisor.end("m1")
    supervisor._server.ensure_accounts.assert_called_once_with({"m1": None})


def test_an_event_fits_into_what_the_supervisor_reads_at_once(capfd):
    group._emit("m1", "failed", 100_000 * "\0")
    assert len(capfd.readouterr().out) < 2**16


async def test_an_agent_that_can_never_be_built_ends_its_process_only_at_a_launch(capfd):
    building = Mock(bank_lease=lambda _: None, build=Mock(side_effect=ConfigurationError("m1 has no queue")))
    with pytest.raises(ExceptionGroup):
        await Group(building, ["m1"], launch=True).run()
    agents = Group(building, ["m1"], launch=False)
    running = asyncio.create_task(agents.run())
    await soon(lambda: "has no queue" in capfd.readouterr().out)
    agents.stop()
    await running
