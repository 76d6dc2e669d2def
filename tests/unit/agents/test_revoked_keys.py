"""A market that shows an agent as broken as soon as its certificate is revoked, and as before once it has a new one."""

from dataclasses import replace

import pytest

from ramp.agents.supervisor import Supervisor
from ramp.control.status import Health, headline
from ramp.model.instant import HOUR, from_iso
from ramp.model.seal import Role
from ramp.runtime.keys.store import KeyStore

NOW = from_iso("2026-11-21T08:00:00Z")


@pytest.fixture
def market(small_market):
    """A supervisor that has not started anything; its agents count as up."""
    supervisor = Supervisor(*small_market)
    for name, agent in supervisor.agents.items():
        supervisor.agents[name] = replace(agent, state="ready", detail="live", is_up=True)
    config, state = small_market
    keys = KeyStore(state.keys)
    keys.create_ca(NOW)
    keys.issue(config.address("m1"), Role.RESOURCE, NOW)
    return supervisor, keys, config.address("m1")


def test_an_agent_whose_key_is_revoked_is_shown_as_broken_until_it_has_a_new_one(market):
    supervisor, keys, address = market
    supervisor._look_at_keys()
    supervisor._state_shown = "up"
    assert headline(supervisor._status()).health is Health.UP
    keys.revoke(address, NOW + HOUR)
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


def test_both_changes_are_events(market):
    supervisor, keys, address = market
    told = []
    supervisor._on_event = told.append
    supervisor._look_at_keys()
    keys.revoke(address, NOW + HOUR)
    for _ in range(2):
        supervisor._look_at_keys()
    keys.renew(address, NOW + HOUR, new_key=True)
    supervisor._look_at_keys()
    assert [(each["agent"], each["event"]) for each in told] == [("m1", "broken"), ("m1", "ready")]
