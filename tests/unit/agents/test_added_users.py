"""What the market's owner is told of users and resources that were added, and of what does not work."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ramp.agents.configuration_changes import Changing
from ramp.agents.group_calls import GroupCall
from ramp.control.events import MarketChanged
from ramp.control.requests import AddUser, OwnerRequest, Reload
from ramp.control.status import AgentStatus
from ramp.errors import TransportError
from ramp.runtime.clock import SystemClock
from ramp.runtime.configuration.values import SwarmConfig
from ramp.runtime.configuration_changes.overlay import new_overlay
from ramp.runtime.keys.store import KeyStore
from ramp.runtime.state_folder import StateFolder
from tests.tiny_market import tiny_market

MARKET = '[launching]\nexecutor = "local"\n[accounts]\n%s = "@own"\n' + tiny_market(
    {"alice": 1}, prices={"north": (30, 10)}
)


class Up:
    """Agents that come up at once and do what they are asked."""

    def __init__(self, config: SwarmConfig) -> None:
        self.config = config
        self.agents = {"bank": AgentStatus("bank", "bank", 7, "ready", "", 0, "", is_up=True)}

    async def call(self, asked: GroupCall) -> tuple[list[str], list[str]]:
        return [], []

    def kill(self, name: str) -> None:
        pass

    async def give_account(self, name: str) -> None:
        if name == "bad":
            raise TransportError("the server does not answer")

    async def launch(self, name: str) -> AgentStatus:
        bad = name == "bad"
        return AgentStatus(name, "user", 7, "failed" if bad else "ready", "no queue" if bad else "", 0, "")

    async def settled(self, name: str) -> AgentStatus:
        return await self.launch(name)

    async def end(self, name: str) -> None:
        pass


def changing(folder: Path, mapped: str) -> Changing:
    path = folder / "market.toml"
    path.write_text(MARKET % mapped)
    state = StateFolder(folder / "state")
    state.prepare()
    clock = SystemClock()
    KeyStore(state.keys).create_ca(clock.now(), market="a market")
    overlay = new_overlay(path.read_text(), path)
    agents: Any = Up(overlay.config(path))
    return Changing(agents, overlay, state, clock)


def changed(market: Changing, request: OwnerRequest) -> MarketChanged:
    return asyncio.run(market.perform(request, "somebody"))


@pytest.mark.parametrize(("mapped", "kinds"), [("alice", ["add", "warning"]), ('"*"', ["add"])])
def test_the_owner_is_warned_of_sellers_that_will_refuse_a_new_user(
    tmp_path: Path, mapped: str, kinds: list[str]
) -> None:
    lines = changed(changing(tmp_path, mapped), AddUser("carol", 500_000)).lines
    assert [(line.kind, line.name) for line in lines] == [(kind, "carol") for kind in kinds]
    if "warning" in kinds:
        assert "north will refuse carol (no_account)" in lines[-1].text
        assert "[accounts]" in lines[-1].text


def test_the_owner_is_warned_of_an_agent_that_a_reload_could_not_start(tmp_path: Path) -> None:
    market = changing(tmp_path, '"*"')
    path = tmp_path / "market.toml"
    path.write_text(path.read_text() + '[[users]]\nname = "bad"\n[[users]]\nname = "good"\n')
    lines = changed(market, Reload()).lines
    assert [(line.kind, line.name) for line in lines] == [("add", "bad"), ("add", "good"), ("warning", "bad")]
    assert lines[-1].text == "warning: user bad is added; it is failed: no queue"
