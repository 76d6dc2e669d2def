"""One word and one sentence about a market, and they are true."""

from dataclasses import replace

import pytest

from ramp.control.status import AgentStatus, Health, ServerStatus, SwarmStatus, headline

SERVER = ServerStatus("external", "192.0.2.1", 5222, None)
WELL = AgentStatus("alice", "user", 2, "ready", "", 0, "", is_up=True)
FOUND = SwarmStatus("up", "2026-12-01T10:00:00Z", 1, "swarm.toml", SERVER, (WELL,))


def agent(name: str, state: str, detail: str = "", *, is_up: bool = False) -> AgentStatus:
    return replace(WELL, name=name, role="resource", state=state, detail=detail, is_up=is_up)


def test_up_is_said_only_where_everybody_is() -> None:
    assert headline(FOUND).health is Health.UP
    assert headline(FOUND).sentence == "The market is up"
    found = headline(replace(FOUND, agents=(WELL, agent("curie1", "starting"))))
    assert (found.health, found.why) == (Health.DEGRADED, "curie1 (resource) is starting")


@pytest.mark.parametrize("state", ["failed", "degraded", "broken"])
@pytest.mark.parametrize("published", ["starting", "up"])
def test_who_is_not_well_is_named_with_the_reason(state: str, published: str) -> None:
    agents = (WELL, agent("curie1", state, "no space left", is_up=state == "degraded"))
    found = headline(replace(FOUND, state=published, agents=agents))
    assert found.sentence == f"The market is degraded: curie1 (resource) is {state}: no space left"


def test_of_many_the_first_are_named() -> None:
    many = tuple(agent(f"curie{number}", "failed") for number in range(9))
    assert headline(replace(FOUND, agents=many)).why.endswith("curie2 (resource) is failed: ; and 6 more")


def test_a_market_that_comes_up_is_starting() -> None:
    found = headline(replace(FOUND, state="starting", agents=(WELL, agent("curie1", "starting"))))
    assert found.sentence == "The market is starting: 1 of 2 agents are not up yet"


def test_a_server_that_nobody_reaches_comes_first() -> None:
    server = replace(SERVER, problem="cannot be reached: Connection refused")
    found = headline(replace(FOUND, server=server, agents=(agent("curie1", "failed", "no session"),)))
    assert found.sentence == (
        "The market has no server: the external XMPP server at 192.0.2.1:5222 cannot be reached: Connection refused"
    )


def test_draining_is_no_illness() -> None:
    assert headline(replace(FOUND, agents=(replace(WELL, draining=True),))).health is Health.UP
